#include "capi/tensor/memory.h"

#include <pthread.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace neml2_capi::memory {
namespace {

constexpr std::size_t largest_small = std::size_t{1} << 20;
constexpr std::size_t thread_limit = std::size_t{64} << 20;    // bytes that wait: of small blocks, in one thread
constexpr std::size_t process_limit = std::size_t{256} << 20;  // of large ones

// Which of the sizes that rounded() returns this is, counted from 0.
constexpr std::size_t number_of(std::size_t size) {
  if (size <= 4 * alignment) return size / alignment - 1;
  const auto power = static_cast<std::size_t>(std::bit_width(size - 1)) - 1;      // 2^power < size <= 2^(power + 1)
  const std::size_t quarter = (size - (std::size_t{1} << power)) >> (power - 2);  // 1 to 4
  return 4 * (power - std::bit_width(alignment)) + quarter - 1;
}
static_assert(number_of(rounded(1)) == 0 && number_of(rounded(256)) == 3 && number_of(rounded(257)) == 4);
static_assert(number_of(rounded(512)) == 7 && number_of(rounded(513)) == 8 && rounded(513) == 640);

void* from_system(std::size_t size) {
  void* block = std::aligned_alloc(alignment, size);
  if (!block) throw std::bad_alloc();
  return block;
}

// The cache of this thread; null before its first use and after its end. Read at every request: this one pointer stands
// in the static block of thread-local storage.
class ThreadCache;
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadCache* current = nullptr;

class ThreadCache {
 public:
  ThreadCache() { current = this; }
  ~ThreadCache() {
    current = nullptr;
    for (Waiting* first : first_)
      while (first) std::free(std::exchange(first, first->next));
  }
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  // That of this thread; null when the thread is about to end.
  static ThreadCache* get() { return current ? current : first_use(); }

  void* take(std::size_t size) {
    Waiting*& first = first_[number_of(size)];
    if (!first) return nullptr;
    bytes_ -= size;
    return std::exchange(first, first->next);
  }
  bool keep(void* block, std::size_t size) {
    if (bytes_ + size > thread_limit) return false;
    Waiting*& first = first_[number_of(size)];
    first = new (block) Waiting{first};
    bytes_ += size;
    return true;
  }

 private:
  // A block that waits holds the address of the next one.
  struct Waiting {
    Waiting* next;
  };

  static ThreadCache* first_use() {
    thread_local bool used = false;
    if (std::exchange(used, true)) return nullptr;  // other objects of the thread are being destroyed
    thread_local ThreadCache cache;
    return &cache;
  }

  std::array<Waiting*, number_of(largest_small) + 1> first_{};
  std::size_t bytes_ = 0;
};

// Large blocks that wait, the oldest first. It is never destroyed: tensors may be freed while the process ends.
class ProcessCache {
 public:
  void* take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = count_; i-- > 0;)
      if (blocks_[i].size == size) return remove(i);
    return nullptr;
  }
  void keep(void* block, std::size_t size) {
    if (size > process_limit) return std::free(block);
    const std::lock_guard lock(mutex_);
    while (bytes_ + size > process_limit || count_ == blocks_.size()) std::free(remove(0));
    blocks_[count_++] = {block, size};
    bytes_ += size;
  }
  // Held across a fork, so that the child finds it whole and free.
  std::mutex& mutex() { return mutex_; }

 private:
  struct Block {
    void* data;
    std::size_t size;
  };

  void* remove(std::size_t i) {
    void* data = blocks_[i].data;
    bytes_ -= blocks_[i].size;
    for (--count_; i < count_; ++i) blocks_[i] = blocks_[i + 1];
    return data;
  }

  std::mutex mutex_;
  std::array<Block, 64> blocks_{};
  std::size_t count_ = 0, bytes_ = 0;
};

constinit ProcessCache large_blocks;

[[gnu::constructor]] void prepare_forks() {
  pthread_atfork([] { large_blocks.mutex().lock(); }, [] { large_blocks.mutex().unlock(); },
                 [] { large_blocks.mutex().unlock(); });
}

// The address sanitizer must see every block come and go.
#ifdef __SANITIZE_ADDRESS__
constexpr bool caching = false;
#else
constexpr bool caching = true;
#endif

}  // namespace

void* allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  void* block = nullptr;
  if (!caching)
    ;
  else if (size > largest_small)
    block = large_blocks.take(size);
  else if (ThreadCache* cache = ThreadCache::get())
    block = cache->take(size);
  return block ? block : from_system(size);
}

void release(void* block, std::size_t bytes) noexcept {
  const std::size_t size = rounded(bytes);
  if (caching && size > largest_small) return large_blocks.keep(block, size);
  ThreadCache* cache = caching ? ThreadCache::get() : nullptr;
  if (!cache || !cache->keep(block, size)) std::free(block);
}

}  // namespace neml2_capi::memory
