#include "capi/platform/refusals.h"

#include <cerrno>
#include <cstring>

namespace neml2_capi::refusals {
namespace {

#ifdef EDQUOT
constexpr int quota = EDQUOT;
#else
constexpr int quota = -1;  // of no error
#endif

std::string with_limit(const char* refusal, int error) {
  const std::string limit = limit_behind(error);
  return limit.empty() ? refusal : join(refusal, " (", limit, ")");
}

}  // namespace

bool is_limit(int error) {
  for (const int known : {EFBIG, EMFILE, ENFILE, ENOSPC, quota, EROFS})
    if (error == known) return true;
  return false;
}

std::string why(int error) {
  switch (error) {
    case EFBIG: return with_limit("a file of this process may not be so large", error);
    case EMFILE: return with_limit("the process has as many files open as it may", error);
    case ENFILE: return "the system has as many files open as it may";
    case ENOSPC: return "there is no space left on the disk";
    case quota: return "the quota of the disk is used up";
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
    case quota: return "Free some of it, or name another folder.";
    case EROFS: return "Name another folder.";
    default: return otherwise;
  }
}

}  // namespace neml2_capi::refusals
