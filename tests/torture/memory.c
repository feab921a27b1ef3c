#define _GNU_SOURCE
#include "memory.h"

#include <errno.h>

#ifdef MEMORY_CAN_FAIL

#include <dlfcn.h>
#include <execinfo.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* The functions of this file replace the C library's in all libraries of the process. */
#pragma GCC visibility push(default)

int memory_traces;
static int counting, lasts, failed_in_loader, failed_in_package;
static __thread int opening; /* a shared object */
static long fails_at, asked, failures, blocks;

void memory_prepare(void) {
  void *frame;
  backtrace(&frame, 1); /* the first one takes memory itself */
}

void memory_fails(long at, int lasting) {
  fails_at = at;
  lasts = lasting;
  asked = failures = failed_in_loader = failed_in_package = 0;
  __atomic_store_n(&counting, 1, __ATOMIC_SEQ_CST);
}

long memory_returns(void) {
  __atomic_store_n(&counting, 0, __ATOMIC_SEQ_CST);
  return asked;
}

long memory_failures(void) { return failures; }

int memory_failed_in_loader(void) { return failed_in_loader; }

int memory_failed_in_package(void) { return failed_in_package; }

long memory_blocks(void) { return __atomic_load_n(&blocks, __ATOMIC_SEQ_CST); }

void memory_trace(void) {
  void *frames[40];
  const int was = memory_traces;
  memory_traces = 0;
  backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
  memory_traces = was;
}

/* Tells whether memory is asked for that is left alone. The dynamic loader asks for other memory, too, while it opens an
 * object. */
static int is_left_alone(const void *caller) {
  Dl_info info = {0};
  if (!dladdr(caller, &info) || !info.dli_fname) return 0;
  if (strstr(info.dli_fname, "/ld-linux")) {
    if (!opening) return 1;
    failed_in_loader = 1;
  }
  return info.dli_sname && strcmp(info.dli_sname, "__cxa_thread_atexit_impl") == 0;
}

/* Tells whether the code of a package asks, through the C++ library at most; packages are opened from memory. */
static int is_asked_by_package(void) {
  enum { NEAREST = 5 };
  void *frames[NEAREST];
  Dl_info info = {0};
  const int count = backtrace(frames, NEAREST);
  for (int i = 0; i < count; ++i)
    if (dladdr(frames[i], &info) && info.dli_fname && strncmp(info.dli_fname, "/proc/self/fd/", 14) == 0) return 1;
  return 0;
}

static int fails(const void *caller) {
  if (!__atomic_load_n(&counting, __ATOMIC_RELAXED)) return 0;
  const long number = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
  if (fails_at == 0 || number < fails_at || (number > fails_at && !lasts)) return 0;
  if (is_left_alone(caller)) return 0;
  if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) == 0) {
    failed_in_package = is_asked_by_package();
    if (memory_traces) memory_trace();
  }
  errno = ENOMEM;
  return 1;
}

static void *counted(void *block) {
  if (block) __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
  return block;
}

void *malloc(size_t bytes) { return fails(__builtin_return_address(0)) ? NULL : counted(__libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : counted(__libc_calloc(count, bytes));
}
void *memalign(size_t alignment, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : counted(__libc_memalign(alignment, bytes));
}
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

void *dlopen(const char *path, int mode) {
  static void *(*real)(const char *, int);
  void *found, *library;
  if (!real) {
    found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&real, &found, sizeof real);
  }
  ++opening;
  library = real(path, mode);
  --opening;
  return library;
}

int posix_memalign(void **block, size_t alignment, size_t bytes) {
  void *made = memalign(alignment, bytes);
  if (made) *block = made;
  return made ? 0 : ENOMEM;
}

void *realloc(void *block, size_t bytes) {
  void *made;
  if (fails(__builtin_return_address(0))) return NULL;
  made = __libc_realloc(block, bytes);
  if (!block) return counted(made);
  if (!bytes && !made) __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
  return made;
}

void free(void *block) {
  if (block) __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
  __libc_free(block);
}

#endif
