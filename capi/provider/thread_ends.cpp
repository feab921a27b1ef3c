// Destructors of a package's thread_local objects. The C library ends the process if it lacks the memory to remember
// one; here there is always a place, or the object is not destroyed: its memory goes with the process.
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <iterator>
#include <new>
#include <utility>

#include "capi/provider/exports.h"

namespace {

// A destructor that waits for the end of its thread, the last one first.
struct Waiting {
  void (*destroy)(void*);
  void* object;
  Waiting* next;
  bool is_reserve;
};

// Places for when there is no memory, by one thread once.
constinit Waiting reserve[256] = {};
constinit std::atomic<std::size_t> taken = 0;

Waiting* place() {
  if (auto* const made = new (std::nothrow) Waiting{}) return made;
  const std::size_t number = taken.fetch_add(1, std::memory_order_relaxed);
  if (number >= std::size(reserve)) return nullptr;
  reserve[number].is_reserve = true;
  return &reserve[number];
}

void end_thread(void* first);

// 32 keys of a process need no memory of their own: this one is made when the library is opened.
struct Key {
  pthread_key_t key{};
  bool made = pthread_key_create(&key, end_thread) == 0;
};

const Key only;

// A destructor may make an object that has one.
void end_thread(void* first) {
  for (auto* waiting = static_cast<Waiting*>(first); waiting;) {
    pthread_setspecific(only.key, waiting->next);
    waiting->destroy(waiting->object);
    if (!waiting->is_reserve) delete waiting;
    waiting = static_cast<Waiting*>(pthread_getspecific(only.key));
  }
}

}  // namespace

// __cxa_thread_atexit and __cxa_thread_atexit_impl. The library that the object is in stays: code is never unmapped.
NML2_EXPORT int nml2a_thread_atexit(void (*destroy)(void*), void* object, void* /*library*/) {
  Waiting* const waiting = only.made ? place() : nullptr;
  if (!waiting) return 0;
  waiting->destroy = destroy;
  waiting->object = object;
  waiting->next = static_cast<Waiting*>(pthread_getspecific(only.key));
  if (pthread_setspecific(only.key, waiting) != 0 && !waiting->is_reserve) delete waiting;
  return 0;
}

NML2_EXPORT int nml2a_thread_atexit_impl(void (*destroy)(void*), void* object, void* library) {
  return nml2a_thread_atexit(destroy, object, library);
}
