// Reading .pt2 archives: good ones, and every kind of damage.
#include "capi/archive/archive.h"
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
}
