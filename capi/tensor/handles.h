// Tensors as compiled packages take and return them: by handle, one pointer each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// A list of handles that owns those that are in it; the others are null. Few are kept in place.
class Handles {
 public:
  explicit Handles(std::size_t size) { make_room(size); }
  explicit Handles(Vector<Tensor>&& tensors) : Handles(tensors.size()) {
    for (std::size_t i = 0; i < size_; ++i) handles_[i] = new Tensor(std::move(tensors[i]));
  }
  ~Handles() { clear(); }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  // Delete those that are in it, and have room for `size`.
  void renew(std::size_t size) {
    clear();
    make_room(size);
  }

  std::size_t size() const { return size_; }
  Tensor** begin() { return handles_; }
  Tensor** end() { return handles_ + size_; }
  Tensor** data() { return handles_; }
  Tensor*& operator[](std::size_t i) { return handles_[i]; }

  // The tensors from `begin` on, moved out of their handles: all of these are there.
  Vector<Tensor> take(std::size_t begin = 0) {
    Vector<Tensor> tensors;
    tensors.reserve(size_ - begin);
    for (std::size_t i = begin; i < size_; ++i) tensors.push_back(std::move(*handles_[i]));
    return tensors;
  }

 private:
  void make_room(std::size_t size) {
    if (size > few) many_.resize(size);
    handles_ = size > few ? many_.data() : few_;
    std::fill_n(handles_, size, nullptr);
    size_ = size;
  }
  void clear() {
    for (Tensor* handle : *this) delete handle;
    size_ = 0;  // so that none is deleted again where there is no room for others
  }

  static constexpr std::size_t few = 16;
  std::size_t size_;
  Tensor** handles_;
  Tensor* few_[few];
  Vector<Tensor*> many_;
};

}  // namespace neml2_capi
