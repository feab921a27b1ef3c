#include "capi/archive/npz.h"

#include <bit>
#include <cstdint>
#include <utility>

#include "capi/archive/crc32.h"
#include "capi/archive/draft.h"
#include "capi/base/error.h"

namespace neml2_capi::archive {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "Arrays are little-endian, and written without a swap.");

// Returns numpy's name of an element type.
const char* descriptor(DType dtype) {
  switch (dtype) {
    case DType::float64: return "<f8";
    case DType::float32: return "<f4";
    case DType::int64: return "<i8";
    case DType::int32: return "<i4";
    case DType::int16: return "<i2";
    case DType::int8: return "|i1";
    case DType::uint8: return "|u1";
    case DType::boolean: return "|b1";
    case DType::float16: return "<f2";
    case DType::bfloat16: return "<u2";  // its bits, since numpy lacks the type
  }
  return "";
}

void append(std::string& bytes, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> 8 * i & 0xff));
}

// The .npy format, version 1.0: magic, length of the header, the header padded to a multiple of 64, the values.
std::string npy(const Tensor& array) {
  constexpr std::size_t preamble = 10, alignment = 64;
  std::string header = join("{'descr': '", descriptor(array.dtype()),
                            "', 'fortran_order': False, 'shape': ", array.sizes().str(), ", }");
  header.resize((preamble + header.size() + 1 + alignment - 1) / alignment * alignment - preamble - 1, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY";
  append(bytes, 1, 2);  // the version, 1 and 0
  append(bytes, header.size(), 2);
  bytes += header;
  const std::size_t begin = bytes.size();
  bytes.resize(begin + static_cast<std::size_t>(array.numel() * array.itemsize()));
  array.copy_to(bytes.data() + begin);
  return bytes;
}

// The fields that the header of an entry and its record in the directory share.
std::string common_fields(const std::string& name, const std::string& content) {
  std::string fields;
  append(fields, 20, 2);      // version of the format
  append(fields, 0x0800, 2);  // the name is UTF-8
  append(fields, 0, 2);       // stored
  append(fields, 0, 2);       // the time, and the date, 1 January 1980: capsule.json has the true ones
  append(fields, 0x21, 2);
  append(fields, crc32(content), 4);
  append(fields, content.size(), 4);
  append(fields, content.size(), 4);
  append(fields, name.size(), 2);
  append(fields, 0, 2);  // extra fields
  return fields;
}

}  // namespace

void Npz::add(const std::string& name, const Tensor& array) { entries_.push_back({name + ".npy", npy(array)}); }

void Npz::add_text(const std::string& name, std::string text) { entries_.push_back({name, std::move(text)}); }

void Npz::write(const fs::path& path) const {
  constexpr std::uint64_t most = 0xffff'fffe;  // beyond, a zip archive needs fields of 64 bits
  Draft draft(path);
  std::string directory;
  std::uint64_t offset = 0;
  for (const auto& [name, content] : entries_) {
    const std::string fields = common_fields(name, content);
    std::string header;
    append(header, 0x04034b50, 4);
    header += fields + name;
    append(directory, 0x02014b50, 4);
    append(directory, 20, 2);  // the version that wrote it
    directory += fields;
    append(directory, 0, 2);  // comment
    append(directory, 0, 2);  // disk
    append(directory, 0, 2);  // attributes
    append(directory, 0, 4);
    append(directory, offset, 4);
    directory += name;
    offset += header.size() + content.size();
    if (offset > most) draft.fail("it would be larger than 4 GiB");
    draft.put(header);
    draft.put(content);
  }
  std::string end;
  append(end, 0x06054b50, 4);
  append(end, 0, 4);  // disks
  append(end, entries_.size(), 2);
  append(end, entries_.size(), 2);
  append(end, directory.size(), 4);
  append(end, offset, 4);
  append(end, 0, 2);  // comment
  draft.put(directory);
  draft.put(end);
  draft.publish();
}

}  // namespace neml2_capi::archive
