// Writing arrays as numpy.savez() does. That numpy reads them is a test of tests/python/test_capsule.py.
#include <filesystem>
#include <iterator>

#include "capi/archive/archive.h"
#include "capi/archive/npz.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;

namespace {

namespace fs = std::filesystem;

std::string_view bytes_of(const double (&values)[6]) { return {reinterpret_cast<const char*>(values), sizeof values}; }

std::ptrdiff_t count_files(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

void the_reader_of_packages_accepts_it(const fs::path& path) {
  Tensor numbers = Tensor::empty(DType::float64, {2, 3});
  for (int i = 0; i < 6; ++i) numbers.data_as<double>()[i] = i;
  archive::Npz file;
  file.add("inputs/strain~1", numbers);
  file.add("transposed", Tensor(numbers.storage(), DType::float64, Dims{3, 2}, Dims{1, 3}));
  file.add("one", Tensor::zeros(DType::int32, {}));
  file.add_text("what.json", "{}");
  file.write(path);
  expect(count_files(path.parent_path()) == 1, "no draft is left");

  const archive::Archive archive(path);  // checks the CRC of each entry
  expect(archive.find("what.json") == "{}", "a text is an entry as it is");
  const std::string_view rows = archive.find("inputs/strain~1.npy").value();
  expect(rows.starts_with(std::string_view("\x93NUMPY\x01\0", 8)), "an array has the header of .npy");
  expect(rows.find("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }") == 10, "with its type and shape");
  expect((rows.size() - 48) % 64 == 0 && rows.ends_with(bytes_of({0, 1, 2, 3, 4, 5})), "and then its values, aligned");
  expect(archive.find("transposed.npy").value().ends_with(bytes_of({0, 3, 1, 4, 2, 5})), "in row-major order");
  expect(archive.find("one.npy").value().find("'shape': (), }") != std::string_view::npos, "a number has no axes");
}

void no_file_is_overwritten(const fs::path& path) {
  const std::string before = read_file(path);
  archive::Npz other;
  other.add_text("other", "text");
  expect_error(NEML2_ERROR_FILE, "already", [&] { other.write(path); });
  expect(read_file(path) == before, "the file is as it was");
  expect(count_files(path.parent_path()) == 1, "and no draft is left");
}

void what_is_no_folder_is_an_error(const fs::path& path) {
  const archive::Npz empty;
  expect_error(NEML2_ERROR_FILE, "No such file", [&] { empty.write(path.parent_path() / "missing" / "b.npz"); });
  expect_error(NEML2_ERROR_FILE, "Not a directory", [&] { empty.write(path / "b.npz"); });
}

}  // namespace

int main() {
  const Scratch scratch;
  const fs::path path = scratch / "a.npz";
  the_reader_of_packages_accepts_it(path);
  no_file_is_overwritten(path);
  what_is_no_folder_is_an_error(path);
  return 0;
}
