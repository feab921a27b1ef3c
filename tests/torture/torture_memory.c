/* Fails each allocation of some work in turn, and asks that the library says so and goes on.
 *
 *   torture_memory WORK [--every N] [--from K] [--to K] [--cold | --warm] [--once | --lasting] [--plugin FILE] [--trace]
 *
 * The work is a walk of walk.h. `once`: one allocation fails, the call is made again on the same handles, and the walk
 * goes on to its end. `lasting`: all later ones fail, too; the walk frees what it has while they do. Memory returns, and
 * the walk must then come to the numbers of one that was left alone.
 *
 * `cold`: each trial is a process of its own, in which nothing was ever loaded. `warm`: one process goes through all of
 * them after a walk that was left alone; there nothing may be left behind that grows.
 *
 * An allocation may fail without an effect: a cache stays empty, a thread does not start, a record is not kept. Else the
 * status must be NEML2_ERROR_MEMORY. 77: this C library's allocation cannot be made to fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "neml2_capi.h"
#include "walk.h"

#ifndef MEMORY_CAN_FAIL
int main(void) { return 77; }
#else

enum { MOST_WORDS = 40 };

/* Shared by all processes. */
static struct {
  walk expected;
  long at; /* the trial under way */
  long told, without_effect, wrong, deaths, leaks, loader;
} * all;

static walk own; /* of a trial */
static int lasting, warm, trial_told;

/* glibc's dynamic loader, if it lacks memory for the list of what an object needs, leaves marks on the libraries in
 * it: no later object finds their functions. Nobody else can unset the marks. If it lacks memory also while it takes
 * a half-opened object back, it keeps its lock, and other threads wait for ever. */
static int loader_is_damaged, loader_lacked_memory;

static void problem(const char *what, const char *call, int status, const char *message) {
  if (loader_is_damaged) return;
  if (__atomic_add_fetch(&all->wrong, 1, __ATOMIC_SEQ_CST) > MOST_WORDS) return;
  dprintf(STDERR_FILENO, "%s %s %s %ld: %s: %.60s %d (%.300s)\n", own.name, warm ? "warm" : "cold",
          lasting ? "from" : "once at", all->at, what, call, status, message);
}

static void note(const walk *w, const char *call, int32_t status, const char *message) {
  (void)w;
  ++trial_told;
  loader_lacked_memory |= memory_failed_in_loader();
  loader_is_damaged |= loader_lacked_memory && strstr(message, "undefined symbol") != NULL;
  if (loader_is_damaged) return;
  if (status != NEML2_ERROR_MEMORY)
    problem("another status", call, status, message);
  else if (!strstr(message, "ut of memory") && strcmp(call, "dlopen") != 0)
    problem("words about something else", call, status, message);
  else if (memory_failures() == 0)
    problem("no allocation failed", call, status, message);
}

/* A model whose package cannot be opened any more runs on its kernels, and a record tells why. */
static void hear_of_damage(void) {
  char message[1024];
  int32_t level = NEML2_LOG_SILENT;
  while (neml2_log_next(&level, NULL, message, sizeof message, NULL) == NEML2_OK && level != NEML2_LOG_SILENT)
    loader_is_damaged |= loader_lacked_memory && strstr(message, "undefined symbol") != NULL;
}

/* Tells the first number that is another than expected. */
static void require_same_numbers(const char *when) {
  char words[80];
  hear_of_damage();
  for (int64_t i = 0; i < own.count; ++i) {
    if (memcmp(&own.numbers[i], &all->expected.numbers[i], sizeof(double)) == 0) continue;
    snprintf(words, sizeof words, "%.17g at %d, expected %.17g", own.numbers[i], (int)i, all->expected.numbers[i]);
    problem(when, "", 0, words);
    return;
  }
}

/* The walk, left alone: it must come to the numbers that are expected. */
static void walk_alone(void) {
  own.resumes = 0;
  own.count = 0;
  memory_fails(0, 0);
  if (own.work(&own) != NEML2_OK)
    problem("no success afterwards", "", 0, "");
  else if (own.count != all->expected.count)
    problem("afterwards another number of results", "", (int)own.count, "");
  else
    require_same_numbers("other results afterwards");
  memory_returns();
}

static void walk_with_failure(long at) {
  int32_t status;
  own.resumes = !lasting;
  own.count = 0;
  trial_told = 0;
  memory_fails(at, lasting);
  status = own.work(&own);
  memory_returns();
  if (memory_failures() == 0) return;
  __atomic_add_fetch(trial_told ? &all->told : &all->without_effect, 1, __ATOMIC_SEQ_CST);
  if (status == NEML2_OK && own.count != all->expected.count)
    problem("another number of results", "", (int)own.count, "");
  else if (status == NEML2_OK)
    require_same_numbers("other results");
  else if (own.resumes)
    problem("no success when called again", "", status, "");
}

static void trace_death(int signal) {
  memory_trace();
  raise(signal);
}

