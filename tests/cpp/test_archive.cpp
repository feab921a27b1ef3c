// Reading .pt2 archives: good ones, and every kind of damage.
#include "capi/archive/archive.h"
#include "capi/archive/files.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using archive::Archive;

namespace {

void a_package_is_read(const std::filesystem::path& package) {
  const Archive archive(package);
  expect(archive.find(".wrapper.so")
             .value()
             .starts_with("\x7f"
                          "ELF"),
         "the shared object is found");
  expect(archive.find(".wrapper.cpp").value().find("check_input_0") != std::string::npos, "the source is found");
  expect(!archive.find(".no_such_entry"), "an entry that is not there is not found");
  expect_error(NEML2_ERROR_ARTIFACT, "end with", [&] { (void)archive.find(""); });
}

// Without its last bytes an archive has no directory.
void a_truncated_package_is_refused(const std::filesystem::path& package, const Scratch& scratch) {
  const std::string bytes = read_file(package);
  const auto path = scratch / "truncated.pt2";
  for (std::size_t size = 0; size < bytes.size(); size += 997) {
    write_file(path, std::string_view(bytes).substr(0, size));
    expect_error(NEML2_ERROR_ARTIFACT, size == 0 ? "it is empty" : "truncated", [&] { Archive archive(path); });
  }
}

void a_changed_byte_is_noticed(const std::filesystem::path& package, const Scratch& scratch) {
  std::string bytes = read_file(package);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const auto path = scratch / "changed.pt2";
  write_file(path, bytes);
  expect_error(NEML2_ERROR_ARTIFACT, "CRC", [&] { Archive archive(path); });
}

void headers_are_not_trusted(const Scratch& scratch) {
  const std::string good = zip({{"a.txt", "first"}, {"b.txt", "second"}});
  const auto path = scratch / "small.pt2";
  write_file(path, good);
  expect(Archive(path).find("b.txt") == "second", "a small archive is read");
  // Any byte may change: the archive is refused, or still holds what it says.
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      write_file(path, bytes);
      try {
        const Archive archive(path);
        const auto text = archive.find("b.txt");
        expect(!text || *text == "second", join("byte ", at, " changes no content"));
      } catch (const Error& error) {
        expect(error.status() == NEML2_ERROR_ARTIFACT, error.what());
      }
    }
}

void compressed_entries_are_refused(const Scratch& scratch) {
  std::string bytes = zip({{"a.txt", "first"}});
  const std::size_t directory = bytes.find("PK\x01\x02");
  bytes[directory + 10] = 8;  // deflate
  const auto path = scratch / "compressed.pt2";
  write_file(path, bytes);
  expect_error(NEML2_ERROR_ARTIFACT, "compressed", [&] { Archive archive(path); });
}

void files_that_cannot_be_read_are_named(const Scratch& scratch) {
  expect_error(NEML2_ERROR_FILE, "no_such.pt2", [&] { Archive archive(scratch / "no_such.pt2"); });
  expect_error(NEML2_ERROR_FILE, "not a file", [&] { Archive archive(scratch / "."); });
  write_file(scratch / "file", "x");
  expect_error(NEML2_ERROR_FILE, "Not a directory", [&] { Archive archive(scratch / "file/small.pt2"); });
  // Its content is shorter than its size, a page.
  const std::filesystem::path short_file = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (std::filesystem::exists(short_file) && std::filesystem::file_size(short_file) > read_file(short_file).size())
    expect_error(NEML2_ERROR_FILE, "it became shorter while it was read", [&] { Archive archive(short_file); });
}

void all_entries_of_a_kind_are_found(const Scratch& scratch) {
  const auto path = scratch / "several.pt2";
  write_file(path, zip({{"a.cubin", "first"}, {"b.txt", "second"}, {"c.cubin", "third"}}));
  const Archive archive(path);
  const auto found = archive.find_all(".cubin");
  expect(found.size() == 2 && found[0].first == "a.cubin" && found[1].second == "third", "in their order");
}

