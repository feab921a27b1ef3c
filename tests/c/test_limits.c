/* Limits that a batch system sets: no signal ends the process, the error names the limit, and what was opened goes on. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "materials.h"

/* Runs a test in a process of its own, whose limit is `most`. A signal that ends it is a failure. */
static void under(const char *name, int resource, rlim_t most, void (*test)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    struct rlimit limit;
    getrlimit((__rlimit_resource_t)resource, &limit);
    limit.rlim_cur = most;
    setrlimit((__rlimit_resource_t)resource, &limit);
    check_failures = 0;
    test();
    fflush(stderr);
    _exit(check_failures != 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) fprintf(stderr, "under %s the process was ended by the signal %d\n", name, WTERMSIG(status));
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void raise_again(int resource) {
  struct rlimit limit;
  getrlimit((__rlimit_resource_t)resource, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit((__rlimit_resource_t)resource, &limit);
}

static const char *package(void) {
  static char path[4200];
  snprintf(path, sizeof path, "%s/cpu/float64/elasticity.pt2", artifact("elasticity"));
  return access(path, R_OK) == 0 ? path : NULL; /* there is none on another processor */
}

/* Kernels lie in a file of their own; the code of a package must be written to one. */
static void small_files(void) {
  neml2_graph *graph = NULL;
  if (package() && CHECK_STATUS(NEML2_ERROR_FILE, neml2_graph_open(&graph, SOURCE(.path = package())))) {
    CHECK_SAYS("ulimit -f is 512 bytes");
    CHECK_SAYS("Raise that limit");
  }
  neml2_model *model = load(artifact("viscoplastic"));
  neml2_model *elasticity = load(artifact("elasticity"));
  CHECK_ELASTICITY(elasticity);
  neml2_model_free(&elasticity);
  neml2_model_free(&model);
  raise_again(RLIMIT_FSIZE);
  if (package()) CHECK_OK(neml2_graph_open(&graph, SOURCE(.path = package())));
  neml2_graph_free(&graph);
  elasticity = load(artifact("elasticity"));
  CHECK_ELASTICITY(elasticity);
  neml2_model_free(&elasticity);
}

static int last_signal;
static void note(int signal) { last_signal = signal; }

/* Its own signals reach the host as ever. */
static void small_files_and_a_handler(void) {
  signal(SIGXFSZ, note);
  small_files();
  CHECK(last_signal == 0);
  raise(SIGXFSZ);
  CHECK(last_signal == SIGXFSZ);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGXFSZ);
  sigprocmask(SIG_BLOCK, &one, NULL);
  last_signal = 0;
  raise(SIGXFSZ);
  neml2_model *model = load(artifact("elasticity"));
  neml2_model_free(&model);
  sigprocmask(SIG_UNBLOCK, &one, NULL);
  CHECK(last_signal == SIGXFSZ);
}

static char folder[64];

static int files_in(const char *path) {
  int count = 0;
  DIR *listed = opendir(path);
  for (struct dirent *entry; listed && (entry = readdir(listed));) count += entry->d_name[0] != '.';
  if (listed) closedir(listed);
  return count;
}

/* A capsule that cannot be written is a record of the log, and leaves nothing behind. */
static void small_capsules(void) {
  double strain[2][6] = {{NAN}}, stress[2][6];
  neml2_model *model = load(artifact("elasticity"));
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_log_level_set("model", NEML2_LOG_WARNING));
  REQUIRE_OK(neml2_model_option_set_text(model, "capsule", folder));
  REQUIRE_OK(neml2_call_create(&call, model));
  neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6);
  neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6);
  CHECK(neml2_call_run(call, 2) != NEML2_OK);
  int32_t level = 0;
  char text[NEML2_LOG_LENGTH];
  int told = 0;
  do {
    neml2_log_next(&level, NULL, text, sizeof text, NULL);
    told += strstr(text, "no capsule was written") && strstr(text, "ulimit -f is 512 bytes");
  } while (level != NEML2_LOG_SILENT);
  CHECK(told == 1);
  CHECK(files_in(folder) == 0);
  raise_again(RLIMIT_FSIZE);
  CHECK(neml2_call_run(call, 2) != NEML2_OK);
  CHECK(files_in(folder) == 1);
  neml2_call_free(&call);
  neml2_model_free(&model);
}

/* Files that are open take all places but `left`. */
static void open_all_but(int left) {
  int last = -1;
  for (int file; (file = open("/dev/null", O_RDONLY)) >= 0;) last = file;
  for (int i = 0; i < left; ++i) close(last - i);
}

