// Arguments of the packages of an implicit segment.
#pragma once

#include <utility>
#include <vector>

#include "capi/newton/system.h"
#include "capi/segments/graph_call.h"

namespace neml2_capi::model {

// Unknowns, givens and promoted parameters of some points; the residual and its derivatives take them in this order.
struct Operands {
  Groups unknowns;
  Groups givens;
  Vector<Tensor> parameters;

  std::int64_t points() const { return unknowns.front().sizes()[0]; }

  Vector<Tensor> inputs(const ParameterTail& tail) const {
    Vector<Tensor> tensors;
    tensors.reserve(unknowns.size() + givens.size() + tail.size());
    tensors.insert(tensors.end(), unknowns.begin(), unknowns.end());
    tensors.insert(tensors.end(), givens.begin(), givens.end());
    tail.append_to(tensors, parameters);
    return tensors;
  }
  // Sets handles, of which there are as many, to the same inputs, row-major.
  void give(const ParameterTail& tail, Handles& handles) const {
    Tensor** next = handles.begin();
    for (const Groups* groups : {&unknowns, &givens})
      for (const Tensor& group : *groups) *next++ = new Tensor(group);
    for (std::size_t i = 0; i < tail.size(); ++i) *next++ = new Tensor(tail.taken(i, parameters));
    for (Tensor* handle : handles) handle->make_row_major();
  }
};

// Returns those of some points: `rows` is in order, and names none twice.
inline Operands select(Operands at, const Vector<std::int64_t>& rows) {
  if (std::ssize(rows) == at.points()) return at;
  return {select_rows(at.unknowns, rows), select_rows(at.givens, rows), select_rows(at.parameters, rows)};
}

// Returns one entry per point from a package's notes of the systems that it solved. It may solve several for one point,
// one after another or one beside the other.
inline Vector<std::int32_t> by_point(const graph::SingularInfo& info, std::int64_t points) {
  Vector<std::int32_t> singular(static_cast<std::size_t>(points), 0);
  const std::size_t each = info.size() / singular.size();
  for (std::size_t i = 0; i < info.size(); ++i)
    if (info[i] != 0) singular[each ? i / each : i] = info[i];
  return singular;
}

inline Groups row_major(Vector<Tensor> tensors) {
  for (Tensor& tensor : tensors) tensor.make_row_major();
  return tensors;
}

}  // namespace neml2_capi::model
