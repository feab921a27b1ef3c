// Memory that lives as long as a workspace: scratch in whole vectors, and lists that blocks refer to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "capi/kernels/block.h"

namespace neml2_capi::kernels {

template <class X>
List<X> list(const std::vector<X>& items) {
  return {items.data(), static_cast<std::int64_t>(items.size())};
}

class Memory {
 public:
  // Zeros, aligned for every vector.
  void* take(std::size_t bytes) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    if (bytes > left_) {
      const std::size_t size = std::max(bytes, least);
      std::unique_ptr<char, Free> piece(static_cast<char*>(::operator new(size, std::align_val_t(alignment))));
      pieces_.push_back(std::move(piece));
      next_ = pieces_.back().get();
      left_ = size;
      std::fill_n(next_, left_, '\0');
    }
    void* const found = next_;
    next_ += bytes;
    left_ -= bytes;
    return found;
  }

  template <class X>
  List<X> keep(const std::vector<X>& items) {
    X* const kept = static_cast<X*>(take(items.size() * sizeof(X)));
    std::copy(items.begin(), items.end(), kept);
    return {kept, static_cast<std::int64_t>(items.size())};
  }

 private:
  static constexpr std::size_t alignment = 64, least = std::size_t{1} << 14;
  struct Free {
    void operator()(char* piece) const { ::operator delete(piece, std::align_val_t(alignment)); }
  };

  std::vector<std::unique_ptr<char, Free>> pieces_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace neml2_capi::kernels
