// Archives that were written to keep a reader busy or to fill memory, and files that change while they are read.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "capi/archive/files.h"
#include "capi/loader/image.h"
#include "capi/packages/load.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using archive::Archive;

namespace {

constexpr std::size_t large = std::size_t{4} << 20;
int large_blocks = 0;  // made by new

}  // namespace

void* operator new(std::size_t size) {
  large_blocks += size >= large;
  void* block = std::malloc(size);
  if (!block) throw std::bad_alloc();
  return block;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  large_blocks += size >= large;
  return std::malloc(size);
}
// Sanitizers have others, which do not call that one.
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace {

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (; bytes > 0; --bytes, value >>= 8) text += static_cast<char>(value & 0xff);
  return text;
}

// Returns an archive whose directory lists one entry many times, under names of their own.
std::string listed_often(const std::string& content, std::size_t times) {
  const std::string checksum = number(crc32(content), 4);
  const auto common = [&](const std::string& name) {
    return number(0, 4) + number(0, 4) + checksum + number(content.size(), 4) + number(content.size(), 4) +
           number(name.size(), 2) + number(0, 2);
  };
  std::string bytes = number(0x04034b50, 4) + number(20, 2) + common("n0") + "n0" + content;
  const std::size_t directory = bytes.size();
  for (std::size_t i = 0; i < times; ++i) {
    const std::string name = join("n", i);
    bytes += number(0x02014b50, 4) + number(20, 2) + number(20, 2) + common(name) + number(0, 14) + name;
  }
  return bytes + number(0x06054b50, 4) + number(0, 4) + number(times, 2) + number(times, 2) +
         number(bytes.size() - directory, 4) + number(directory, 4) + number(0, 2);
}

void entries_that_share_bytes_are_refused(const Scratch& scratch) {
  const auto path = scratch / "overlapping.pt2";
  write_file(path, listed_often(std::string(1 << 20, 'x'), 60000));  // 60 GB of entries
  expect_error(NEML2_ERROR_ARTIFACT, "overlap", [&] { Archive archive(path); });
  expect_error(NEML2_ERROR_ARTIFACT, "overlap", [&] { archive::Mount mount(read_file(path)); });
  // The directory as an entry.
  std::string bytes = zip({{"a.txt", ""}, {"b.txt", "second"}});
  bytes[bytes.find("PK\x01\x02") + 24] = bytes[bytes.find("PK\x01\x02") + 20] = 120;
  write_file(path, bytes);
  expect_error(NEML2_ERROR_ARTIFACT, "", [&] { Archive archive(path); });
}

void a_file_may_change_while_it_is_read(const Scratch& scratch) {
  const auto path = scratch / "shrinking.pt2";
  write_file(path, zip({{"a.txt", std::string(1 << 20, 'a')}}));
  const Archive archive(path);
  std::filesystem::resize_file(path, 0);
  expect(archive.find("a.txt") == std::string(1 << 20, 'a'), "the entry is as it was");
}

void devices_and_pipes_are_no_files(const Scratch&) {
  expect_error(NEML2_ERROR_FILE, "/dev/zero", [] { Archive archive(std::filesystem::path("/dev/zero")); });
  expect(!archive::read("/dev/zero"), "a device is not read to its end");
}

// A package for the CPU needs none.
void kernels_of_a_device_are_not_copied_for_the_processor(const Scratch& scratch) {
  Parts parts = parts_of(example("elasticity"));
  part(parts, ".cubin") = std::string(large, 'k');
  const auto path = scratch / "kernels.pt2";
  write_file(path, zip(parts));
  large_blocks = 0;
  aoti::check_package(path, {});
  expect(large_blocks == 1, "they are in the file that is read, and not copied");
}

void a_package_in_memory_may_have_kernels_of_a_device() {
  Parts parts = parts_of(example("elasticity"));
  part(parts, ".cubin") = "kernels";
  const std::string content = zip(parts);
  graph::Wanted wanted;
  wanted.runtime = graph::Runtime::builtin;
  expect(aoti::load_graph(graph::Source::in_memory(content), wanted)->inputs().size() == 2, "it is loaded");
}

void names_are_told_once(const Scratch& scratch) {
  const auto path = scratch / "twice.pt2";
  std::string bytes = zip({{"a.txt", "first"}, {"b.txt", "second"}});
  replace_all(bytes, "b.txt", "a.txt");
  expect_error(NEML2_ERROR_ARTIFACT, "twice", [&] { archive::Mount mount(bytes); });
}

}  // namespace

int main() {
  const Scratch scratch;
  entries_that_share_bytes_are_refused(scratch);
  a_file_may_change_while_it_is_read(scratch);
  devices_and_pipes_are_no_files(scratch);
  kernels_of_a_device_are_not_copied_for_the_processor(scratch);
  a_package_in_memory_may_have_kernels_of_a_device();
  names_are_told_once(scratch);
  return 0;
}
