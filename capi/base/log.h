// Log of the library: records wait in a queue until the host takes them. The library prints nothing.
//
// The queue is bounded and forgets its oldest records. Threads may write and take at once. The child of a fork begins
// with an empty queue. NEML2_LOGS, read at the first use, gives the levels until the host sets others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "capi/base/error.h"

namespace neml2_capi::log {

enum class Level : std::int32_t {
  silent = NEML2_LOG_SILENT,
  warning = NEML2_LOG_WARNING,
  info = NEML2_LOG_INFO,
  debug = NEML2_LOG_DEBUG
};

enum class Channel : std::size_t { newton, linear, substep, model, tensor, driver, bounds };
inline constexpr std::size_t num_channels = 7;

const char* name_of(Channel channel);
std::optional<Channel> channel_named(std::string_view name);

Level level_of(Channel channel);
void set_level(Channel channel, Level level);

struct Record {
  Level level;
  Channel channel;
  std::string message;  // shorter than NEML2_LOG_LENGTH
  std::thread::id thread = std::this_thread::get_id();
};

// Removes the oldest record and returns it. A warning comes first if records were forgotten.
std::optional<Record> take();
// Removes the oldest record of the calling thread and returns it.
std::optional<Record> take_own();
std::int64_t count();

namespace detail {

// Level of each channel. `unread` stands until NEML2_LOGS is read; it is above all levels, so one comparison finds it.
inline constexpr std::int32_t unread = NEML2_LOG_DEBUG + 1;
extern std::atomic<std::int32_t> levels[num_channels];

}  // namespace detail

// Tells whether a record of this level is wanted. It costs one load if none is.
inline bool on(Channel channel, Level level) {
  const std::int32_t now = detail::levels[static_cast<std::size_t>(channel)].load(std::memory_order_relaxed);
  if (now < static_cast<std::int32_t>(level)) return false;
  return now != detail::unread || level_of(channel) >= level;
}

void put(Channel channel, Level level, std::string message);

// Writes a record, and joins its pieces only if it is wanted.
template <class... Pieces>
void write(Channel channel, Level level, const Pieces&... pieces) noexcept {
  try {
    if (on(channel, level)) put(channel, level, join(pieces...));
  } catch (...) {
    // Memory that lacks for a record is no reason to fail.
  }
}

// Returns a number in seven digits.
std::string scientific(double value);

}  // namespace neml2_capi::log
