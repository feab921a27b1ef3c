// Processes, threads and signals of systems with POSIX.
#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "capi/base/locks.h"
#include "capi/platform/process.h"
#include "capi/platform/refusals.h"
#include "capi/platform/threads.h"

namespace neml2_capi {
namespace {

[[gnu::constructor]] void watch_forks() { locks::detail::watch_forks(pthread_atfork); }

sigset_t& set_in(unsigned char* bytes) { return *reinterpret_cast<sigset_t*>(bytes); }

sigset_t only_file_size() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

bool is_pending() {
  sigset_t set;
  return sigpending(&set) == 0 && sigismember(&set, SIGXFSZ) == 1;
}

// "ulimit -n is 4"
std::string limit(const char* option, auto resource, const char* unit = "") {
  rlimit found{};
  if (getrlimit(resource, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return join("ulimit ", option);
  return join("ulimit ", option, " is ", found.rlim_cur, unit);
}

}  // namespace

std::uintptr_t locks::detail::this_thread() { return reinterpret_cast<std::uintptr_t>(pthread_self()); }

std::string refusals::limit_behind(int error) {
  if (error == EFBIG) return limit("-f", RLIMIT_FSIZE, " bytes");
  return error == EMFILE ? limit("-n", RLIMIT_NOFILE) : "";
}

refusals::QuietWrites::QuietWrites() : was_pending_(is_pending()) {
  static_assert(sizeof(sigset_t) <= sizeof before_);
  const sigset_t one = only_file_size();
  pthread_sigmask(SIG_BLOCK, &one, &set_in(before_));
}

// Takes the signal that a write made; one from before is the host's.
refusals::QuietWrites::~QuietWrites() {
  const int error = errno;
  const sigset_t one = only_file_size();
#if defined(__APPLE__)
  int taken = 0;
  if (!was_pending_ && is_pending()) sigwait(&one, &taken);  // the system has no sigtimedwait
#else
  const timespec now{};
  while (!was_pending_ && sigtimedwait(&one, nullptr, &now) < 0 && errno == EINTR) continue;
#endif
  pthread_sigmask(SIG_SETMASK, &set_in(before_), nullptr);
  errno = error;
}

}  // namespace neml2_capi

namespace neml2_capi::platform {

BlockedSignals::BlockedSignals() {
  static_assert(sizeof(sigset_t) <= sizeof before_);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &set_in(before_));
}
BlockedSignals::~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &set_in(before_), nullptr); }

std::int64_t level2_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static constinit std::atomic<long> known = 0;
  long bytes = known.load(std::memory_order_relaxed);
  if (bytes == 0) known = bytes = std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), -1L);
  if (bytes > 0) return std::clamp<std::int64_t>(bytes, 1 << 18, 1 << 22);
#endif
  return 1 << 19;
}

std::int64_t process_id() { return ::getpid(); }
bool is_running(std::int64_t process) { return ::kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM; }

std::string host_name() {
  utsname system{};
  return ::uname(&system) == 0 ? system.nodename : "";
}

std::tm utc(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return parts;
}

void* allocate(std::size_t alignment, std::size_t size) noexcept { return std::aligned_alloc(alignment, size); }
void release(void* block) noexcept { std::free(block); }

}  // namespace neml2_capi::platform
#endif
