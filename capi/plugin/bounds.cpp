#include "capi/plugin/bounds.h"

#include <atomic>
#include <cstdio>

#include "capi/base/log.h"
#include "capi/plugin/exported.h"
#include "capi/plugin/fatal.h"
#include "capi/plugin/point.h"

namespace neml2_capi::plugin {
namespace {

// By the number that MFront has for each: nothing, a warning, failure.
constexpr const char* POLICIES[] = {"off", "warn", "fail"};
constexpr int UNSET = -1;

std::atomic<int> policy = UNSET;

}  // namespace

void apply_policy(const Material& material) {
  if (const int number = policy.load(); number != UNSET)
    neml2_model_option_set_text(material.model.get(), "bounds", POLICIES[number]);
}

void tell_warnings(const Material& material, const char* remark) noexcept {
  if (!material.has_bounds && !material.has_capsules) return;
  char whole[NEML2_LOG_LENGTH + 64];
  while (const auto record = log::take_own())  // other threads may evaluate other materials
    if (record->channel == log::Channel::bounds || (material.has_capsules && record->channel == log::Channel::model)) {
      std::snprintf(whole, sizeof whole, "%s%s", record->message.c_str(), remark);
      warn(material.mapping.material.c_str(), whole);
    }
}

void give_up_beyond(const Material& material, double cut) {
  const std::string words = last_words();
  if (cut >= 1) refuse(words);
  if (material.out_of_bounds->note()) warn(material.mapping.material.c_str(), words.c_str());
}

}  // namespace neml2_capi::plugin

// The policy of MFront's behaviours, for all materials of the library.
extern "C" EXPORTED void NEML2_setOutOfBoundsPolicy(int number) {
  using namespace neml2_capi::plugin;
  if (number < 0 || number > 2) {
    std::fprintf(stderr,
                 "neml2_capi: there is no policy %d for what is out of bounds; expected 0 (none), 1 (a warning) "
                 "or 2 (failure).\n",
                 number);
    return;
  }
  policy = number;
  for_each_opened(apply_policy);
}
