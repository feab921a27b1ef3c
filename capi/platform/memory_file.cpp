#if defined(__linux__)
#include "capi/platform/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "capi/base/error.h"
#include "capi/platform/files.h"
#include "capi/platform/refusals.h"

namespace neml2_capi::platform {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::strcmp(value, "0") != 0;
}

// Tells whether code of the file may run: only a mapping finds a folder that is mounted noexec.
bool is_executable(int descriptor) {
  void* page = mmap(nullptr, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, descriptor, 0);
  if (page == MAP_FAILED) return false;
  munmap(page, 1);
  return true;
}

// Returns /proc/self/fd/N in a spelling of its own: descriptors are used again, a spelling is not. Between fd and N
// stand the bits of this file's number in this copy of the library, and of an address that tells the copy from others.
std::string fresh_spelling(int descriptor) {
  static std::atomic<std::uint64_t> count{0};
  std::string path = "/proc/self/fd/";
  for (std::uint64_t number :
       {count.fetch_add(1), static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&count))})
    for (int bit = 0; bit < 48; ++bit, number >>= 1) path += number & 1 ? "./" : "/";
  return path + std::to_string(descriptor);
}

std::string file_name(std::string_view name) {
  std::string plain(name.substr(0, 64));
  std::replace_if(
      plain.begin(), plain.end(), [](unsigned char c) { return !std::isalnum(c) && c != '_' && c != '-'; }, '_');
  return plain;
}

// Creates a file in `folder`, and puts its name into `path`. Returns -1 if that is not possible.
int create_in(const std::string& folder, std::string_view name, std::string& path) {
  path = folder + "/neml2-" + file_name(name) + "-XXXXXX.so";
  return mkostemps(path.data(), 3, O_CLOEXEC);
}

// Creates a file without a name in `folder`, if the file system has such files.
int create_nameless_in(const std::string& folder, std::string_view) {
  return open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

// Creates a file that has a name only for a moment, while it is empty.
int create_and_unlink_in(const std::string& folder, std::string_view name) {
  std::string path;
  const int descriptor = create_in(folder, name, path);
  if (descriptor >= 0) unlink(path.c_str());
  return descriptor;
}

// Returns folders in the order of preference; the home folder comes last, since it may be on a slow network.
std::vector<std::string> private_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const char* folder) {
    if (folder && *folder == '/') folders.emplace_back(folder);
  };
  add(std::getenv("XDG_RUNTIME_DIR"));
  add(std::getenv("TMPDIR"));
  for (const char* folder : {"/dev/shm", "/tmp", "/var/tmp"}) add(folder);
  add(std::getenv("HOME"));
  return folders;
}

// Creates a file in memory. The C library has had a function for it since glibc 2.27, and runs on older ones.
int create_in_memory(std::string_view name) {
  constexpr unsigned close_on_exec = 1;  // MFD_CLOEXEC
  return static_cast<int>(syscall(SYS_memfd_create, ("neml2-" + file_name(name)).c_str(), close_on_exec));
}

}  // namespace

// Tries places for a file with this content, and keeps what the system has against each.
class MemoryFile::Search {
 public:
  Search(MemoryFile& file, std::string_view name, std::string_view content)
      : file_(file), name_(name), content_(content) {}

  void keep_in(const std::string& folder) {
    if (!take_named(folder))
      throw Error(NEML2_ERROR_FILE, folder,
                  join("Cannot keep an executable object in NEML2_CAPI_KEEP_OBJECTS=", folder, ": ",
                       refusals::why(errno), ". Set it to a folder that exists and is not mounted noexec."));
    file_.remove_ = false;
  }

  void find(const std::filesystem::path& original) {
    // Systems with vm.memfd_noexec = 2 reject MFD_EXEC, and those with 0 do not need it.
    if (!is_set("NEML2_CAPI_NO_MEMFD") && take_nameless(create_in_memory(name_), content_)) return;
    note_refusal("memory");
    const std::vector<std::string> folders = private_folders();
    for (const auto create : {create_nameless_in, create_and_unlink_in})
      for (const std::string& folder : folders)
        if (take_nameless(create(folder, name_), content_)) return;
    for (const std::string& folder : folders) {
      if (take_named(folder)) return;
      note_refusal(folder);
    }
    // Last, since another write to the file would change code that runs.
    if (!original.empty() && take_nameless(open(original.c_str(), O_RDONLY | O_CLOEXEC), {})) return;
    if (lacks_memory_) throw std::bad_alloc();
    const std::string message = join("No place was found where the code of the package, ", content_.size(),
                                     " bytes, may be written and executed: ", refused_, ". ",
                                     refusals::remedy(limit_, "Set TMPDIR to a folder that is not mounted noexec."));
    if (limit_ != 0) throw refusals::LimitError(NEML2_ERROR_FILE, std::string(name_), message);
    throw Error(NEML2_ERROR_FILE, std::string(name_), message);
  }

 private:
  // Keeps what the system has against a place; a limit of the process counts for all.
  void note_refusal(const std::string& place) {
    const int error = errno;
    lacks_memory_ = lacks_memory_ && error == ENOMEM;
    if (limit_ != EFBIG && limit_ != EMFILE && refusals::is_limit(error)) limit_ = error;
    refused_ += join(refused_.empty() ? "" : "; ", place, ", ", refusals::why(error));
  }

  // Takes a file, or closes it and returns false if its code cannot run.
  bool take_nameless(int descriptor, std::string_view content) {
    if (descriptor < 0) return false;
    file_.path_ = fresh_spelling(descriptor);
    if (write_all(descriptor, content) && is_executable(descriptor) && access(file_.path_.c_str(), R_OK) == 0) {
      file_.descriptor_ = descriptor;
      return true;
    }
    const int reason = errno;
    close(descriptor);
    errno = reason;
    return false;
  }

  bool take_named(const std::string& folder) {
    const int descriptor = create_in(folder, name_, file_.path_);
    if (descriptor < 0) return false;
    if (write_all(descriptor, content_) && is_executable(descriptor)) {
      file_.descriptor_ = descriptor;
      return file_.remove_ = true;
    }
    const int reason = errno;
    unlink(file_.path_.c_str());
    close(descriptor);
    errno = reason;
    return false;
  }

  MemoryFile& file_;
  std::string_view name_, content_;
  std::string refused_;       // places, and why
  int limit_ = 0;             // that one of them met
  bool lacks_memory_ = true;  // at all of them
};

MemoryFile::MemoryFile(std::string_view name, std::string_view content, const std::filesystem::path& original) {
  const refusals::QuietWrites quiet;
  Search search(*this, name, content);
  const char* folder = std::getenv("NEML2_CAPI_KEEP_OBJECTS");
  if (folder && *folder)
    search.keep_in(folder);
  else
    search.find(original);
}

MemoryFile::~MemoryFile() {
  close(descriptor_);
  if (remove_) unlink(path_.c_str());
}

}  // namespace neml2_capi::platform
#endif
