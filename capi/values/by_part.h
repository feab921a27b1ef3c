// Something for each part of an evaluation.
#pragma once

#include <cstddef>
#include <iterator>

#include "capi/values/parts.h"

namespace neml2_capi::model {

template <class T>
class ByPart {
 public:
  T& operator[](Part part) { return all_[static_cast<std::size_t>(part)]; }
  const T& operator[](Part part) const { return all_[static_cast<std::size_t>(part)]; }

 private:
  T all_[std::size(all_parts)] = {};
};

}  // namespace neml2_capi::model
