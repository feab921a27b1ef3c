#include "capi/model/capsule_folder.h"

#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>

namespace neml2_capi::model {

const CapsuleFolder* CapsuleFolder::of(std::string_view path) {
  // The map is never destroyed: threads may evaluate when the process ends.
  static auto* const folders = new std::map<std::string, std::unique_ptr<const CapsuleFolder>, std::less<>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto it = folders->find(path);
  if (it == folders->end()) it = folders->emplace(path, std::make_unique<const CapsuleFolder>(path)).first;
  return it->second.get();
}

std::int64_t CapsuleFolder::next_number() const {
  const pid_t self = ::getpid();
  pid_t before = owner_.load();
  if (before != self && owner_.compare_exchange_strong(before, self)) count_.store(0);
  return ++count_;
}

}  // namespace neml2_capi::model
