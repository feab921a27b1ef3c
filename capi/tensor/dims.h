// Sizes and strides of tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>

namespace neml2_capi {

// Short list of sizes or strides, without an allocation.
class Dims {
 public:
  static constexpr std::int64_t capacity = 16;

  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values) : size_(std::ssize(values)) {
    if (size_ > capacity) throw std::length_error("a tensor has more than 16 axes");
    copy(values.data());
  }
  // Copies sizes and strides of at most `capacity` axes. Returns the distance from the first element to the last, or a
  // negative number if a size or stride is negative.
  static std::int64_t copy_axes(std::int64_t n, const std::int64_t* sizes, const std::int64_t* strides, Dims& to_sizes,
                                Dims& to_strides) noexcept {
    std::int64_t last = 0, signs = 0;
    to_sizes.size_ = to_strides.size_ = n;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t size = sizes[i], stride = strides[i];
      to_sizes.values_[i] = size;
      to_strides.values_[i] = stride;
      last += (size - 1) * stride;
      signs |= size | stride;
      one_by_one();
    }
    return signs < 0 ? -1 : last;
  }
  // A copy takes only the values in use: tensors are copied all the time.
  Dims(const Dims& other) noexcept { *this = other; }
  Dims& operator=(const Dims& other) noexcept {
    size_ = other.size_;
    copy(other.values_);
    return *this;
  }

  std::int64_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const std::int64_t* data() const noexcept { return values_; }
  const std::int64_t* begin() const noexcept { return values_; }
  const std::int64_t* end() const noexcept { return values_ + size_; }
  std::int64_t& operator[](std::int64_t i) noexcept { return values_[i]; }
  std::int64_t operator[](std::int64_t i) const noexcept { return values_[i]; }
  std::int64_t back() const noexcept { return values_[size_ - 1]; }

  void push_back(std::int64_t value) {
    if (size_ == capacity) throw std::length_error("a tensor has more than 16 axes");
    values_[size_++] = value;
  }
  void append(const Dims& other) {
    for (std::int64_t value : other) push_back(value);
  }
  // Returns these axes followed by others: Dims{points}.then(point_shape).
  Dims then(const Dims& inner) const {
    Dims joined = *this;
    joined.append(inner);
    return joined;
  }
  Dims first(std::int64_t n) const { return Dims(std::span(values_, static_cast<std::size_t>(n))); }
  Dims last(std::int64_t n) const { return Dims(std::span(values_ + size_ - n, static_cast<std::size_t>(n))); }

  // Number of elements of a tensor of these sizes.
  std::int64_t product() const noexcept {
    std::int64_t n = 1;
    for (std::int64_t value : *this) n *= value;
    return n;
  }
  // Row-major strides of a tensor of these sizes. An axis of size 0 counts as one of size 1.
  Dims row_major() const {
    Dims strides = *this;
    std::int64_t stride = 1;
    for (std::int64_t i = size_; i-- > 0;) {
      strides[i] = stride;
      stride *= std::max<std::int64_t>(values_[i], 1);
    }
    return strides;
  }
  // "(2, 6)"
  std::string str() const {
    std::string text = "(";
    for (std::int64_t i = 0; i < size_; ++i) text += (i ? ", " : "") + std::to_string(values_[i]);
    return text + (size_ == 1 ? ",)" : ")");
  }

  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void copy(const std::int64_t* from) noexcept {
    for (std::int64_t i = 0; i < size_; ++i) {
      values_[i] = from[i];
      one_by_one();
    }
  }
  // Keeps the compiler from vectorizing a loop: a processor stalls on a vector load of values just stored one by one.
  static void one_by_one() noexcept { __asm__ volatile(""); }

  std::int64_t size_ = 0;
  std::int64_t values_[capacity];  // the first size_ of them
};

}  // namespace neml2_capi
