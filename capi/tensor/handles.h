// Tensors as compiled packages take and return them: by handle, one pointer each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "capi/tensor/tensor.h"

namespace neml2_capi {

// List of handles, which it owns; an empty place is null. A short list needs no allocation.
class Handles {
 public:
  explicit Handles(std::size_t size) { make_room(size); }
  explicit Handles(Vector<Tensor>&& tensors) : Handles(tensors.size()) {
    for (std::size_t i = 0; i < size_; ++i) handles_[i] = new Tensor(std::move(tensors[i]));
  }
  ~Handles() { clear(); }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  // Deletes its handles, and makes room for `size`.
  void renew(std::size_t size) {
    clear();
    make_room(size);
  }

  std::size_t size() const { return size_; }
  Tensor** begin() { return handles_; }
  Tensor** end() { return handles_ + size_; }
  Tensor** data() { return handles_; }
  Tensor*& operator[](std::size_t i) { return handles_[i]; }

  // Moves the tensors from `begin` on out of their handles, none of which may be null.
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
    size_ = 0;  // keeps the destructor from deleting them again if make_room() throws
  }

  static constexpr std::size_t few = 16;
  std::size_t size_;
  Tensor** handles_;
  Tensor* few_[few];
  Vector<Tensor*> many_;
};

}  // namespace neml2_capi
