// Reads a zip archive of stored entries, and checks all of it before its first use.
#include "capi/archive/archive.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "capi/archive/crc32.h"
#include "capi/archive/file_bytes.h"
#include "capi/archive/files.h"
#include "capi/base/error.h"
#include "capi/base/limits.h"
#include "capi/base/sort.h"

namespace neml2_capi::archive {
namespace {

static_assert(std::endian::native == std::endian::little, "Zip fields are little-endian, and read without a swap.");

// Records of the zip format: signatures, sizes, one flag.
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t directory_signature = 0x02014b50;
constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::size_t end_size = 22;
constexpr std::size_t directory_size = 46;
constexpr std::size_t local_size = 30;
constexpr std::size_t longest_comment = 0xffff;
constexpr std::uint16_t encrypted = 1;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(NEML2_ERROR_ARTIFACT, path.filename().string(),
              join(path.string(), ": ", what, ". It should be ",
                   path == in_memory ? "a zip archive of the artifact's folder, whose entries are stored, with "
                                       "metadata.json at its root: write it again."
                                     : "a .pt2 package as neml2-compile writes it: compile or copy it again."));
}

// Reads fields of the archive. Throws for a field outside of it.
class Fields {
 public:
  Fields(const std::filesystem::path& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  template <class T>
  T get(std::size_t offset) const {
    T value;
    std::memcpy(&value, range(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view range(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) fail(path_, "the archive is truncated");
    return bytes_.substr(offset, size);
  }

 private:
  const std::filesystem::path& path_;
  std::string_view bytes_;
};

// Searches backwards for the end record, which stands last, before a comment of any length.
std::size_t find_end(const std::filesystem::path& path, std::string_view bytes) {
  if (bytes.size() >= end_size) {
    const std::size_t last = bytes.size() - end_size;
    const std::size_t first = last > longest_comment ? last - longest_comment : 0;
    for (std::size_t at = last + 1; at-- > first;) {
      std::uint32_t signature;
      std::uint16_t comment;
      std::memcpy(&signature, bytes.data() + at, 4);
      std::memcpy(&comment, bytes.data() + at + 20, 2);
      if (signature == end_signature && at + end_size + comment == bytes.size()) return at;
    }
  }
  fail(path, bytes.empty() ? "it is empty" : "it is not a zip archive, or it is truncated");
}

}  // namespace

Archive::Archive(const std::filesystem::path& path) : path_(path) {
  const auto content = mounted(path);
  if (!content) file_.emplace(path, limits::package_bytes);
  bytes_ = content ? *content : file_->view();
  read_directory();
}

Archive::Archive(const std::string& name, std::string_view content) : path_(name), bytes_(content) { read_directory(); }

void Archive::read_directory() {
  const Fields fields(path_, bytes_);
  const std::size_t end = find_end(path_, bytes_);
  const std::size_t count = fields.get<std::uint16_t>(end + 10);
  std::size_t at = fields.get<std::uint32_t>(end + 16);
  if (count == 0xffff || at == 0xffffffff) fail(path_, "it is a zip64 archive, which is not supported");
  const std::size_t directory = at;
  std::vector<std::uint32_t> checksums;

  for (std::size_t i = 0; i < count; ++i) {
    if (fields.get<std::uint32_t>(at) != directory_signature) fail(path_, "the directory of the archive is damaged");
    const auto flags = fields.get<std::uint16_t>(at + 8);
    const auto method = fields.get<std::uint16_t>(at + 10);
    const auto crc = fields.get<std::uint32_t>(at + 16);
    const std::size_t size = fields.get<std::uint32_t>(at + 24);
    const std::size_t name_size = fields.get<std::uint16_t>(at + 28);
    const std::size_t extra_size = fields.get<std::uint16_t>(at + 30);
    const std::size_t comment_size = fields.get<std::uint16_t>(at + 32);
    const std::size_t local = fields.get<std::uint32_t>(at + 42);
    std::string name(fields.range(at + directory_size, name_size));

    if (flags & encrypted) fail(path_, join("the entry ", name, " is encrypted"));
    if (method != 0 || fields.get<std::uint32_t>(at + 20) != size)
      fail(path_, join("the entry ", name, " is compressed; entries must be stored"));
    if (fields.get<std::uint32_t>(local) != local_signature) fail(path_, join("the entry ", name, " is damaged"));
    // The local header tells the lengths of its own name and extra fields.
    const std::size_t offset =
        local + local_size + fields.get<std::uint16_t>(local + 26) + fields.get<std::uint16_t>(local + 28);
    fields.range(offset, size);
    entries_.push_back({std::move(name), local, offset, size});
    checksums.push_back(crc);
    at += directory_size + name_size + extra_size + comment_size;
  }
  refuse_shared_bytes(directory);
  for (std::size_t i = 0; i < count; ++i)
    if (const Entry& entry = entries_[i]; crc32(bytes_.substr(entry.offset, entry.size)) != checksums[i])
      fail(path_, join("the entry ", entry.name, " is damaged (its CRC differs)"));
}

// A small file may list gigabytes of entries that overlap.
void Archive::refuse_shared_bytes(std::size_t directory) const {
  std::vector<const Entry*> entries;
  for (const Entry& entry : entries_) entries.push_back(&entry);
  heap_sort(entries, [](const Entry* a, const Entry* b) { return a->begin < b->begin; });
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t end = i + 1 < entries.size() ? entries[i + 1]->begin : directory;
    if (entries[i]->offset + entries[i]->size > end)
      fail(path_, join("the entry ", entries[i]->name, " overlaps with what follows it"));
  }
}

std::optional<std::string_view> Archive::find(std::string_view suffix) const {
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (!entry.name.ends_with(suffix)) continue;
    if (found) fail(path_, join("both ", found->name, " and ", entry.name, " end with ", suffix));
    found = &entry;
  }
  if (!found) return std::nullopt;
  return bytes_.substr(found->offset, found->size);
}

std::vector<std::pair<std::string, std::string_view>> Archive::find_all(std::string_view suffix) const {
  std::vector<std::pair<std::string, std::string_view>> found;
  for (const Entry& entry : entries_)
    if (entry.name.ends_with(suffix)) found.emplace_back(entry.name, bytes_.substr(entry.offset, entry.size));
  return found;
}

std::uint32_t directory_checksum(const std::filesystem::path& path) {
  if (const auto content = mounted(path)) {
    const std::size_t begin = Fields(path, *content).get<std::uint32_t>(find_end(path, *content) + 16);
    return crc32(Fields(path, *content).range(begin, content->size() - std::min(begin, content->size())));
  }
  platform::File file;
  const std::size_t size = open(file, path);
  const auto read = [&](std::size_t begin) {
    std::string bytes(size - begin, '\0');
    if (!file.seek(begin)) throw unreadable(path, errno);
    read_all(file, path, bytes.data(), bytes.size());
    return bytes;
  };
  const std::size_t tail = size - std::min(size, end_size + longest_comment);
  const std::string last = read(tail);
  const std::size_t begin = Fields(path, last).get<std::uint32_t>(find_end(path, last) + 16);
  if (begin > size) fail(path, "the directory of the archive is damaged");
  return crc32(read(begin));
}

}  // namespace neml2_capi::archive
