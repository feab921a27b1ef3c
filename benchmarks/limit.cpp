// The limit: the runs of the compiled packages that one evaluation makes, and nothing between them.
//
// The program is linked with the objects of the library, and puts a backend before theirs, which notes every run of one
// evaluation with copies of its inputs. Then it repeats these runs alone. So the packages are run as often, on as many
// points at a time and on the same numbers as in the evaluation. A run is repeated in a row, so that its tensors lie in
// the cache.
#include "capi/graph/backend.h"
#include "evaluation.h"

namespace neml2_capi::graph {
namespace {

struct Run {
  std::shared_ptr<const Graph> graph;
  Vector<Tensor> inputs;

  void repeat() const {
    Handles given(inputs.size()), returned(graph->outputs().size());
    for (std::size_t i = 0; i < inputs.size(); ++i) given[i] = new Tensor(inputs[i]);
    graph->run(given, returned, nullptr);
  }
};
std::vector<Run>* record = nullptr;

class Recorder : public Graph {
 public:
  explicit Recorder(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) {}
  Runtime runtime() const override { return graph_->runtime(); }
  const std::vector<InputSpec>& inputs() const override { return graph_->inputs(); }
  const std::vector<OutputSpec>& outputs() const override { return graph_->outputs(); }
  bool enforces_bounds() const override { return graph_->enforces_bounds(); }
  void check(const Vector<Tensor>& inputs) const override { graph_->check(inputs); }
  void run(Handles& inputs, Handles& outputs, SingularInfo* singular) const override {
    if (record) {
      Run& run = record->emplace_back(Run{graph_, {}});
      for (std::size_t i = 0; i < inputs.size(); ++i) run.inputs.push_back(inputs[i]->copy());
    }
    graph_->run(inputs, outputs, singular);
  }
  std::vector<Constant> constants() const override { return graph_->constants(); }
  void set_constants(const std::vector<Constant>& values, bool copy) override { graph_->set_constants(values, copy); }
  const CallSpec& call_spec() const override { return graph_->call_spec(); }

 private:
  std::shared_ptr<Graph> graph_;
};

thread_local bool records = true;

std::shared_ptr<Graph> recording(const Source& source, const Wanted& wanted) {
  records = false;
  auto recorder = std::make_shared<Recorder>(open(source, wanted));
  records = true;
  return recorder;
}

Backend backend{.name = "limit", .opens = [](const Source&) { return records; }, .open = recording};
const Registration registration(backend);

}  // namespace
}  // namespace neml2_capi::graph

namespace benchmark {
namespace {

using neml2_capi::graph::Run;

Contestant prepare(const Task& task) {
  // More points repeat themselves: what is recorded stays small.
  Task part = task;
  part.points = std::min<std::int64_t>(task.points, 4096);
  auto evaluation = std::make_shared<Evaluation>(part);
  auto runs = std::make_shared<std::vector<Run>>();
  neml2_capi::graph::record = runs.get();
  evaluation->run();
  neml2_capi::graph::record = nullptr;
  const auto run = [=](std::int64_t calls) {
    for (const Run& one : *runs)
      for (std::int64_t i = 0; i < calls; ++i) one.repeat();
  };
  const double scale = static_cast<double>(task.points) / static_cast<double>(part.points);
  return {run, [] { return std::vector<Result>(); }, scale};
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) { return benchmark::serve(argc, argv, benchmark::prepare); }
