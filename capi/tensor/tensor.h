// Tensor of every room: a view (element type, sizes, strides, offset) of a counted storage.
//
// The header has all of it, so that libneml2_capi and the built-in provider, a library of its own, share it: a handle
// of the AOTI runtime is a pointer to a Tensor.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "capi/tensor/dims.h"
#include "capi/tensor/dtype.h"
#include "capi/tensor/memory.h"
#include "capi/tensor/transpose.h"

namespace neml2_capi {

// Counted memory. The count is atomic, since threads share constants. Memory that a package makes in a run is
// *confined* to one thread at a time, and counted without atomic operations: dozens of views come and go in a run.
class Storage {
 public:
  using Deleter = void (*)(void* context);

  Storage() = default;
  Storage(const Storage& other) noexcept : block_(other.block_) {
    if (!block_) return;
    if (block_->confined) [[likely]]
      ++block_->uses;
    else
      std::atomic_ref(block_->uses).fetch_add(1, std::memory_order_relaxed);
  }
  Storage(Storage&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Storage& operator=(const Storage& other) noexcept { return *this = Storage(other); }
  Storage& operator=(Storage&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Storage() {
    if (block_ && was_last_use()) [[unlikely]]
      end(block_);
  }

  // Allocates memory, not initialised, aligned for any vector load.
  static Storage allocate(std::int64_t bytes) {
    const auto footprint = footprint_of(bytes);
    return Storage(make(memory::allocate(footprint), bytes, footprint, false));
  }
  // Allocates memory for a package, confined to the thread in a confined run.
  static Storage allocate_in_run(std::int64_t bytes) {
    Storage storage = allocate(bytes);
    storage.block_->confined = memory::thread_cache && memory::thread_cache->in_confined_run;
    return storage;
  }
  // The same from a block that waits. Returns an empty storage if none does.
  static Storage take_in_run(std::int64_t bytes) noexcept {
    const auto footprint = footprint_of(bytes);
    void* const memory = memory::take_waiting(footprint);
    return Storage(memory ? make(memory, bytes, footprint, memory::thread_cache->in_confined_run) : nullptr);
  }
  // Must be called before another thread gets the memory.
  void end_confinement() const noexcept {
    if (block_ && block_->confined) block_->confined = false;
  }
  // Wraps the caller's memory. The last owner calls deleter(context), if any.
  static Storage wrap(void* data, std::int64_t bytes, Deleter deleter, void* context, Device device = {}) {
    constexpr auto footprint = memory::SizeClass::of(sizeof(Block));
    Storage storage(new (memory::allocate(footprint)) Block{data, bytes, footprint, deleter, context});
    storage.block_->device = device;
    return storage;
  }

  static Storage wrap_confined(void* data, std::int64_t bytes) {
    Storage storage = wrap(data, bytes, nullptr, nullptr);
    storage.block_->confined = true;
    return storage;
  }

  explicit operator bool() const noexcept { return block_ != nullptr; }
  // Tells whether nothing else refers to the memory.
  bool is_unique() const noexcept {
    return !block_ || std::atomic_ref(block_->uses).load(std::memory_order_acquire) == 1;
  }

  // Tells whether the memory was allocated here, not wrapped.
  bool is_own() const noexcept {
    return block_ && block_->data == reinterpret_cast<const char*>(block_) + memory::alignment;
  }

  void* data() const noexcept { return block_ ? block_->data : nullptr; }
  std::int64_t bytes() const noexcept { return block_ ? block_->bytes : 0; }
  Device device() const noexcept { return block_ ? block_->device : Device(); }

 private:
  struct Block {
    void* data;
    std::int64_t bytes;
    memory::SizeClass footprint;  // of the whole allocation, with this block
    Deleter deleter;
    void* context;
    std::int64_t uses = 1;  // through std::atomic_ref, unless
    bool confined = false;
    Device device = {};
  };
  static_assert(sizeof(Block) <= memory::alignment);

  explicit Storage(Block* block) : block_(block) {}

  // The block stands before the data, in one allocation.
  static memory::SizeClass footprint_of(std::int64_t bytes) {
    return memory::SizeClass::of(memory::alignment + static_cast<std::size_t>(bytes));
  }
  static Block* make(void* memory, std::int64_t bytes, memory::SizeClass footprint, bool confined) noexcept {
    void* const data = static_cast<char*>(memory) + memory::alignment;
    return new (memory) Block{data, bytes, footprint, nullptr, nullptr, 1, confined};
  }

  // Most owners that let go are not the last, so this is not inlined.
  [[gnu::noinline]] static void end(Block* block) noexcept {
    if (block->deleter) [[unlikely]]
      block->deleter(block->context);
    memory::release(block, block->footprint);
  }

  bool was_last_use() noexcept {
    if (block_->confined) [[likely]]
      return --block_->uses == 0;
    return std::atomic_ref(block_->uses).fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  Block* block_ = nullptr;
};

// Makes a row-major copy of a tensor whose memory the processor does not read. Code that opens such a device sets it.
inline std::atomic<class Tensor (*)(const class Tensor&)> copy_on_device = nullptr;

class Tensor {
 public:
  Tensor() = default;
  Tensor(Storage storage, DType dtype, const Dims& sizes, const Dims& strides, std::int64_t offset = 0)
      : Tensor(std::move(storage), dtype, offset) {
    sizes_ = sizes;
    strides_ = strides;
  }
  // A tensor of `n` axes, at most Dims::capacity, without memory. `last` gets the result of Dims::copy_axes().
  Tensor(DType dtype, std::int64_t n, const std::int64_t* sizes, const std::int64_t* strides,
         std::int64_t& last) noexcept
      : Tensor(Storage(), dtype, 0) {
    last = Dims::copy_axes(n, sizes, strides, sizes_, strides_);
  }
  // The same over the memory of `viewed`, from its element `further` on.
  Tensor(const Tensor& viewed, std::int64_t further, std::int64_t n, const std::int64_t* sizes,
         const std::int64_t* strides, std::int64_t& last) noexcept
      : storage_(viewed.storage_),
        offset_(viewed.offset_ + further),
        dtype_(viewed.dtype_),
        itemsize_(viewed.itemsize_) {
    last = Dims::copy_axes(n, sizes, strides, sizes_, strides_);
  }

  // Makes a row-major tensor, not initialised.
  static Tensor empty(DType dtype, const Dims& sizes) {
    return Tensor(Storage::allocate(sizes.product() * neml2_capi::itemsize(dtype)), dtype, sizes, sizes.row_major());
  }
  static Tensor zeros(DType dtype, const Dims& sizes) {
    Tensor tensor = empty(dtype, sizes);
    std::memset(tensor.data(), 0, static_cast<std::size_t>(tensor.numel() * tensor.itemsize()));
    return tensor;
  }
  // Every run of a package makes and deletes handles of the AOTI runtime.
  static void* operator new(std::size_t bytes) { return memory::allocate(bytes); }
  static void operator delete(void* tensor, std::size_t bytes) { memory::release(tensor, bytes); }
  static void* operator new(std::size_t, void* place) { return place; }

  // Makes a row-major view of memory that the caller keeps alive, for one thread at a time.
  static Tensor borrow(void* data, DType dtype, const Dims& sizes) {
    return Tensor(Storage::wrap_confined(data, sizes.product() * neml2_capi::itemsize(dtype)), dtype, sizes,
                  sizes.row_major());
  }

  DType dtype() const noexcept { return dtype_; }
  std::int64_t itemsize() const noexcept { return itemsize_; }
  const Dims& sizes() const noexcept { return sizes_; }
  const Dims& strides() const noexcept { return strides_; }
  std::int64_t ndim() const noexcept { return sizes_.size(); }
  std::int64_t numel() const noexcept { return sizes_.product(); }
  std::int64_t offset() const noexcept { return offset_; }
  const Storage& storage() const noexcept { return storage_; }
  Device device() const noexcept { return storage_.device(); }
  void* data() const noexcept {
    return storage_.data() ? static_cast<char*>(storage_.data()) + offset_ * itemsize() : nullptr;
  }
  template <class T>
  T* data_as() const noexcept {
    return static_cast<T*>(data());
  }

  bool is_row_major() const noexcept {
    std::int64_t stride = 1;
    for (std::int64_t i = ndim(); i-- > 0;) {
      if (sizes_[i] == 0) return true;
      if (sizes_[i] != 1 && strides_[i] != stride) return false;
      stride *= sizes_[i];
    }
    return true;
  }
  // Returns the tensor itself if it is row-major, else a copy.
  Tensor row_major() const {
    Tensor out = *this;
    out.make_row_major();
    return out;
  }
  void make_row_major() {
    std::int64_t stride = 1;
    for (std::int64_t i = ndim(); i-- > 0;) {
      if (strides_[i] != stride) {
        if (sizes_[i] > 1 && numel() > 0) {
          *this = copy();
          return;
        }
        strides_[i] = stride;  // an axis of one element has no stride that matters
      }
      stride *= std::max<std::int64_t>(sizes_[i], 1);
    }
  }
  // Gives memory to a tensor that has none.
  void set_storage(Storage storage) noexcept { storage_ = std::move(storage); }
  // Releases the memory.
  void reset() noexcept { storage_ = Storage(); }
  // Returns a row-major copy in new memory.
  Tensor copy() const {
    if (!device().is_host()) return copy_on_device.load()(*this);
    Tensor out = empty(dtype_, sizes_);
    copy_to(out.data());
    return out;
  }
  // Returns a view of the same memory that claims another device: see Device::by_operators.
  Tensor as_on(Device device) const {
    if (!storage_.data() || storage_.device() == device) return *this;
    const auto give_back = [](void* storage) { delete static_cast<Storage*>(storage); };
    return Tensor(Storage::wrap(storage_.data(), storage_.bytes(), give_back, new Storage(storage_), device), dtype_,
                  sizes_, strides_, offset_);
  }
  // Writes the values in row-major order. Both memories must be the processor's.
  void copy_to(void* destination) const {
    if (numel() == 0) return;
    if (!device().is_host()) throw std::logic_error("the processor would read memory of " + device().str());
    if (is_row_major()) {
      std::memcpy(destination, data(), static_cast<std::size_t>(numel() * itemsize()));
      return;
    }
    char* out = static_cast<char*>(destination);
    copy_axis(0, static_cast<const char*>(data()), out);
  }

 private:
  void copy_axis(std::int64_t axis, const char* from, char*& to) const {
    if (axis + 2 < ndim()) {
      for (std::int64_t i = 0; i < sizes_[axis]; ++i) copy_axis(axis + 1, from + i * strides_[axis] * itemsize(), to);
      return;
    }
    switch (itemsize()) {
      case 8: return copy_last_axes<std::int64_t>(from, to);
      case 4: return copy_last_axes<std::int32_t>(from, to);
      case 2: return copy_last_axes<std::int16_t>(from, to);
      default: return copy_last_axes<std::int8_t>(from, to);
    }
  }
  // Copies a matrix, or the one axis that there is.
  template <class Item>
  void copy_last_axes(const char* from, char*& to) const {
    const bool one = ndim() == 1;
    const std::int64_t rows = one ? 1 : sizes_[ndim() - 2], apart = one ? 0 : strides_[ndim() - 2];
    const std::int64_t columns = sizes_.back(), stride = strides_.back();
    const Item* in = reinterpret_cast<const Item*>(from);
    Item* out = reinterpret_cast<Item*>(to);
    if (apart == 1)
      transpose(in, stride, columns, rows, out);
    else
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) out[r * columns + c] = in[r * apart + c * stride];
    to = reinterpret_cast<char*>(out + rows * columns);
  }

  Tensor(Storage storage, DType dtype, std::int64_t offset) noexcept
      : storage_(std::move(storage)),
        offset_(offset),
        dtype_(dtype),
        itemsize_(static_cast<std::int32_t>(neml2_capi::itemsize(dtype))) {}

  // The first cache line has the members that are used most.
  Storage storage_;
  std::int64_t offset_ = 0;
  DType dtype_ = DType::float64;
  std::int32_t itemsize_ = 8;
  Dims sizes_;
  Dims strides_;
};

}  // namespace neml2_capi
