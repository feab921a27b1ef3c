/* Fails each system call of some work in turn, and asks that the library says so and goes on.
 *
 *   torture_system WORK [--every N] [--from K] [--to K] [--call NAME] [--plugin FILE] [--verbose]
 *
 * A tracer runs the walk of walk.h in a child, and makes its k-th open fail with EMFILE, then its k-th read with EIO, and
 * so on, wherever it comes from: this library, the C++ library, or the dynamic loader. The walk frees what it has, and a
 * second one, left alone, must come to the numbers of one that was always left alone.
 *
 * A call may fail without an effect, if there is another way. Else there must be a status that fits, with words; an
 * internal error or a death is none. 77: this system lets nobody trace. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "neml2_capi.h"
#include "walk.h"

#if !defined(__x86_64__) || !defined(__linux__)
int main(void) { return 77; }
#else

/* A call of the system that no other code makes: the child tells that its walk begins and ends. */
enum { BEGIN = 0x6e656d31, END = 0x6e656d32 };

typedef struct {
  const char *name;
  long numbers[3];
  int error;
} kind;

static const kind kinds[] = {
    {"open", {SYS_openat, SYS_open, -1}, EMFILE},
    {"read", {SYS_read, SYS_pread64, SYS_readv}, EIO},
    {"stat", {SYS_newfstatat, SYS_fstat, SYS_statx}, EACCES},
    {"list", {SYS_getdents64, -1, -1}, EIO},
    {"map", {SYS_mmap, -1, -1}, ENOMEM},
    {"protect", {SYS_mprotect, -1, -1}, ENOMEM},
    {"memory file", {SYS_memfd_create, -1, -1}, ENOSYS},
    {"truncate", {SYS_ftruncate, -1, -1}, ENOSPC},
    {"write", {SYS_write, SYS_writev, SYS_pwrite64}, ENOSPC},
    {"access", {SYS_access, SYS_faccessat, -1}, EACCES},
    {"thread", {SYS_clone, SYS_clone3, -1}, EAGAIN},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct {
  walk expected;
  long told, wrong, deaths;
  const kind *failing;
  long at;
} * all;
static walk own;
static int verbose;

static void say(const char *what, const char *call, int status, const char *message) {
  dprintf(STDERR_FILENO, "%s, %s %ld: %s: %.60s %d (%.300s)\n", own.name, all->failing ? all->failing->name : "nothing",
          all->at, what, call, status, message);
}

/* Kernels that cannot be opened give way to packages, whose results agree to round-off. */
static int is_expected(void) {
  if (own.count != all->expected.count) return 0;
  for (int64_t i = 0; i < own.count; ++i) {
    const double expected = all->expected.numbers[i];
    if (!(fabs(own.numbers[i] - expected) <= 1e-9 * fmax(fabs(expected), 1e-3))) return 0;
  }
  return 1;
}

static void problem(const char *what, const char *call, int status, const char *message) {
  ++all->wrong;
  say(what, call, status, message);
}

static int fits(const char *call, int32_t status, const char *message) {
  if (strcmp(call, "dlopen") == 0) return 1; /* the host's: the words are the dynamic loader's */
  if (status == NEML2_ERROR_MEMORY) return strstr(message, "ut of memory") != NULL;
  return (status == NEML2_ERROR_FILE || status == NEML2_ERROR_UNSUPPORTED || status == NEML2_ERROR_RUNTIME) &&
         strlen(message) > 20;
}

static void note(const walk *w, const char *call, int32_t status, const char *message) {
  (void)w;
  ++all->told;
  if (verbose) say("told", call, status, message);
  if (!fits(call, status, message)) problem("another status", call, status, message);
}

static void child(void) {
  int32_t status;
  ptrace(PTRACE_TRACEME, 0, NULL, NULL);
  raise(SIGSTOP);
  prctl(BEGIN, 0, 0, 0, 0);
  status = own.work(&own);
  prctl(END, 0, 0, 0, 0);
  if (!all->failing) { /* the first walk of all */
    all->expected = own;
    _exit(status != NEML2_OK);
  }
  for (int again = 0; again < 2; ++again) {
    if (again) {
      own.count = 0;
      if ((status = own.work(&own)) != NEML2_OK) problem("no success afterwards", "", status, "");
    }
    if (status == NEML2_OK && !is_expected()) problem(again ? "other results afterwards" : "other results", "", 0, "");
  }
  _exit(0);
}

static int is_of(const kind *k, unsigned long long number) {
  for (int i = 0; k && i < 3; ++i)
    if (k->numbers[i] >= 0 && (unsigned long long)k->numbers[i] == number) return 1;
  return 0;
}

/* Whether a thread that stopped is at the beginning of a system call. */
static int enters(int status, struct user_regs_struct *registers, pid_t thread) {
  if (WSTOPSIG(status) != (SIGTRAP | 0x80)) return 0;
  ptrace(PTRACE_GETREGS, thread, NULL, registers);
  return (long long)registers->rax == -ENOSYS;
}

/* Keeps the system from a call that begins, and puts an error in its place. */
static void deny(pid_t thread, struct user_regs_struct registers, int error) {
  int status;
  registers.orig_rax = (unsigned long long)-1;
  ptrace(PTRACE_SETREGS, thread, NULL, &registers);
  ptrace(PTRACE_SYSCALL, thread, NULL, NULL);
  if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) return;
  registers.rax = (unsigned long long)-(long long)error;
  ptrace(PTRACE_SETREGS, thread, NULL, &registers);
}

