// The folder of a package's device code goes with the graph, and with the process, however that ends.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "../c/check.h"
#include "capi/libtorch/kernel_folder.h"

namespace fs = std::filesystem;
using neml2_capi::aoti::libtorch::KernelFolder;

namespace {

const std::vector<neml2_capi::aoti::KernelFile> kernels = {{"data/aotinductor/model/a.cubin", "first"},
                                                           {"data/aotinductor/model/b.cubin", "second"}};

std::string content_of(const fs::path& file) {
  std::ifstream in(file);
  std::string text;
  std::getline(in, text);
  return text;
}

long entries(const fs::path& folder) { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }

// A process that has folders, and is killed.
void be_killed() {
  int ready[2];
  char byte = 0;
  CHECK(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const KernelFolder one(kernels), two(kernels);
    CHECK(write(ready[1], &byte, 1) == 1);
    for (;;) pause();
  }
  CHECK(read(ready[0], &byte, 1) == 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace

int main() {
  std::string name = (fs::temp_directory_path() / "neml2_test-XXXXXX").string();
  CHECK(mkdtemp(name.data()) != nullptr);
  const fs::path place = name;
  setenv("TMPDIR", name.c_str(), 1);

  CHECK(KernelFolder({}).path() == nullptr);
  std::optional<KernelFolder> living(kernels);
  CHECK(content_of(fs::path(living->path()) / "a.cubin") == "first");
  CHECK(content_of(fs::path(living->path()) / "b.cubin") == "second");
  CHECK(entries(place) == 1);

  be_killed();
  CHECK(entries(place) == 3);
  const fs::path others = place / "neml2_capi-kernels-file";
  std::ofstream(others) << "not ours";
  {
    const KernelFolder next(kernels);
    CHECK(content_of(fs::path(next.path()) / "b.cubin") == "second");
    CHECK(content_of(fs::path(living->path()) / "b.cubin") == "second");
    CHECK(entries(place) == 3);
  }
  living.reset();
  CHECK(entries(place) == 1 && fs::exists(others));

  fs::remove_all(place);
  return CHECK_RESULT();
}
