// The material routine that a user would otherwise write: the laws of two models by hand, generic Newton in the same
// unknowns with the same tolerances, one point after another, on one or several threads.
#include <memory>
#include <thread>

#include "arrays.h"
#include "laws.h"
#include "serve.h"

namespace benchmark {
namespace {

// The unknowns of a point stand one after another in the order of `states`.
struct State {
  const char* name;
  int size;
};

template <class Law>
class Routine {
 public:
  Routine(const Task& task, std::vector<State> states)
      : task_(task), states_(std::move(states)), inputs_(read_arrays(task.inputs / "inputs", task.points)) {
    for (const State& state : states_) {
      old_.push_back(find(inputs_, std::string(state.name) + "~1").values.data());
      results_.emplace_back(state.name, std::vector<std::int64_t>{state.size},
                            std::vector<double>(static_cast<std::size_t>(task.points * state.size)));
    }
  }

  void run() {
    if (task_.threads == 1) return run(0, task_.points);
    std::vector<std::jthread> threads;
    for (int i = 0; i < task_.threads; ++i)
      threads.emplace_back(
          [=, this] { run(task_.points * i / task_.threads, task_.points * (i + 1) / task_.threads); });
  }

  std::vector<Result> results() const {
    std::vector<Result> results;
    for (const Array& array : results_) results.push_back({array.name, array.values.data(), array.size()});
    return results;
  }

 private:
  void run(std::int64_t begin, std::int64_t end) {
    const double *strain = find(inputs_, "strain").values.data(), *old_strain = find(inputs_, "strain~1").values.data();
    const double *time = find(inputs_, "t").values.data(), *old_time = find(inputs_, "t~1").values.data();
    for (std::int64_t p = begin; p < end; ++p) {
      Law law;
      Symmetric increment;
      for (int i = 0; i < 6; ++i) increment[i] = strain[6 * p + i] - old_strain[6 * p + i];
      law.step = {elastic(increment), time[p] - old_time[p]};
      int at = 0;
      for (std::size_t k = 0; k < states_.size(); ++k)
        for (int i = 0; i < states_[k].size; ++i) law.old[at++] = old_[k][states_[k].size * p + i];
      Vector<Law::size> u = law.old;
      solve_nonlinear<Law::size>(law, u);
      at = 0;
      for (std::size_t k = 0; k < states_.size(); ++k)
        for (int i = 0; i < states_[k].size; ++i)
          results_[k].values[static_cast<std::size_t>(states_[k].size * p + i)] = u[at++];
    }
  }

  Task task_;
  std::vector<State> states_;
  std::vector<Array> inputs_;
  std::vector<const double*> old_;
  std::vector<Array> results_;
};

template <class Law>
Contestant contestant(const Task& task, std::vector<State> states) {
  auto routine = std::make_shared<Routine<Law>>(task, std::move(states));
  const auto run = [=](std::int64_t calls) {
    while (calls-- > 0) routine->run();
  };
  return {run, [=] { return routine->results(); }};
}

Contestant prepare(const Task& task) {
  if (task.operation != "forward") throw std::runtime_error("the hand-written routine has no derivatives");
  // Its unknowns identify the model.
  for (const Array& array : read_arrays(task.inputs / "inputs", 1))
    if (array.name == "X1~1")
      return contestant<Chaboche>(task, {{"stress", 6}, {"equivalent_plastic_strain", 1}, {"X1", 6}, {"X2", 6}});
  return contestant<IsotropicHardening>(task, {{"stress", 6}, {"equivalent_plastic_strain", 1}});
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) { return benchmark::serve(argc, argv, benchmark::prepare); }