static void bury(int status) {
  if (WIFSIGNALED(status)) {
    ++all->deaths;
    problem("dies by signal", "", WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    problem("ends with", "", WEXITSTATUS(status), "");
  }
}

/* Runs the walk with call number `at` of this kind failing; with none if `at` is 0. Returns how many there were. */
static long run(const kind *k, long at) {
  const pid_t first = fork();
  struct user_regs_struct registers;
  long seen = 0;
  int walks = 0, status;
  if (first == 0) child();
  if (waitpid(first, &status, 0) != first || !WIFSTOPPED(status)) exit(77);
  ptrace(PTRACE_SETOPTIONS, first, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL));
  ptrace(PTRACE_SYSCALL, first, NULL, NULL);
  for (pid_t thread; (thread = waitpid(-1, &status, __WALL)) > 0;) {
    int signal = 0;
    if (!WIFSTOPPED(status)) {
      if (thread != first) continue;
      bury(status);
      return seen;
    }
    if (enters(status, &registers, thread)) {
      if (registers.orig_rax == SYS_prctl && (registers.rdi == BEGIN || registers.rdi == END))
        walks = registers.rdi == BEGIN;
      else if (walks && is_of(k, registers.orig_rax) && ++seen == at)
        deny(thread, registers, k->error);
    } else if ((WSTOPSIG(status) & 0x7f) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
      signal = WSTOPSIG(status);
    }
    ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(long)signal);
  }
  return seen;
}

static void torture(const kind *k, long from, long to, long every) {
  all->failing = NULL;
  const long total = run(k, 0);
  all->failing = k;
  all->told = all->wrong = all->deaths = 0;
  long trials = 0;
  for (all->at = from; all->at <= total && (to == 0 || all->at <= to); all->at += every, ++trials) run(k, all->at);
  printf("%-22s %-12s %4ld calls, %4ld made to fail: %4ld told, %ld wrong, of which %ld deaths\n", own.name, k->name,
         total, trials, all->told, all->wrong, all->deaths);
  fflush(stdout);
}

static void failed_before(const walk *w, const char *call, int32_t status, const char *message) {
  (void)w;
  fprintf(stderr, "%s: %d (%s)\n", call, (int)status, message);
}

int main(int argc, char **argv) {
  long from = 1, to = 0, every = 1, wrong = 0;
  const char *plugin = NULL, *only = NULL;
  for (int i = 2; i < argc; ++i) {
    const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(word, "--every") == 0) every = atol(value), ++i;
    if (strcmp(word, "--from") == 0) from = atol(value), ++i;
    if (strcmp(word, "--to") == 0) to = atol(value), ++i;
    if (strcmp(word, "--plugin") == 0) plugin = value, ++i;
    if (strcmp(word, "--call") == 0) only = value, ++i;
    if (strcmp(word, "--verbose") == 0) verbose = 1;
  }
  all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (argc < 2 || !walk_named(&own, argv[1], plugin)) return 2;
  own.failed = failed_before;
  run(NULL, 0);
  if (all->wrong) return 1;
  if (run(&kinds[0], 0) == 0) {
    fprintf(stderr, "no system call is seen\n");
    return 1;
  }
  own.failed = note;
  for (int k = 0; k < KINDS; ++k)
    if (!only || strcmp(only, kinds[k].name) == 0) {
      torture(&kinds[k], from, to, every);
      wrong += all->wrong;
    }
  return wrong != 0;
}

#endif
