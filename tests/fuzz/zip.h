// Mutator of zip archives, which mends checksums, sizes and offsets, so that a change inside reaches what reads it.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "capi/archive/crc32.h"
#include "tests/fuzz/fuzz.h"

namespace neml2_capi::fuzz {

struct ZipEntry {
  std::string name, content;
};

inline void append(std::string& bytes, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> 8 * i & 0xff));
}

// Writes an archive of stored entries.
inline std::string zip(const std::vector<ZipEntry>& entries) {
  std::string files, directory;
  for (const auto& [name, content] : entries) {
    std::string common;
    append(common, 0, 8);  // flags, method, time, date
    append(common, archive::crc32(content), 4);
    append(common, content.size(), 4);
    append(common, content.size(), 4);
    append(common, name.size(), 2);
    append(common, 0, 2);
    append(directory, 0x02014b50, 4);
    append(directory, 0x00140014, 4);
    directory += common;
    append(directory, 0, 8);  // extra fields, comment, disk, attributes
    append(directory, 0, 2);
    append(directory, files.size(), 4);
    directory += name;
    append(files, 0x04034b50, 4);
    append(files, 20, 2);
    files += common + name + content;
  }
  std::string end;
  append(end, 0x06054b50, 4);
  append(end, 0, 4);
  append(end, entries.size(), 2);
  append(end, entries.size(), 2);
  append(end, directory.size(), 4);
  append(end, files.size(), 4);
  append(end, 0, 2);
  return files + directory + end;
}

// Returns the entries as far as they can be read, without a check of anything else.
inline std::vector<ZipEntry> unzip(std::string_view bytes) {
  const auto field = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    if (at <= bytes.size() && size <= bytes.size() - at) std::memcpy(&value, bytes.data() + at, size);
    return static_cast<std::size_t>(value);
  };
  std::vector<ZipEntry> entries;
  const std::size_t end = bytes.rfind("PK\5\6");
  if (end == std::string_view::npos) return entries;
  std::size_t at = field(end + 16, 4);
  for (std::size_t i = std::min(field(end + 10, 2), std::size_t{64}); i > 0; --i) {
    if (field(at, 4) != 0x02014b50) break;
    const std::size_t size = field(at + 24, 4), length = field(at + 28, 2), local = field(at + 42, 4);
    const std::size_t begin = local + 30 + field(local + 26, 2) + field(local + 28, 2);
    if (at + 46 > bytes.size() || begin > bytes.size()) break;
    entries.push_back({std::string(bytes.substr(at + 46, length)), std::string(bytes.substr(begin, size))});
    at += 46 + length + field(at + 30, 2) + field(at + 32, 2);
  }
  return entries;
}

inline std::string mutated(std::string text, std::size_t room) {
  const std::size_t size = text.size();
  text.resize(size + room);
  text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
  return text;
}

// Changes one entry and writes the archive again; now and then changes its raw bytes instead, and leaves them so.
// `mutate_content` may know more of what entries hold.
template <class MutateContent>
std::size_t mutate_zip(std::uint8_t* data, std::size_t size, std::size_t capacity, unsigned seed,
                       const MutateContent& mutate_content) {
  std::minstd_rand random(seed);
  std::vector<ZipEntry> entries = unzip(text_of(data, size));
  if (entries.empty() || random() % 4 == 0) return LLVMFuzzerMutate(data, size, capacity);
  ZipEntry& entry = entries[random() % entries.size()];
  switch (random() % 8) {
    case 0: entry.name = mutated(entry.name, 16); break;
    case 1: entries.push_back(ZipEntry(entry)); break;
    case 2: entries.erase(entries.begin() + (&entry - entries.data())); break;
    case 3: std::swap(entry.content, entries[random() % entries.size()].content); break;
    default: mutate_content(entry, capacity - std::min(size, capacity), static_cast<unsigned>(random())); break;
  }
  const std::string made = zip(entries);
  if (made.size() > capacity) return LLVMFuzzerMutate(data, size, capacity);
  std::memcpy(data, made.data(), made.size());
  return made.size();
}

inline std::size_t mutate_zip(std::uint8_t* data, std::size_t size, std::size_t capacity, unsigned seed) {
  return mutate_zip(data, size, capacity, seed,
                    [](ZipEntry& entry, std::size_t room, unsigned) { entry.content = mutated(entry.content, room); });
}

}  // namespace neml2_capi::fuzz