// A package in an artifact in memory.
void a_mounted_archive_is_read(const Scratch& scratch) {
  const std::string package = zip({{"a.txt", "first"}});
  const std::string artifact = zip({{"cpu/small.pt2", package}, {"cpu/damaged.pt2", "PK"}});
  const archive::Mount mount(artifact);
  const auto path = mount.path() / "cpu/small.pt2";
  const std::optional<std::string_view> entry = archive::mounted(path);
  expect(entry == package && Archive(path).find("a.txt") == "first", "its entry");
  expect_error(NEML2_ERROR_ARTIFACT, "cpu/damaged.pt2", [&] { Archive archive(mount.path() / "cpu/damaged.pt2"); });
  expect_error(NEML2_ERROR_FILE, "no such file", [&] { Archive archive(mount.path() / "cpu/missing.pt2"); });
  expect(archive::read(path, package.size()) == package, "a text");
  expect(!archive::read(path, package.size() - 1), "a longer one is refused");

  write_file(scratch / "small.pt2", package);
  const std::uint32_t checksum = archive::directory_checksum(scratch / "small.pt2");
  expect(checksum == crc32(std::string_view(package).substr(package.find("PK\x01\x02"))), "of the directory");
  expect(archive::directory_checksum(path) == checksum, "of an entry as of a file");
}

void a_mount_ends_with_its_owner() {
  const std::string artifact = zip({{"cpu/a.txt", "first"}});
  std::optional<archive::Mount> mount(artifact);
  const std::filesystem::path root = mount->path();
  expect(archive::is_file(root / "cpu/a.txt") && archive::is_folder(root / "cpu") && archive::is_folder(root), "there");
  expect(!archive::is_folder(root / "cp") && !archive::is_folder(root / "z"), "no such folders");
  mount.reset();
  expect(!archive::mounted(root / "cpu/a.txt") && !archive::is_folder(root), "gone");
}

void a_directory_without_an_end_has_no_checksum(const Scratch& scratch) {
  const auto path = scratch / "directory.pt2";
  write_file(path, "no archive");
  expect_error(NEML2_ERROR_ARTIFACT, "not a zip archive", [&] { archive::directory_checksum(path); });
  expect_error(NEML2_ERROR_FILE, "there is no such file",
               [&] { archive::directory_checksum(scratch / "no_such.pt2"); });
  write_file(path, "");
  expect_error(NEML2_ERROR_ARTIFACT, "it is empty", [&] { archive::directory_checksum(path); });
  std::string bytes = zip({{"a.txt", "first"}});
  bytes[bytes.size() - 3] = 1;  // beyond the end, in the highest byte of the offset
  write_file(path, bytes);
  expect_error(NEML2_ERROR_ARTIFACT, "the directory of the archive is damaged",
               [&] { archive::directory_checksum(path); });
  const std::string artifact = zip({{"a.pt2", bytes}});
  const archive::Mount mount(artifact);
  expect_error(NEML2_ERROR_ARTIFACT, "truncated", [&] { archive::directory_checksum(mount.path() / "a.pt2"); });
}

// A file that the system does not show is not missing.
void a_path_that_the_system_does_not_tell_is_an_error() {
  const std::filesystem::path path = "/" + std::string(5000, 'a');
  expect_error(NEML2_ERROR_FILE, "Cannot look at /aaa", [&] { archive::is_file(path); });
  expect_error(NEML2_ERROR_FILE, "File name too long", [&] { archive::is_folder(path); });
}

}  // namespace

int main() {
  const Scratch scratch;
  const auto package = example("elasticity");
  a_package_is_read(package);
  a_truncated_package_is_refused(package, scratch);
  a_changed_byte_is_noticed(package, scratch);
  headers_are_not_trusted(scratch);
  compressed_entries_are_refused(scratch);
  files_that_cannot_be_read_are_named(scratch);
  all_entries_of_a_kind_are_found(scratch);
  a_mounted_archive_is_read(scratch);
  a_mount_ends_with_its_owner();
  a_directory_without_an_end_has_no_checksum(scratch);
  a_path_that_the_system_does_not_tell_is_an_error();
  return 0;
}