static void no_file_more(void) {
  neml2_model *before = load(artifact("elasticity"));
  open_all_but(0);
  neml2_model *model = NULL;
  const char *const names[] = {"elasticity", "viscoplastic", "viscoplastic/cpu"};
  for (int i = 0; i < 3; ++i) {
    CHECK_STATUS(NEML2_ERROR_FILE, neml2_model_open(&model, SOURCE(.path = artifact(names[i]))));
    CHECK_SAYS("ulimit -n is 64");
    CHECK_SAYS("Close files, or raise that limit");
  }
  CHECK_ELASTICITY(before);
  raise_again(RLIMIT_NOFILE);
  CHECK_OK(neml2_model_open(&model, SOURCE(.path = artifact("viscoplastic"))));
  neml2_model_free(&model);
  neml2_model_free(&before);
}

/* Wherever it stops: it is opened, or the limit is named, and never the artifact. */
static void few_files_more(void) {
  open_all_but(0);
  int last = 63;
  for (int left = 0; left < 6; ++left, close(last--)) {
    neml2_model *model = NULL;
    const int32_t status = neml2_model_open(&model, SOURCE(.path = artifact("viscoplastic")));
    if (status != NEML2_OK) {
      CHECK(status == NEML2_ERROR_FILE);
      CHECK_SAYS("ulimit -n is 64");
    }
    neml2_model_free(&model);
    neml2_graph *graph = NULL;
    if (package() && neml2_graph_open(&graph, SOURCE(.path = package())) != NEML2_OK) {
      CHECK_STATUS(NEML2_ERROR_FILE, neml2_error_status());
      CHECK_SAYS("ulimit -n is 64");
    }
    neml2_graph_free(&graph);
  }
}

/* Threads that the system refuses: their work is done by the one that there is. */
static void no_thread_more(void) {
  neml2_model *model = load(artifact("elasticity"));
  CHECK_OK(neml2_model_option_set_number(model, "threads", 8));
  CHECK_OK(neml2_model_option_set_number(model, "chunk", 16));
  enum { N = 20000 };
  double *strain = doubles(6 * N), *stress = doubles(6 * N), *expected = doubles(6 * N);
  some_strains(N, strain);
  hooke(N, YOUNG, strain, expected);
  neml2_call *call = NULL;
  REQUIRE_OK(neml2_call_create(&call, model));
  neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6);
  neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6);
  for (int i = 0; i < 3; ++i) CHECK_OK(neml2_call_run(call, N));
  CHECK_NEAR(6 * N, stress, expected, 1e-12);
  neml2_call_free(&call);
  neml2_model_free(&model);
}

/* Memory that ends, at any place: out of memory is said, and less is opened again. */
static void little_memory(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  neml2_model *model = NULL;
  int32_t status = neml2_model_open(&model, SOURCE(.path = artifact("viscoplastic")));
  if (status != NEML2_OK) CHECK_STATUS(NEML2_ERROR_MEMORY, status);
  neml2_model_free(&model);
  raise_again(RLIMIT_AS);
  CHECK_OK(neml2_model_open(&model, SOURCE(.path = artifact("viscoplastic"))));
  neml2_model_free(&model);
}

/* Sanitizers need what these limits take: terabytes of address space, and a pipe to ask whether memory can be read. */
#ifdef __SANITIZE_ADDRESS__
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

static rlim_t memory_now(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%lu", &pages) != 1) pages = 1UL << 16;
  if (file) fclose(file);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

int main(void) {
  snprintf(folder, sizeof folder, "/tmp/neml2-limits-%d", (int)getpid());
  mkdir(folder, 0700);
  under("a limit of files", RLIMIT_FSIZE, 512, small_files);
  under("a limit of files, with a handler", RLIMIT_FSIZE, 512, small_files_and_a_handler);
  under("a limit of capsules", RLIMIT_FSIZE, 512, small_capsules);
  under("a limit of threads", RLIMIT_NPROC, 1, no_thread_more);
  under("a limit of the stack", RLIMIT_STACK, 64 << 10, no_thread_more);
  if (!IS_SANITIZED) {
    under("a limit of open files", RLIMIT_NOFILE, 64, no_file_more);
    under("a limit of open files", RLIMIT_NOFILE, 64, few_files_more);
    for (rlim_t more = 0; more < 4 << 20; more += 256 << 10)
      under("a limit of memory", RLIMIT_AS, memory_now() + more, little_memory);
  }
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
  return CHECK_RESULT();
}
