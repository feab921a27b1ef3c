// Reading what a package's source says about its inputs.
#include <random>

#include "capi/package/source.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::read_signature;
using aoti::Signature;

namespace {

std::string source_of(const std::string& package) {
  Parts parts = parts_of(example(package));
  return part(parts, ".wrapper.cpp");
}

void sizes_and_types_are_read() {
  const Signature signature = read_signature(source_of("viscoplastic_solve"));
  expect(signature.inputs.size() == 2 && signature.outputs.size() == 1, "operator and residual in, step out");
  expect(signature.inputs[0].least == Dims({2, 19, 19}), "a matrix per point");
  expect(signature.inputs[0].greatest == Dims({1 << 20, 19, 19}), "and up to a million points");
  expect(signature.inputs[1].dtype == DType::float64, "in double precision");
  expect(signature.equal_axes.size() == 1 && signature.equal_axes[0].size() == 2, "both have one batch");
  expect(!signature.has_integer_kernels, "kernels on real numbers may run side by side");
}

// A batch is equal in all inputs, those too that no kernel reads.
void inputs_that_no_kernel_reads_have_the_batch_too() {
  const Signature signature = read_signature(source_of("viscoplastic_predictor"));
  expect(signature.equal_axes.size() == 1 && signature.equal_axes[0].size() == 4, "four inputs, one batch");
}

void other_types_are_read() {
  std::string source = source_of("elasticity");
  replace_all(source, "aoti_torch_dtype_float64()", "aoti_torch_dtype_int32()");
  expect(read_signature(source).inputs[0].dtype == DType::int32, "an integer input");
  replace_all(source, "aoti_torch_dtype_int32()", "aoti_torch_dtype_complex64()");
  expect_error(NEML2_ERROR_UNSUPPORTED, "complex64", [&] { read_signature(source); });
}

void the_device_is_read() {
  std::string source = source_of("elasticity");
  replace_all(source, "_expected_device_type = 0;", "_expected_device_type = 1;");
  expect(read_signature(source).device == Device::Type::cuda, "all inputs on CUDA");
  source.replace(source.find("_expected_device_type = 1;"), 26, "_expected_device_type = 0;");
  expect_error(NEML2_ERROR_UNSUPPORTED, "input 1 on another device", [&] { read_signature(source); });
}

void other_devices_are_refused() {
  std::string source = source_of("elasticity");
  replace_all(source, "_expected_device_type = 0;", "_expected_device_type = 9;");
  expect_error(NEML2_ERROR_UNSUPPORTED, "input 0 on a device", [&] { read_signature(source); });
}

void integer_kernels_are_noticed() {
  std::string source = source_of("elasticity");
  replace_all(source, "(const double* in_ptr0", "(const int64_t* in_ptr0");
  expect(read_signature(source).has_integer_kernels, "a kernel reads integers");
}

// Either an Error or a result; a sanitizer sees what is worse.
void damaged_text_does_no_harm() {
  const std::string source = source_of("elasticity");
  const std::size_t begin = source.find("AOTInductorModelBase(");
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = source;
    for (int n = 0; n < 20; ++n) damaged[begin + random() % (source.size() - begin)] = " 9[]{}();,\n_x"[random() % 13];
    if (round % 10 == 0) damaged.resize(begin + random() % (source.size() - begin));
    try {
      read_signature(damaged);
    } catch (const Error& error) {
      expect(error.status() == NEML2_ERROR_ARTIFACT || error.status() == NEML2_ERROR_UNSUPPORTED, error.what());
    }
  }
}

}  // namespace

int main() {
  sizes_and_types_are_read();
  inputs_that_no_kernel_reads_have_the_batch_too();
  other_types_are_read();
  the_device_is_read();
  other_devices_are_refused();
  integer_kernels_are_noticed();
  damaged_text_does_no_harm();
}
