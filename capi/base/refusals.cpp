#include "capi/base/refusals.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include <cerrno>
#include <cstring>

namespace neml2_capi::refusals {
namespace {

// "ulimit -n is 4"
std::string limit(const char* option, int resource, const char* unit = "") {
  rlimit found{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &found) != 0 || found.rlim_cur == RLIM_INFINITY)
    return join("ulimit ", option);
  return join("ulimit ", option, " is ", found.rlim_cur, unit);
}

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

}  // namespace

bool is_limit(int error) {
  for (const int known : {EFBIG, EMFILE, ENFILE, ENOSPC, EDQUOT, EROFS})
    if (error == known) return true;
  return false;
}

std::string why(int error) {
  switch (error) {
    case EFBIG: return join("a file of this process may not be so large (", limit("-f", RLIMIT_FSIZE, " bytes"), ")");
    case EMFILE: return join("the process has as many files open as it may (", limit("-n", RLIMIT_NOFILE), ")");
    case ENFILE: return "the system has as many files open as it may";
    case ENOSPC: return "there is no space left on the disk";
    case EDQUOT: return "the quota of the disk is used up";
    case EROFS: return "the file system is read-only";
    default: return std::strerror(error);
  }
}

std::string remedy(int error, const std::string& otherwise) {
  switch (error) {
    case EFBIG: return "Raise that limit.";
    case EMFILE: return "Close files, or raise that limit.";
    case ENFILE: return "Try again when other programs have closed files.";
    case ENOSPC:
    case EDQUOT: return "Free some of it, or name another folder.";
    case EROFS: return "Name another folder.";
    default: return otherwise;
  }
}

QuietWrites::QuietWrites() : was_pending_(is_pending()) {
  const sigset_t one = only_file_size();
  pthread_sigmask(SIG_BLOCK, &one, &before_);
}

// Takes the signal that a write made; one from before is the host's.
QuietWrites::~QuietWrites() {
  const int error = errno;
  const sigset_t one = only_file_size();
  const timespec now{};
  while (!was_pending_ && sigtimedwait(&one, nullptr, &now) < 0 && errno == EINTR) continue;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace neml2_capi::refusals
