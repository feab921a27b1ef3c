// The log: levels, and the records that wait.
#include "capi/base/log.h"

#include <algorithm>
#include <vector>

#include "capi/abi/guard.h"

namespace neml2_capi::abi {
namespace {

// Returns the channels of a name.
std::vector<log::Channel> channels_named(const char* name) {
  const std::string_view wanted = &required(name, "channel");
  if (const auto channel = log::channel_named(wanted)) return {*channel};
  std::vector<log::Channel> all;
  std::string names = "all";
  for (std::size_t i = 0; i < log::num_channels; ++i) {
    all.push_back(static_cast<log::Channel>(i));
    names += join(", ", log::name_of(all.back()));
  }
  if (wanted == "all") return all;
  throw Error(NEML2_ERROR_NAME, std::string(wanted),
              join("The log has no channel '", wanted, "'. The channels are: ", names, "."));
}

}  // namespace
}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_log_level_set(const char* channel, int32_t level) {
  return guarded([&] {
    const auto channels = channels_named(channel);
    if (level < NEML2_LOG_SILENT || level > NEML2_LOG_DEBUG)
      throw Error(NEML2_ERROR_ARGUMENT, "level",
                  join("There is no level ", level,
                       "; expected NEML2_LOG_SILENT, NEML2_LOG_WARNING, NEML2_LOG_INFO or NEML2_LOG_DEBUG."));
    for (log::Channel each : channels) log::set_level(each, static_cast<log::Level>(level));
  });
}

int32_t neml2_log_level_get(int32_t* out, const char* channel) {
  return guarded([&] {
    required(out, "out");
    std::int32_t greatest = NEML2_LOG_SILENT;
    for (log::Channel each : channels_named(channel))
      greatest = std::max(greatest, static_cast<std::int32_t>(log::level_of(each)));
    *out = greatest;
  });
}

int32_t neml2_log_count(int64_t* out) {
  return guarded([&] { required(out, "out") = log::count(); });
}

int32_t neml2_log_next(int32_t* level, const char** channel, char* buffer, int64_t capacity, int64_t* needed) {
  return guarded([&] {
    required(level, "level");
    const auto record = log::take();
    *level = static_cast<std::int32_t>(record ? record->level : log::Level::silent);
    if (channel) *channel = record ? log::name_of(record->channel) : "";
    return copy_text(record ? record->message : std::string(), buffer, capacity, needed);
  });
}
