#include "capi/graph/graph.h"

#include <utility>

namespace neml2_capi::graph {

Vector<Tensor> Graph::run(Vector<Tensor> inputs, SingularInfo* singular) const {
  Handles given(std::move(inputs)), returned(outputs().size());
  run(given, returned, singular);
  return returned.take();
}

}  // namespace neml2_capi::graph