static void begin_trial(void) {
  struct sigaction action = {.sa_handler = trace_death, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
  if (memory_traces) sigaction(SIGABRT, &action, NULL);
  if (memory_traces) sigaction(SIGSEGV, &action, NULL);
  alarm(60);
}

/* The trials of a process that has the artifact already. It tells which trial is under way, in case it dies. */
static int warm_trials(long from, long to, long every) {
  walk_alone();
  walk_alone();
  for (all->at = from; all->at <= to; all->at += every) {
    long before = 0, after = 0;
    int passes = 0, in_package = 0;
    begin_trial();
    do { /* what the library keeps for itself may come later, but not time and again */
      before = after;
      walk_with_failure(all->at);
      in_package = memory_failed_in_package();
      walk_alone();
      after = memory_blocks();
    } while (after > before && ++passes < 6);
    /* The code that torch wrote loses the handle of a constant if it lacks memory for its name. */
    if (after > before && !in_package) {
      __atomic_add_fetch(&all->leaks, 1, __ATOMIC_SEQ_CST);
      problem("blocks are left behind", "", (int)(after - before), "");
    }
  }
  return 0;
}

static void *ask_loader(void *unused) {
  Dl_info info;
  dladdr((void *)(intptr_t)ask_loader, &info);
  return unused;
}

/* Whether another thread waits for the dynamic loader. */
static int loader_keeps_its_lock(void) {
  struct timespec end;
  pthread_t thread;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 5;
  return pthread_create(&thread, NULL, ask_loader, NULL) == 0 && pthread_timedjoin_np(thread, NULL, &end) == ETIMEDOUT;
}

static int cold_trial(void) {
  begin_trial();
  walk_with_failure(all->at);
  if (memory_failed_in_loader() && loader_keeps_its_lock()) {
    ++all->loader;
    return 0;
  }
  walk_alone();
  all->loader += loader_is_damaged;
  return 0;
}

/* The walk as it should be. Returns the number of its allocations, in a process where it is the first one or not. */
static long reference(int is_warm) {
  long *asked = mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    begin_trial();
    all->expected = own;
    if (is_warm && own.work(&own) != NEML2_OK) _exit(1);
    memory_fails(0, 0);
    all->expected.count = 0;
    if (all->expected.work(&all->expected) != NEML2_OK) _exit(1);
    *asked = memory_returns();
    _exit(0);
  }
  waitpid(child, &status, 0);
  if (status != 0) {
    fprintf(stderr, "%s fails though nothing was done to it\n", own.name);
    exit(1);
  }
  return *asked;
}

static void wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return;
  ++all->deaths;
  if (WIFSIGNALED(status))
    problem("dies by signal", "", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    problem("ends with", "", WEXITSTATUS(status), "");
}

static void torture(long from, long to, long every) {
  const long total = reference(warm);
  if (total == 0 && !warm) problem("no allocation is counted", "", 0, "");
  if (to == 0 || to > total) to = total;
  for (all->at = from; all->at <= to; all->at += every) {
    const pid_t child = fork();
    if (child == 0) _exit(warm ? warm_trials(all->at, to, every) : cold_trial());
    wait_for(child);
  }
  const long wrong = all->wrong;
  printf(
      "%-22s %s %-7s %5ld allocations: %5ld told, %5ld without an effect, %ld wrong, of which %ld deaths, %ld leaks; "
      "%ld "
      "damaged the dynamic loader\n",
      own.name, warm ? "warm" : "cold", lasting ? "lasting" : "once", total, all->told, all->without_effect, wrong,
      all->deaths, all->leaks, all->loader);
  fflush(stdout);
}

static void failed_before(const walk *w, const char *call, int32_t status, const char *message) {
  (void)w;
  fprintf(stderr, "%s: %d (%s)\n", call, (int)status, message);
}

int main(int argc, char **argv) {
  long from = 1, to = 0, every = 1, wrong = 0;
  int only_warm = -1, only_lasting = -1;
  const char *plugin = NULL;
  for (int i = 2; i < argc; ++i) {
    const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(word, "--every") == 0) every = atol(value), ++i;
    if (strcmp(word, "--from") == 0) from = atol(value), ++i;
    if (strcmp(word, "--to") == 0) to = atol(value), ++i;
    if (strcmp(word, "--plugin") == 0) plugin = value, ++i;
    if (strcmp(word, "--cold") == 0) only_warm = 0;
    if (strcmp(word, "--warm") == 0) only_warm = 1;
    if (strcmp(word, "--once") == 0) only_lasting = 0;
    if (strcmp(word, "--lasting") == 0) only_lasting = 1;
    if (strcmp(word, "--trace") == 0) memory_traces = 1;
  }
  memory_prepare();
  all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (argc < 2 || !walk_named(&own, argv[1], plugin)) return 2;
  for (warm = 0; warm < 2; ++warm)
    for (lasting = 0; lasting < 2; ++lasting) {
      if ((only_warm >= 0 && warm != only_warm) || (only_lasting >= 0 && lasting != only_lasting)) continue;
      memset(all, 0, sizeof *all);
      own.threads = warm ? 1 : 2; /* blocks go from thread to thread, and wait there */
      own.failed = failed_before;
      all->at = 0;
      reference(0);
      own.failed = note;
      torture(from, to, every);
      wrong += all->wrong;
    }
  return wrong != 0;
}

#endif
