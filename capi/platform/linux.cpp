// What Linux has of its own.
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "capi/base/locks.h"
#include "capi/platform/files.h"
#include "capi/platform/process.h"
#include "capi/platform/threads.h"

namespace neml2_capi::locks {
namespace {

long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* most) {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, most, nullptr, 0);
}

}  // namespace

void detail::wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  futex(word, FUTEX_WAIT, value, nullptr);
}

bool detail::wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds most) {
  constexpr long second = 1'000'000'000;
  const timespec time{most.count() / second, most.count() % second};
  const auto end = std::chrono::steady_clock::now() + most;
  futex(word, FUTEX_WAIT, value, &time);
  return std::chrono::steady_clock::now() < end;
}

void detail::wake(std::atomic<std::uint32_t>& word, int threads) {
  futex(word, FUTEX_WAKE, static_cast<std::uint32_t>(threads), nullptr);
}

}  // namespace neml2_capi::locks

namespace neml2_capi::platform {

Processors Processors::of_this_thread() {
  Processors processors;
  CPU_ZERO(&processors.set_);
  sched_getaffinity(0, sizeof(processors.set_), &processors.set_);
  return processors;
}

int Processors::count() const { return std::max(1, CPU_COUNT(&set_)); }

void Processors::take_thread(Processors& mine) const {
  if (!CPU_EQUAL(&mine.set_, &set_) && sched_setaffinity(0, sizeof(set_), &set_) == 0) mine = *this;
}

std::string processor_name() {
  File file;
  char first[4096];  // the first of the processors, which are alike
  if (const std::ptrdiff_t count = file.open("/proc/cpuinfo") ? file.read(first, sizeof first) : 0; count > 0) {
    const std::string_view text(first, static_cast<std::size_t>(count));
    const std::size_t line = text.find("model name"), begin = text.find(": ", line);
    if (line != text.npos && begin != text.npos)
      return std::string(text.substr(begin + 2, text.find('\n', begin) - begin - 2));
  }
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "";
}

}  // namespace neml2_capi::platform
#endif
