#include "capi/loader/container.h"

#include <cerrno>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "capi/base/error.h"
#include "capi/platform/shared_object.h"

namespace neml2_capi::aoti {

Container::Container(Image& image, const Handling& handling, std::string package, Device device, const char* kernels)
    : image_(image), handling_(handling), package_(std::move(package)) {
  call([&] { return entry().create(&container_, 1, device.str().c_str(), kernels); });
}

// Replaces the compiled-in constants, which are then out of use and freed.
Container::Container(Image& image, const Handling& handling, std::string package,
                     std::vector<PackagedConstant> constants)
    : Container(image, handling, std::move(package), Device(),
                nullptr) {  // from here on the destructor runs after an exception, too
  replaced_ = std::move(constants);
  use_replaced();
}

void Container::use_replaced() {
  std::vector<ConstantEntry> entries;
  lent_.reserve(replaced_.size());  // so that each handle that was lent is taken back
  for (const PackagedConstant& constant : replaced_) {
    lent_.push_back(handling_.lend(constant.value));
    entries.push_back({constant.used_name, lent_.back()});
  }
  call([&] { return entry().use_constants(container_, entries.data(), entries.size(), true, false); });
  call([&] { return entry().swap_constants(container_); });
  own_ = handles();
  for (std::size_t i = 0; i < own_.size(); ++i)
    if (handling_.tensor_of(own_[i]).data() != replaced_[i].value.data()) own_[i] = nullptr;  // compiled in
  call([&] { return entry().free_unused_constants(container_); });
}

Container::~Container() {
  destroy();
  for (void* lent : lent_) handling_.take_back(lent);
}

void Container::destroy() noexcept {
  try {
    handling_.destroy([this] { entry().destroy(container_); }, std::move(own_), lent_);
  } catch (...) {  // a destructor cannot report it
  }
}

// Returns the package's handles of its constants, without those folded from others.
std::vector<void*> Container::handles() const {
  const ConstantEntry* entries = nullptr;
  std::size_t count = 0;
  call([&] { return entry().constants(container_, &entries, &count, false); });
  std::vector<void*> handles;
  for (std::size_t i = 0; i < count; ++i) handles.push_back(entries[i].handle);
  return handles;
}

std::size_t Container::num_inputs() const {
  std::size_t count = 0;
  call([&] { return entry().num_inputs(container_, &count); });
  return count;
}

std::size_t Container::num_outputs() const {
  std::size_t count = 0;
  call([&] { return entry().num_outputs(container_, &count); });
  return count;
}

std::vector<PackagedConstant> Container::constants() const {
  if (!lent_.empty() || !entry().has_constants()) return replaced_;
  std::vector<PackagedConstant> constants;
  std::size_t count = 0;
  call([&] { return entry().num_constants(container_, &count); });
  for (void* handle : handles()) constants.push_back({nullptr, nullptr, handling_.tensor_of(handle)});
  for (std::size_t i = 0, k = 0; i < count && k < constants.size(); ++i) {
    bool folded = false;
    call([&] { return entry().constant_is_folded(container_, i, &folded); });
    if (folded) continue;
    call([&] { return entry().constant_original_name(container_, i, &constants[k].name); });
    call([&] { return entry().constant_name(container_, i, &constants[k++].used_name); });
  }
  return constants;
}

// The first run is alone, since it folds constants into the container.
void Container::run(void** inputs, std::size_t num_inputs, void** outputs, std::size_t num_outputs, void* proxy,
                    bool alone, void* stream) const {
  std::unique_lock lock(image_.alone(), std::defer_lock);
  if (alone || !has_run()) lock.lock();
  if (!has_run()) platform::require_memory_for_loader();
  image_.note_run();
  call([&] { return entry().run(container_, inputs, num_inputs, outputs, num_outputs, stream, proxy); }, proxy);
  if (lock) has_run_.store(true, std::memory_order_release);
}

// Calls into the package. Its C functions return a status, but some throw all the same. If they lacked memory, only
// errno tells it.
template <class Call>
void Container::call(Call&& call, void* proxy) const {
  errno = 0;
  try {
    if (call() == 0) return;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    report_failure(error.what());
  } catch (...) {
  }
  const bool lacked_memory = errno == ENOMEM;
  std::string reason = handling_.reason(proxy);
  if (reason.empty() && lacked_memory) throw std::bad_alloc();
  report_failure(std::move(reason));
}

// Throws with the runtime's reason if there is one, since a package only knows that a call failed.
void Container::report_failure(std::string reason) const {
  const char* own = nullptr;
  if (reason.empty() && entry().last_error && entry().last_error(&own) == 0 && own) reason = own;
  if (reason.empty()) reason = "it gave no reason";
  if (!reason.ends_with('.')) reason += '.';
  throw Error(NEML2_ERROR_RUNTIME, package_, join(package_, ": The package failed: ", reason));
}

}  // namespace neml2_capi::aoti
