// A shared object: its bytes by offset and by address, and its dynamic section. No offset in it is trusted.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "capi/base/error.h"
#include "capi/loader/elf.h"

namespace neml2_capi::aoti::elf {

[[noreturn]] void malformed(const std::string& what);

// Bytes of the file, by file offset and by the address at which they are loaded.
class File {
 public:
  // Throws if this is not a shared object for this machine.
  explicit File(std::string_view bytes) : File(Bytes(bytes)) {}
  explicit File(Bytes&& bytes);

  const Bytes& bytes() const { return bytes_; }
  Bytes take() { return std::move(bytes_); }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  const std::vector<Elf64_Phdr>& loaded() const { return loaded_; }
  const std::optional<Elf64_Phdr>& dynamic() const { return dynamic_; }

  std::string_view range(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) malformed("an offset leads outside of it");
    return std::string_view(bytes_).substr(offset, size);
  }
  template <class T>
  T read(std::uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, range(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <class T>
  void write(std::uint64_t offset, const T& value) {
    write_text(offset, {reinterpret_cast<const char*>(&value), sizeof(T)});
  }
  void write_text(std::uint64_t offset, std::string_view text) {
    range(offset, text.size());
    bytes_.replace(offset, text.size(), text);
  }

  // Returns the offset in the file of the `size` bytes that are loaded at `address`.
  std::uint64_t offset_of(std::uint64_t address, std::uint64_t size) const;
  template <class T>
  T read_at(std::uint64_t address) const {
    return read<T>(offset_of(address, sizeof(T)));
  }

  static std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    if (a > UINT64_MAX - b) malformed("an offset overflows");
    return a + b;
  }

 private:
  Bytes bytes_;
  std::vector<Elf64_Phdr> segments_, loaded_;
  std::optional<Elf64_Phdr> dynamic_;
};

// Dynamic section, entry by entry. Entries behind the first DT_NULL are spare.
class DynamicSection {
 public:
  explicit DynamicSection(File& file);

  std::uint64_t size() const { return used_; }
  bool has_spare() const { return has_spare_; }  // an entry behind the end
  Elf64_Dyn at(std::uint64_t i) const { return file_.read<Elf64_Dyn>(offset(i)); }
  void set(std::uint64_t i, Elf64_Sxword tag, std::uint64_t value) {
    Elf64_Dyn entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    file_.write(offset(i), entry);
  }
  std::optional<std::uint64_t> index_of(Elf64_Sxword tag) const {
    for (std::uint64_t i = 0; i < used_; ++i)
      if (at(i).d_tag == tag) return i;
    return std::nullopt;
  }
  std::optional<std::uint64_t> find(Elf64_Sxword tag) const {
    const auto i = index_of(tag);
    return i ? std::optional(at(*i).d_un.d_val) : std::nullopt;
  }
  std::uint64_t get(Elf64_Sxword tag, const char* name) const {
    const auto value = find(tag);
    if (!value) malformed(join("its dynamic section has no ", name));
    return *value;
  }

 private:
  std::uint64_t offset(std::uint64_t i) const { return start_ + i * sizeof(Elf64_Dyn); }

  File& file_;
  std::uint64_t start_ = 0;
  std::uint64_t used_ = 0;
  bool has_spare_ = false;
};

// Returns the number of symbols. No field tells it, but the hash table, of either style, must reach them all.
std::uint64_t count_symbols(const File& file, const DynamicSection& dynamic);

}  // namespace neml2_capi::aoti::elf
