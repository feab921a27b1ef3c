// One contestant as a process of its own. It makes itself ready, with a first call, and then does what it reads:
//
//   run N        N calls; answers with the seconds that they took
//   write DIR N  the results of the first N points of the last call, one DIR/NAME.bin each; answers "written"
//
// so that contestants can be timed in turns. If it cannot take part, it answers "failed" and why.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace benchmark {

// What a contestant is asked for: PROGRAM ARTIFACT INPUTS OPERATION POINTS THREADS.
struct Task {
  std::string artifact;
  std::filesystem::path inputs;
  std::string operation;  // "forward", "jacobian", "tangent", "jvp", "transient"
  std::int64_t points;
  int threads;
};

// `points` points of a result, the first at `data`.
struct Result {
  std::string name;
  const double* data;
  std::int64_t size;  // of one point
};

struct Contestant {
  std::function<void(std::int64_t calls)> run;
  std::function<std::vector<Result>()> results;
  double scale = 1;  // of the time, if a call does a part of the work only
};

inline double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline void write_results(const Contestant& contestant, const std::filesystem::path& folder, std::int64_t points) {
  for (const Result& result : contestant.results()) {
    std::ofstream file(folder / (result.name + ".bin"), std::ios::binary);
    file.write(reinterpret_cast<const char*>(result.data), static_cast<std::streamsize>(8 * result.size * points));
  }
}

// `prepare` loads what is needed; what it takes with the first call is the answer "ready SECONDS".
inline int serve(int argc, char** argv, const std::function<Contestant(const Task&)>& prepare) {
  if (argc != 6) {
    std::cerr << "usage: " << argv[0] << " ARTIFACT INPUTS OPERATION POINTS THREADS\n";
    return 2;
  }
  const Task task{argv[1], argv[2], argv[3], std::stoll(argv[4]), std::stoi(argv[5])};
  try {
    Contestant contestant;
    const double start = seconds_of([&] {
      contestant = prepare(task);
      contestant.run(1);
    });
    std::cout.precision(9);
    std::cout << "ready " << start << std::endl;
    for (std::string word; std::cin >> word;) {
      std::int64_t count = 0;
      if (word == "run" && std::cin >> count) {
        std::cout << contestant.scale * seconds_of([&] { contestant.run(count); }) << std::endl;
      } else if (std::string folder; std::cin >> folder >> count) {
        write_results(contestant, folder, std::min(count, task.points));
        std::cout << "written" << std::endl;
      }
    }
  } catch (const std::exception& error) {
    std::cout << "failed " << error.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace benchmark
