#include "capi/aoti/builtin/container.h"

#include <exception>
#include <mutex>
#include <utility>

#include "capi/aoti/builtin/serial_regions.h"
#include "capi/error.h"

namespace neml2_capi::aoti::builtin {
namespace {

// What a package makes after its first run, which may make constants for all later ones, only this thread can reach.
class ConfinedRun {
 public:
  explicit ConfinedRun(bool confined) {
    if (memory::thread_cache) memory::thread_cache->in_confined_run = confined;
  }
  ~ConfinedRun() {
    if (memory::thread_cache) memory::thread_cache->in_confined_run = false;
  }
  ConfinedRun(const ConfinedRun&) = delete;
  ConfinedRun& operator=(const ConfinedRun&) = delete;
};

// The same memory, whose users are counted on their own.
Tensor lent(const Tensor& value) {
  const auto give_back = [](void* storage) { delete static_cast<Storage*>(storage); };
  Storage counted =
      Storage::wrap(value.data(), value.numel() * value.itemsize(), give_back, new Storage(value.storage()));
  return Tensor(std::move(counted), value.dtype(), value.sizes(), value.strides());
}

}  // namespace

Container::Container(Image& image, std::string package) : image_(image), package_(std::move(package)) {
  call([&] { return entry().create(&container_, 1, "cpu", nullptr); });
}

// The constants that were compiled in become those that are not in use, and can be freed.
Container::Container(Image& image, std::string package, std::vector<Constant> constants)
    : Container(image, std::move(package)) {
  replaced_ = std::move(constants);
  for (const Constant& constant : replaced_) lent_.push_back(lent(constant.value));
  std::vector<ConstantEntry> entries;
  for (std::size_t i = 0; i < lent_.size(); ++i) entries.push_back({replaced_[i].used_name, &lent_[i]});
  call([&] { return entry().use_constants(container_, entries.data(), entries.size(), true, false); });
  call([&] { return entry().swap_constants(container_); });
  call([&] { return entry().free_unused_constants(container_); });
}

Container::~Container() {
  try {
    std::vector<Tensor*> left = lent_.empty() ? std::vector<Tensor*>() : handles();
    for (std::size_t i = 0; i < left.size(); ++i)
      if (left[i]->data() != lent_[i].data()) left[i] = nullptr;  // compiled in
    entry().destroy(container_);
    // Code of torch 2.13 leaves the handles behind.
    for (std::size_t i = 0; i < left.size(); ++i)
      if (!lent_[i].storage().is_unique()) delete left[i];
  } catch (...) {  // nothing more can be done for it
  }
}

// Those that the package has of the constants that it does not make of others.
std::vector<Tensor*> Container::handles() const {
  const ConstantEntry* entries = nullptr;
  std::size_t count = 0;
  call([&] { return entry().constants(container_, &entries, &count, false); });
  std::vector<Tensor*> handles;
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

std::vector<Constant> Container::constants() const {
  if (!lent_.empty() || !entry().has_constants()) return replaced_;
  std::vector<Constant> constants;
  std::size_t count = 0;
  call([&] { return entry().num_constants(container_, &count); });
  for (Tensor* handle : handles()) constants.push_back({nullptr, nullptr, *handle});
  for (std::size_t i = 0, k = 0; i < count && k < constants.size(); ++i) {
    bool folded = false;
    call([&] { return entry().constant_is_folded(container_, i, &folded); });
    if (folded) continue;
    call([&] { return entry().constant_original_name(container_, i, &constants[k].name); });
    call([&] { return entry().constant_name(container_, i, &constants[k++].used_name); });
  }
  return constants;
}

// The first run folds constants into the container: it is alone.
void Container::run(Handles& inputs, Handles& outputs, RunContext& context, bool alone) const {
  std::unique_lock lock(image_.alone(), std::defer_lock);
  const bool has_run = has_run_.load(std::memory_order_acquire);
  if (alone || !has_run) lock.lock();
  image_.note_run();
  const SerialRegions serial(entry().openmp);
  const ConfinedRun confined(has_run);
  call([&] {
    return entry().run(container_, reinterpret_cast<void**>(inputs.data()), inputs.size(),
                       reinterpret_cast<void**>(outputs.data()), outputs.size(), nullptr, &context);
  });
  if (lock) has_run_.store(true, std::memory_order_release);
}

// Call into the package. Its C functions return a status, but some throw all the same.
template <class Call>
void Container::call(Call&& call) const {
  try {
    if (call() == 0) return;
  } catch (const std::exception& error) {
    report_failure(error.what());
  } catch (...) {
  }
  report_failure("");
}

// What the provider says comes first, since a package only knows that a call failed.
void Container::report_failure(std::string reason) const {
  if (reason.empty()) reason = Provider::get().last_error();
  const char* own = nullptr;
  if (reason.empty() && entry().last_error && entry().last_error(&own) == 0 && own) reason = own;
  if (reason.empty()) reason = "no reason was given";
  throw Error(NEML2_ERROR_RUNTIME, package_, join(package_, ": the compiled package failed: ", reason));
}

}  // namespace neml2_capi::aoti::builtin
