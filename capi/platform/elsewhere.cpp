// Parts of the platform for all systems except Linux, by the C++ library alone.
#if !defined(__linux__)
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/platform/files.h"
#include "capi/platform/memory_file.h"
#include "capi/platform/process.h"
#include "capi/platform/refusals.h"
#include "capi/platform/threads.h"

namespace neml2_capi::locks {

void detail::wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) { word.wait(value); }

bool detail::wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (word.load() == value && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  return std::chrono::steady_clock::now() < end;
}

void detail::wake(std::atomic<std::uint32_t>& word, int threads) {
  if (threads == 1)
    word.notify_one();
  else
    word.notify_all();
}

}  // namespace neml2_capi::locks

namespace neml2_capi::platform {

Processors Processors::of_this_thread() { return {}; }
int Processors::count() const { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }
void Processors::take_thread(Processors&) const {}

namespace {

// Removes the files of processes that have ended. Windows keeps a file as long as its code is loaded, so that no process
// can remove its own.
void remove_leftovers(const std::filesystem::path& folder) {
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::u8string name = at->path().filename().u8string();
    long long process = 0;
    std::error_code ignored;
    if (std::sscanf(reinterpret_cast<const char*>(name.c_str()), "neml2-%lld-", &process) == 1 &&
        (process == process_id() || !is_running(process)))
      std::filesystem::remove(at->path(), ignored);
  }
}

}  // namespace

MemoryFile::MemoryFile(std::string_view name, std::string_view content, const std::filesystem::path& original) {
  static std::atomic<unsigned> count = 0;
  const char* kept = std::getenv("NEML2_CAPI_KEEP_OBJECTS");
  remove_ = !kept || !*kept;
  std::error_code ignored;
  const std::filesystem::path folder = remove_ ? std::filesystem::temp_directory_path(ignored) : kept;
  const unsigned number = count++;
  if (remove_ && number == 0) remove_leftovers(folder);
  path_ = (folder / join("neml2-", process_id(), "-", number, "-", name)).string();
  File file;
  if (file.create(path_) && file.write(content) && file.close()) return;
  const int reason = errno;
  if (original.empty())
    throw Error(NEML2_ERROR_FILE, path_,
                join("The machine code ", path_, " cannot be written: ", refusals::why(reason), ". ",
                     refusals::remedy(reason, "Set TMPDIR (TMP on Windows) to a folder that can be written to.")));
  path_ = original.string();
  remove_ = false;
}

MemoryFile::~MemoryFile() {
  std::error_code ignored;
  if (remove_) std::filesystem::remove(path_, ignored);
}

}  // namespace neml2_capi::platform
#endif
