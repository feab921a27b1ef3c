/* To be linked with a host: if NEML2_TEST_NO_TMPFILE is set, its file system has no files without a name; if
 * NEML2_TEST_NO_PROC is set, there is no /proc/self/fd. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  if ((flags & O_TMPFILE) == O_TMPFILE && getenv("NEML2_TEST_NO_TMPFILE")) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int access(const char *path, int mode) {
  if (strncmp(path, "/proc/self/fd", 13) == 0 && getenv("NEML2_TEST_NO_PROC")) {
    errno = ENOENT;
    return -1;
  }
  return faccessat(AT_FDCWD, path, mode, 0);
}
