#include "capi/base/log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

#include "capi/base/locks.h"
#include "capi/base/print_number.h"

namespace neml2_capi::log {
namespace {

constexpr const char* environment = "NEML2_LOGS";
constexpr std::array<const char*, num_channels> channel_names = {"newton", "linear", "substep", "model",
                                                                 "tensor", "driver", "bounds"};
// NEML2's names of the levels.
constexpr std::pair<const char*, Level> level_names[] = {
    {"silent", Level::silent},   {"off", Level::silent},   {"none", Level::silent}, {"0", Level::silent},
    {"warning", Level::warning}, {"warn", Level::warning}, {"1", Level::warning},   {"info", Level::info},
    {"2", Level::info},          {"debug", Level::debug},  {"3", Level::debug}};

std::optional<Level> level_named(std::string_view name) {
  for (const auto& [known, level] : level_names)
    if (name == known) return level;
  return std::nullopt;
}

// Returns the text in small letters, without blanks around it.
std::string tidy(std::string_view text) {
  const auto is_blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  std::string tidied(text);
  for (char& c : tidied) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return tidied;
}

void store(Channel channel, Level level) {
  detail::levels[static_cast<std::size_t>(channel)].store(static_cast<std::int32_t>(level), std::memory_order_relaxed);
}

class Queue {
 public:
  Level level_of(Channel channel) {
    const std::lock_guard lock(mutex_);
    read_environment();
    return static_cast<Level>(detail::levels[static_cast<std::size_t>(channel)].load(std::memory_order_relaxed));
  }

  void set_level(Channel channel, Level level) {
    const std::lock_guard lock(mutex_);
    read_environment();  // first, so that it does not overrule the host
    store(channel, level);
  }

  void put(Record record) {
    const std::lock_guard lock(mutex_);
    add(std::move(record));
  }

  std::optional<Record> take() {
    const std::lock_guard lock(mutex_);
    read_environment();
    for (std::size_t channel = 0; channel < num_channels; ++channel)
      if (const std::int64_t lost = std::exchange(forgotten_[channel], 0))
        return Record{Level::warning, static_cast<Channel>(channel),
                      join("The queue was full, and the ", lost, " oldest records of '", channel_names[channel],
                           "' were forgotten. Take records more often, or set a lower level.")};
    if (records_.empty()) return std::nullopt;
    return pop(records_.begin());
  }

  std::optional<Record> take_own() {
    const std::lock_guard lock(mutex_);
    const auto own = std::ranges::find(records_, std::this_thread::get_id(), &Record::thread);
    if (own == records_.end()) return std::nullopt;
    return pop(own);
  }

  std::int64_t count() {
    const std::lock_guard lock(mutex_);
    read_environment();
    return static_cast<std::int64_t>(records_.size()) +
           std::count_if(forgotten_.begin(), forgotten_.end(), [](std::int64_t lost) { return lost > 0; });
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    records_.clear();
    bytes_ = 0;
    forgotten_.fill(0);
  }

 private:
  static constexpr std::size_t most_bytes = 1 << 20;

  static std::size_t size_of(const Record& record) { return sizeof(Record) + record.message.size(); }

  void add(Record record) {
    if (record.message.size() >= NEML2_LOG_LENGTH) record.message.resize(NEML2_LOG_LENGTH - 1);
    records_.push_back(std::move(record));
    bytes_ += size_of(records_.back());
    while (bytes_ > most_bytes) ++forgotten_[static_cast<std::size_t>(pop(records_.begin()).channel)];
  }

  Record pop(std::deque<Record>::iterator at) {
    Record record = std::move(*at);
    records_.erase(at);
    bytes_ -= size_of(record);
    return record;
  }

  // Reads entries such as newton=info, separated by commas, at the first use. `all` stands for channels not named.
  void read_environment() {
    if (read_) return;
    const char* text = std::getenv(environment);
    std::string misunderstood;
    std::array<std::optional<Level>, num_channels> said;
    std::optional<Level> of_all;
    for (std::string_view rest = text ? text : ""; !rest.empty();) {
      const std::string_view entry = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
      const std::size_t equals = entry.find('=');
      const std::string name = tidy(entry.substr(0, equals));
      const auto channel = channel_named(name);
      const auto level = equals == entry.npos ? std::nullopt : level_named(tidy(entry.substr(equals + 1)));
      if (level && channel)
        said[static_cast<std::size_t>(*channel)] = level;
      else if (level && name == "all")
        of_all = level;
      else if (!tidy(entry).empty())
        misunderstood += join(misunderstood.empty() ? "'" : ", '", entry, "'");
    }
    if (!misunderstood.empty())
      add({Level::warning, Channel::model,
           join("The environment variable ", environment, " holds ", misunderstood,
                ", which is left out. Expected channel=level, with commas between several; the channels are all, "
                "newton, linear, substep, model, tensor, driver, bounds, and the levels silent, warning, info, "
                "debug.")});
    for (std::size_t channel = 0; channel < num_channels; ++channel)
      store(static_cast<Channel>(channel), said[channel].value_or(of_all.value_or(Level::warning)));
    read_ = true;  // last, so that the next use tries again after a lack of memory
  }

  locks::Mutex mutex_;  // guards what follows
  std::deque<Record> records_;
  std::size_t bytes_ = 0;
  std::array<std::int64_t, num_channels> forgotten_{};
  bool read_ = false;
};

constinit locks::Lazy<Queue> only;

Queue& queue() { return only.get(); }

// The parent alone tells the records that wait.
const locks::InChild forget_records([] {
  if (Queue* const made = only.made()) made->clear();
});

}  // namespace

std::atomic<std::int32_t> detail::levels[] = {unread, unread, unread, unread, unread, unread, unread};

const char* name_of(Channel channel) { return channel_names[static_cast<std::size_t>(channel)]; }

std::optional<Channel> channel_named(std::string_view name) {
  const auto it = std::find(channel_names.begin(), channel_names.end(), name);
  if (it == channel_names.end()) return std::nullopt;
  return static_cast<Channel>(it - channel_names.begin());
}

Level level_of(Channel channel) { return queue().level_of(channel); }

void set_level(Channel channel, Level level) { queue().set_level(channel, level); }

void put(Channel channel, Level level, std::string message) { queue().put({level, channel, std::move(message)}); }

std::optional<Record> take() { return queue().take(); }

std::optional<Record> take_own() { return queue().take_own(); }

std::int64_t count() { return queue().count(); }

std::string scientific(double value) {
  char text[32];
  return std::string(print_number(text, sizeof text, "%.6e", value));
}

}  // namespace neml2_capi::log
