// neml2_capi from C: a bound neml2_call. Where a package brings OpenMP along, the settings of the host must stay what
// they were.
#include <dlfcn.h>

#include "evaluation.h"

namespace benchmark {
namespace {

// What an OpenMP host would see of its own settings; nothing where no library brought OpenMP into the process.
std::vector<int> openmp_settings() {
  void* library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return {};
  std::vector<int> settings;
  for (const char* name : {"omp_get_max_threads", "omp_get_max_active_levels", "omp_get_dynamic"})
    if (auto* get = reinterpret_cast<int (*)()>(dlsym(library, name))) settings.push_back(get());
  dlclose(library);
  return settings;
}

template <class Work>
Contestant contestant(const Task& task) {
  auto work = std::make_shared<Work>(task);
  const std::vector<int> before = openmp_settings();
  const auto run = [=](std::int64_t calls) {
    while (calls-- > 0) work->run();
    if (openmp_settings() != before) throw std::runtime_error("a call changed the OpenMP settings of its host");
  };
  return {run, [=] { return work->results(); }};
}

Contestant prepare(const Task& task) {
  return task.operation == "transient" ? contestant<Transient>(task) : contestant<Evaluation>(task);
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) { return benchmark::serve(argc, argv, benchmark::prepare); }
