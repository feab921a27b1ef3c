// The platform of Windows.
#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <sys/stat.h>
#include <windows.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "capi/base/locks.h"
#include "capi/platform/files.h"
#include "capi/platform/process.h"
#include "capi/platform/refusals.h"
#include "capi/platform/shared_object.h"
#include "capi/platform/threads.h"

// Narrow paths are UTF-8 in this library, whatever the process's code page is: the C++ library, which is linked in, converts
// them by these two, and finds them here before it finds Windows' own.
namespace {

template <class Function>
Function* windows_own(const char* name) {
  return reinterpret_cast<Function*>(reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"kernel32.dll"), name)));
}

UINT utf8_of(UINT page) { return page == CP_ACP || page == CP_OEMCP ? CP_UTF8 : page; }

int WINAPI to_wide(UINT page, DWORD flags, LPCCH text, int size, LPWSTR wide, int capacity) {
  static auto* const convert = windows_own<decltype(MultiByteToWideChar)>("MultiByteToWideChar");
  return convert(utf8_of(page), flags, text, size, wide, capacity);
}

int WINAPI to_narrow(UINT page, DWORD flags, LPCWCH wide, int size, LPSTR text, int capacity, LPCCH fallback,
                     LPBOOL used) {
  static auto* const convert = windows_own<decltype(WideCharToMultiByte)>("WideCharToMultiByte");
  return convert(utf8_of(page), flags, wide, size, text, capacity, fallback, used);
}

// Paths of 260 letters and more have a prefix, with which Windows takes them from every program.
std::wstring any_length(const wchar_t* path) {
  constexpr std::size_t most = MAX_PATH - 13;  // of a folder that is to hold a file with a short name
  std::wstring full = path;
  if (full.starts_with(LR"(\\)")) return full;
  if (const DWORD size = GetFullPathNameW(path, 0, nullptr, nullptr)) {
    full.resize(size);
    full.resize(GetFullPathNameW(path, size, full.data(), nullptr));
  }
  return full.size() < most ? path : LR"(\\?\)" + full;
}

// The C++ library opens, lists and makes files and folders by these.
HANDLE WINAPI open_file(LPCWSTR path, DWORD access, DWORD share, LPSECURITY_ATTRIBUTES security, DWORD how, DWORD flags,
                        HANDLE like) {
  static auto* const open = windows_own<decltype(CreateFileW)>("CreateFileW");
  return open(any_length(path).c_str(), access, share, security, how, flags, like);
}

HANDLE WINAPI list_files(LPCWSTR pattern, LPWIN32_FIND_DATAW found) {
  static auto* const list = windows_own<decltype(FindFirstFileW)>("FindFirstFileW");
  return list(any_length(pattern).c_str(), found);
}

BOOL WINAPI make_folder(LPCWSTR path, LPSECURITY_ATTRIBUTES security) {
  static auto* const make = windows_own<decltype(CreateDirectoryW)>("CreateDirectoryW");
  return make(any_length(path).c_str(), security);
}

}  // namespace

extern "C" {
decltype(MultiByteToWideChar)* __imp_MultiByteToWideChar = to_wide;
decltype(WideCharToMultiByte)* __imp_WideCharToMultiByte = to_narrow;
decltype(CreateFileW)* __imp_CreateFileW = open_file;
decltype(FindFirstFileW)* __imp_FindFirstFileW = list_files;
decltype(CreateDirectoryW)* __imp_CreateDirectoryW = make_folder;
}

namespace neml2_capi {

std::uintptr_t locks::detail::this_thread() { return GetCurrentThreadId(); }

// There are no signals to block, and no limits of a process to tell.
std::string refusals::limit_behind(int) { return ""; }
refusals::QuietWrites::QuietWrites() : was_pending_(false) {}
refusals::QuietWrites::~QuietWrites() {
  static_cast<void>(before_);
  static_cast<void>(was_pending_);
}

}  // namespace neml2_capi

namespace neml2_capi::platform {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

BlockedSignals::BlockedSignals() = default;
BlockedSignals::~BlockedSignals() { static_cast<void>(before_); }

std::int64_t process_id() { return GetCurrentProcessId(); }

bool is_running(std::int64_t process) {
  const HANDLE handle = OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(process));
  if (!handle) return GetLastError() == ERROR_ACCESS_DENIED;  // it is another user's
  const bool ended = WaitForSingleObject(handle, 0) == WAIT_OBJECT_0;
  CloseHandle(handle);
  return !ended;
}

std::string host_name() { return variable("COMPUTERNAME"); }
std::string processor_name() { return variable("PROCESSOR_IDENTIFIER"); }
std::int64_t level2_cache() { return 1 << 19; }

std::tm utc(std::time_t time) {
  std::tm parts{};
  gmtime_s(&parts, &time);
  return parts;
}

void* allocate(std::size_t alignment, std::size_t size) noexcept { return _aligned_malloc(size, alignment); }
void release(void* block) noexcept { _aligned_free(block); }

bool File::open(const std::filesystem::path& path) {
  number_ = _wopen(any_length(path.c_str()).c_str(), _O_RDONLY | _O_BINARY | _O_NOINHERIT);
  return is_open();
}

bool File::create(const std::filesystem::path& path) {
  number_ = _wopen(any_length(path.c_str()).c_str(), _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT,
                   _S_IREAD | _S_IWRITE);
  return is_open();
}

bool File::close() { return number_ < 0 || _close(std::exchange(number_, -1)) == 0; }

std::optional<std::size_t> File::size() const {
  struct _stat64 info {};
  if (_fstat64(number_, &info) != 0) return std::nullopt;
  errno = 0;
  if ((info.st_mode & _S_IFMT) != _S_IFREG) return std::nullopt;
  return static_cast<std::size_t>(info.st_size);
}

bool File::seek(std::size_t position) const {
  return _lseeki64(number_, static_cast<std::int64_t>(position), SEEK_SET) >= 0;
}

constexpr std::size_t most_at_once = 1 << 30;

std::ptrdiff_t File::read(char* data, std::size_t size) const {
  std::size_t done = 0;
  while (done < size) {
    const int count = _read(number_, data + done, static_cast<unsigned>(std::min(size - done, most_at_once)));
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<std::ptrdiff_t>(done);
}

bool write_all(int number, std::string_view content) {
  while (!content.empty()) {
    const int written = _write(number, content.data(), static_cast<unsigned>(std::min(content.size(), most_at_once)));
    if (written <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Windows does not rename a file to the name of another.
bool publish(const std::filesystem::path& draft, const std::filesystem::path& path) {
  return _wrename(any_length(draft.c_str()).c_str(), any_length(path.c_str()).c_str()) == 0;
}

void require_memory_for_loader() {}

void* open_shared(const char* path, std::string& reason, Opening how) {
  const std::wstring name = any_length(std::filesystem::path(path).c_str());
  void* const library = how == Opening::only_if_there ? GetModuleHandleW(name.c_str()) : LoadLibraryW(name.c_str());
  if (!library) reason = std::system_category().message(static_cast<int>(GetLastError()));
  return library;
}

void* function_of(void* object, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(object), name));
}

std::string library_folder() {
  constexpr DWORD by_address = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  HMODULE library = nullptr;
  std::wstring file(1 << 15, L'\0');  // the longest that there are
  if (!GetModuleHandleExW(by_address, reinterpret_cast<const wchar_t*>(&library_folder), &library)) return {};
  file.resize(GetModuleFileNameW(library, file.data(), static_cast<DWORD>(file.size())));
  return std::filesystem::path(file).parent_path().string();
}

}  // namespace neml2_capi::platform
#endif
