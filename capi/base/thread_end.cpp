#include "capi/base/thread_end.h"

#include <pthread.h>

#include <utility>

namespace neml2_capi::thread_end {
namespace {

void run(void* first) {
  for (Record* record = static_cast<Record*>(first); record;) {
    Record* const next = std::exchange(record->next, nullptr);
    record->waits = false;
    record->run();
    record = next;
  }
}

// Key of the records of a thread, made when the library is opened: 32 keys of a process need no memory of their own.
struct Key {
  pthread_key_t key{};
  bool made = pthread_key_create(&key, run) == 0;
};

const Key& key() {
  static const Key only;
  return only;
}

[[gnu::constructor]] void make_key() { key(); }

}  // namespace

bool call(Record& record) noexcept {
  if (record.waits) return true;
  if (!key().made) return false;
  record.next = static_cast<Record*>(pthread_getspecific(key().key));
  return record.waits = pthread_setspecific(key().key, &record) == 0;
}

}  // namespace neml2_capi::thread_end
