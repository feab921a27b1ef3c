// neml2_capi from C: a bound neml2_call.
#include "evaluation.h"

namespace benchmark {
namespace {

template <class Work>
Contestant contestant(const Task& task) {
  auto work = std::make_shared<Work>(task);
  const auto run = [=](std::int64_t calls) {
    while (calls-- > 0) work->run();
  };
  return {run, [=] { return work->results(); }};
}

Contestant prepare(const Task& task) {
  return task.operation == "transient" ? contestant<Transient>(task) : contestant<Evaluation>(task);
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) { return benchmark::serve(argc, argv, benchmark::prepare); }
