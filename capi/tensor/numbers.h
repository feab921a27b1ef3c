// Real numbers in memory, of one element type or the other, as numbers of double precision.
#pragma once

#include <cstdint>

#include "capi/tensor/tensor.h"

namespace neml2_capi {

class Numbers {
 public:
  Numbers() = default;
  explicit Numbers(double* data) : data_(reinterpret_cast<char*>(data)) {}
  Numbers(char* data, DType dtype) : data_(data), is_single_(dtype == DType::float32) {}

  // The numbers from one on.
  Numbers from(std::int64_t i) const { return {data_ + i * itemsize(dtype()), dtype()}; }
  DType dtype() const { return is_single_ ? DType::float32 : DType::float64; }

  explicit operator bool() const { return data_ != nullptr; }

  template <class Index>
  double operator[](Index i) const {
    return is_single_ ? static_cast<double>(singles()[i]) : doubles()[i];
  }
  template <class Index>
  void set(Index i, double value) const {
    is_single_ ? static_cast<void>(singles()[i] = static_cast<float>(value)) : static_cast<void>(doubles()[i] = value);
  }
  // Rounds what is added first, as a sum of such numbers does.
  template <class Index>
  void add(Index i, double value) const {
    set(i, (*this)[i] + (is_single_ ? static_cast<double>(static_cast<float>(value)) : value));
  }

 private:
  float* singles() const { return reinterpret_cast<float*>(data_); }
  double* doubles() const { return reinterpret_cast<double*>(data_); }

  char* data_ = nullptr;
  bool is_single_ = false;
};

// Returns the numbers of a row-major tensor of the host.
inline Numbers numbers_of(const Tensor& tensor) { return {tensor.data_as<char>(), tensor.dtype()}; }

}  // namespace neml2_capi
