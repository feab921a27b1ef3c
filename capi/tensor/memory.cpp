#include "capi/tensor/memory.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "capi/base/locks.h"
#include "capi/platform/process.h"
#include "capi/platform/thread_end.h"

namespace neml2_capi::memory {
namespace {

void* from_system(std::size_t size) {
  void* block = platform::allocate(alignment, size);
  if (!block) throw std::bad_alloc();
  return block;
}

// Cache of a thread, and the variables that hold its address.
struct Owner {
  ThreadCache cache;
  std::array<ThreadCache**, 4> users{};

  ~Owner() {
    for (ThreadCache** user : users)
      if (user) *user = nullptr;
  }
};

// The cache of this thread. Static thread-local storage is little, and shared by all libraries of a process: the cache
// itself is elsewhere.
constinit thread_local struct {
  Owner* owner;
  bool ended;
  thread_end::Record at_end;
} own{};

void end() noexcept {
  own.ended = true;
  delete std::exchange(own.owner, nullptr);
}

// Sets `user` to the address of this thread's cache, unless the thread is about to end, or memory for a cache is short.
void attach(ThreadCache*& user) noexcept {
  if (own.ended || !caching) return;
  own.at_end.run = end;
  if (!thread_end::call(own.at_end)) return;
  if (!own.owner) own.owner = new (std::nothrow) Owner;
  if (!own.owner) return;
  auto& users = own.owner->users;
  const auto place = std::find(users.begin(), users.end(), nullptr);
  if (place == users.end()) return;
  *place = &user;
  user = &own.owner->cache;
}

// Large blocks that wait, the oldest first. The cache is never destroyed: tensors may be freed while the process ends.
class ProcessCache {
 public:
  void* take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = count_; i-- > 0;)
      if (blocks_[i].size == size) return remove(i);
    return nullptr;
  }
  void keep(void* block, std::size_t size) {
    if (size > limit) return platform::release(block);
    const std::lock_guard lock(mutex_);
    while (bytes_ + size > limit || count_ == blocks_.size()) platform::release(remove(0));
    blocks_[count_++] = {block, size};
    bytes_ += size;
  }

 private:
  static constexpr std::size_t limit = std::size_t{256} << 20;

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

  locks::Mutex mutex_;
  std::array<Block, 64> blocks_{};
  std::size_t count_ = 0, bytes_ = 0;
};

constinit ProcessCache large_blocks;

}  // namespace

constinit thread_local ThreadCache* thread_cache = nullptr;

ThreadCache::~ThreadCache() {
  for (Waiting* first : first_)
    while (first) platform::release(std::exchange(first, first->next));
}

void* allocate_for(ThreadCache*& user, std::size_t size) {
  if (!user) attach(user);
  void* block = caching && size > ThreadCache::largest ? large_blocks.take(size) : nullptr;
  return block ? block : from_system(size);
}

void release_for(ThreadCache*& user, void* block, std::size_t size) noexcept {
  if (!user) attach(user);
  if (caching && size > ThreadCache::largest) return large_blocks.keep(block, size);
  if (!user || !user->keep(block, SizeClass::of(size))) platform::release(block);
}

void* allocate_elsewhere(std::size_t size) { return allocate_for(thread_cache, size); }

void release_elsewhere(void* block, std::size_t size) noexcept { release_for(thread_cache, block, size); }

}  // namespace neml2_capi::memory
