// A view of a law: a model whose variables are others, and follow from the law's at each point.
#pragma once

#include <memory>
#include <vector>

#include "capi/evaluation/routes.h"
#include "capi/views/change.h"

namespace neml2_capi::model {

class View final : public Route {
 public:
  // Throws NEML2_ERROR_UNSUPPORTED for a law over tensors of a device, or with derivatives that cannot be changed.
  View(std::shared_ptr<const Routes> law, std::unique_ptr<const Change> change);

  const std::shared_ptr<Model>& model() const { return model_; }

  void check(const Options& options, std::int64_t points) const override;
  ChunkSize chunk_size(const Options& options, const Request& request) const override;
  std::int64_t end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                            std::int64_t size) const override;
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

  // Factors of a derivative: of_law[made] law of_input[taken] + direct[made]; -1: there is no such factor. Without `law`
  // and `direct` it is zero, and by the law's variable at `position`.
  struct Rule {
    std::int64_t law, made, taken;
    bool direct = false;
    std::size_t position = 0;
  };

 private:
  struct Memory;
  class Evaluation;

  static Memory& memory_of(Workspace& workspace);
  Boundary boundary();
  void add_rules(Kind kind, std::vector<Derivative>& listed, std::vector<Rule>& rules) const;
  bool is_direct(std::int64_t made) const;
  Derivative changed(Kind kind, const Derivative* law, const Rule& rule) const;

  std::shared_ptr<const Routes> law_;
  std::unique_ptr<const Change> change_;
  std::vector<std::int64_t> taken_at_, made_at_;  // by position: which of the taken or made; -1: the law's own
  std::vector<Rule> by_inputs_, by_parameters_;   // by derivative of the view
  std::shared_ptr<Model> model_;
};

}  // namespace neml2_capi::model
