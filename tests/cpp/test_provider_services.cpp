// Services of the built-in provider beside operators: functions of vectors, threads, static variables, output.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <ostream>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "provider_calls.h"

using namespace neml2_capi::test;
using namespace neml2_capi::aoti;

namespace {

#if defined(__x86_64__)

const double samples[] = {0.0,   -0.0, 0.3,  -0.7,
                          1.0,   2.5,  -4.0, 1e-310,
                          40.25, 1e3,  -1e3, std::numeric_limits<double>::infinity(),
                          0.99,  -0.2, 17.0, std::numeric_limits<double>::quiet_NaN()};

// Compares each of `lanes` with the scalar function, bit by bit.
template <class Real, std::size_t n, class Scalar>
bool equals_scalar(const Real (&lanes)[n], const Real (&x)[n], Scalar scalar) {
  for (std::size_t i = 0; i < n; ++i) {
    const Real expected = scalar(x[i]);
    if (std::isnan(expected) ? !std::isnan(lanes[i]) : std::memcmp(&lanes[i], &expected, sizeof(Real)) != 0)
      return false;
  }
  return true;
}

__attribute__((target("avx"))) void check_4_doubles(const char* name, double (*scalar)(double)) {
  for (int begin = 0; begin < 16; begin += 4) {
    double x[4], lanes[4];
    std::memcpy(x, samples + begin, sizeof x);
    _mm256_storeu_pd(lanes, find<__m256d(__m256d)>(name)(_mm256_loadu_pd(x)));
    EXPECT(equals_scalar(lanes, x, scalar));
  }
}

__attribute__((target("avx512f"))) void check_16_floats(const char* name, float (*scalar)(float)) {
  float x[16], lanes[16];
  for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(samples[i]);
  _mm512_storeu_ps(lanes, find<__m512(__m512)>(name)(_mm512_loadu_ps(x)));
  EXPECT(equals_scalar(lanes, x, scalar));
}

__attribute__((target("avx"))) void check_pairs() {
  double x[4] = {0.1, 2.0, 3.0, 0.5}, y[4] = {2.0, -1.5, 0.3, 7.0}, lanes[4];
  _mm256_storeu_pd(lanes, find<__m256d(__m256d, __m256d)>("nml2f_powd4_u10")(_mm256_loadu_pd(x), _mm256_loadu_pd(y)));
  for (int i = 0; i < 4; ++i) EXPECT(lanes[i] == std::pow(x[i], y[i]));
  Numbers random;
  for (int repeat = 0; repeat < 1000; ++repeat) {
    double a[4], b[4];
    for (int i = 0; i < 4; ++i) a[i] = random.between(-1, 1), b[i] = random.between(-1, 1);
    const auto hypot = find<__m256d(__m256d, __m256d)>("nml2f_hypotd4_u05");
    _mm256_storeu_pd(lanes, hypot(_mm256_loadu_pd(a), _mm256_loadu_pd(b)));
    for (int i = 0; i < 4; ++i) EXPECT(lanes[i] == std::hypot(a[i], b[i]));
  }
  struct SinCos {
    __m256d sine, cosine;
  };
  const SinCos both = find<SinCos(__m256d)>("nml2f_sincosd4_u10")(_mm256_loadu_pd(x));
  _mm256_storeu_pd(lanes, both.sine);
  for (int i = 0; i < 4; ++i) EXPECT(lanes[i] == std::sin(x[i]));
  _mm256_storeu_pd(lanes, both.cosine);
  for (int i = 0; i < 4; ++i) EXPECT(lanes[i] == std::cos(x[i]));
}

void every_lane_of_a_vector_function_equals_the_scalar_function() {
  double x[2] = {0.3, -0.7}, lanes[2];
  _mm_storeu_pd(lanes, find<__m128d(__m128d)>("nml2f_sinhd2_u10")(_mm_loadu_pd(x)));
  EXPECT(equals_scalar(lanes, x, [](double value) { return std::sinh(value); }));
  if (__builtin_cpu_supports("avx")) {
    check_4_doubles("nml2f_expd4_u10", [](double value) { return std::exp(value); });
    check_4_doubles("nml2f_sinhd4_u10", [](double value) { return std::sinh(value); });
    check_4_doubles("nml2f_tanhd4_u10", [](double value) { return std::tanh(value); });
    check_4_doubles("nml2f_logd4_u10", [](double value) { return std::log(value); });
    check_4_doubles("nml2f_erfcd4_u15", [](double value) { return std::erfc(value); });
    check_pairs();
  }
  if (__builtin_cpu_supports("avx512f")) {
    check_16_floats("nml2f_expf16_u10", [](float value) { return std::exp(value); });
    check_16_floats("nml2f_cosf16_u35", [](float value) { return std::cos(value); });
  }
}

#endif

// Objects of a package's threads are destroyed at the end of each, the last one first, with those that they make then.
void destructors_run_at_the_end_of_their_thread() {
  struct Note {
    std::string* order;
    char name;
  };
  static constexpr auto at_exit = [](void (*destroy)(void*), void* object) {
    EXPECT(find<int(void (*)(void*), void*, void*)>("nml2a_thread_atexit")(destroy, object, nullptr) == 0);
  };
  static constexpr auto note = [](void* object) {
    const Note& of = *static_cast<Note*>(object);
    *of.order += of.name;
  };
  std::string order;
  Note notes[] = {{&order, 'a'}, {&order, 'b'}, {&order, 'c'}};
  std::thread([&] {
    at_exit(note, &notes[0]);
    at_exit(
        [](void* object) {
          note(object);
          at_exit(note, static_cast<Note*>(object) + 1);
        },
        &notes[1]);
    EXPECT(order.empty());
  }).join();
  EXPECT(order == "bca");
}

// A static variable is made once; the child of a fork makes one that another thread was making.
void a_static_variable_is_made_once() {
  alignas(8) static std::uint64_t guard = 0;
  static int made = 0;
  const auto use = [] {
    if (!find<int(void*)>("nml2a_guard_acquire")(&guard)) return;
    ++made;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      std::thread([] {
        EXPECT(find<int(void*)>("nml2a_guard_acquire")(&guard) == 1);
        find<void(void*)>("nml2a_guard_release")(&guard);
      }).join();
      std::_Exit(find<int(void*)>("nml2a_guard_acquire")(&guard));
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
    find<void(void*)>("nml2a_guard_release")(&guard);
  };
  std::thread one(use), two(use);
  one.join();
  two.join();
  EXPECT(made == 1 && (guard & 0xff) == 1);
  guard = 0;
  EXPECT(find<int(void*)>("nml2a_guard_acquire")(&guard) == 1);
  find<void(void*)>("nml2a_guard_abort")(&guard);  // an exception: the next one tries again
  EXPECT(find<int(void*)>("nml2a_guard_acquire")(&guard) == 1);
}

// Output of a package comes to a function, a line at a time, in whatever way it prints.
void what_is_printed_is_handed_over() {
  static std::string printed;
  find<void(Output)>("nml2_use_output")(
      [](const char* text, std::size_t size) { printed.append(text, size).append("|"); });
  void* const library = dlopen(stream_library, RTLD_NOW);
  const auto part = [&](int i) { return dlsym(library, stream_symbols[i]); };
  find<void(const StreamParts&)>("nml2_open_streams")(
      {part(0), reinterpret_cast<void (*)(void*)>(part(1)), reinterpret_cast<void (*)(void*, void*)>(part(2))});
  auto& errors = *find<std::ostream>("nml24cerr");
  errors << "Error: " << 7 << std::endl;
  errors << "no end";
  EXPECT(printed == "Error: 7|");
  find<int(std::FILE*, const char*, ...)>("nml2ntf")(stderr, " of %d\n", 3);
  find<int(std::FILE*, int, const char*, ...)>("nml2rintf_chk")(stdout, 1, "%s\n", "checked");
  find<int(const char*, ...)>("nml2tf")("%.1f\n", 0.5);
  find<int(int, const char*, ...)>("nml2intf_chk")(1, "\n\n");
  find<int(const char*)>("nml2")("put");
  find<int(const char*, std::FILE*)>("nml2s")("a", stderr);
  find<int(int, std::FILE*)>("nml2c")('b', stdout);
  find<int(int)>("nml2har")('\n');
  EXPECT(find<std::size_t(const void*, std::size_t, std::size_t, std::FILE*)>("nml2te")("xyz\n", 2, 2, stderr) == 2);
  EXPECT(printed == "Error: 7|no end of 3|checked|0.5|put|ab|xyz|");
  std::FILE* const file = std::tmpfile();  // other files are as ever
  EXPECT(find<int(const char*, std::FILE*)>("nml2s")("kept", file) >= 0 && std::ftell(file) == 4);
  std::fclose(file);
  find<void(Output)>("nml2_use_output")(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  open_provider(argc, argv);
#if defined(__x86_64__)
  every_lane_of_a_vector_function_equals_the_scalar_function();
#endif
  destructors_run_at_the_end_of_their_thread();
  if (!std::getenv("NEML2_TEST_NO_TRAPS")) a_static_variable_is_made_once();  // an emulator ends in the fork
  what_is_printed_is_handed_over();
  return 0;
}
