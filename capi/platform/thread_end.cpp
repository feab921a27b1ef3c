#include "capi/platform/thread_end.h"

#include <utility>

#if defined(_WIN32)
#include <windows.h>
#define AT_THREAD_END WINAPI
#else
#include <pthread.h>
#define AT_THREAD_END
#endif

namespace neml2_capi::thread_end {
namespace {

void AT_THREAD_END run(void* first) {
  for (Record* record = static_cast<Record*>(first); record;) {
    Record* const next = std::exchange(record->next, nullptr);
    record->waits = false;
    record->run();
    record = next;
  }
}

// Key of the records of a thread, made when the library is opened: 32 keys of a process need no memory of their own.
struct Key {
#if defined(_WIN32)
  DWORD key = FlsAlloc(run);
  bool made = key != FLS_OUT_OF_INDEXES;

  void* first() const { return FlsGetValue(key); }
  bool set(Record& record) const { return FlsSetValue(key, &record); }
#else
  pthread_key_t key{};
  bool made = pthread_key_create(&key, run) == 0;

  void* first() const { return pthread_getspecific(key); }
  bool set(Record& record) const { return pthread_setspecific(key, &record) == 0; }
#endif
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
  record.next = static_cast<Record*>(key().first());
  return record.waits = key().set(record);
}

}  // namespace neml2_capi::thread_end
