// What the library has to tell of its work: records that wait in a queue until the host takes them. Nothing is printed.
//
// The queue is bounded, and forgets the oldest; threads write and take at once; the child of a fork begins with an
// empty one. Levels are those that NEML2_LOGS names when a level is first asked for, until the host sets others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "capi/base/error.h"

namespace neml2_capi::log {

enum class Level : std::int32_t {
  silent = NEML2_LOG_SILENT,
  warning = NEML2_LOG_WARNING,
  info = NEML2_LOG_INFO,
  debug = NEML2_LOG_DEBUG
};

enum class Channel : std::size_t { newton, linear, substep, model, tensor, driver };
inline constexpr std::size_t num_channels = 6;

const char* name_of(Channel channel);
std::optional<Channel> channel_named(std::string_view name);

Level level_of(Channel channel);
void set_level(Channel channel, Level level);

struct Record {
  Level level;
  Channel channel;
  std::string message;  // shorter than NEML2_LOG_LENGTH
};

// The oldest record, which leaves the queue. Where others before it were forgotten, a warning says so first.
std::optional<Record> take();
std::int64_t count();

namespace detail {

// The level of each channel, `unread` before NEML2_LOGS was: greater than all, so that one comparison is enough.
inline constexpr std::int32_t unread = NEML2_LOG_DEBUG + 1;
extern std::atomic<std::int32_t> levels[num_channels];

}  // namespace detail

// Is somebody listening? One load where nobody is.
inline bool on(Channel channel, Level level) {
  const std::int32_t now = detail::levels[static_cast<std::size_t>(channel)].load(std::memory_order_relaxed);
  if (now < static_cast<std::int32_t>(level)) return false;
  return now != detail::unread || level_of(channel) >= level;
}

void put(Channel channel, Level level, std::string message);

// Write a record of these parts, which are put together only where somebody is listening.
template <class... Parts>
void write(Channel channel, Level level, const Parts&... parts) noexcept {
  try {
    if (on(channel, level)) put(channel, level, join(parts...));
  } catch (...) {
    // No memory for a record is no reason to fail.
  }
}

// A number in seven digits.
std::string scientific(double value);

}  // namespace neml2_capi::log
