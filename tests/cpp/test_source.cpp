// Reading what a package's source says about its inputs.
#include <random>

#include "capi/base/limits.h"
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

// The source of elasticity, with one text replaced.
std::string with(std::string_view from, std::string_view to) {
  std::string source = source_of("elasticity");
  expect(source.find(from) != std::string::npos, join("the source has ", from));
  replace_all(source, from, to);
  return source;
}

void line_ends_may_be_those_of_another_system() {
  const Signature signature = read_signature(with(";\n", ";\r\n"));
  expect(signature.inputs.at(0).least == Dims({2, 6}) && signature.outputs.at(0).sizes == Dims({-1, 6}), "as before");
}

void numbers_of_tensors_are_numbers() {
  for (const char* arity : {"AOTInductorModelBase(-2,", "AOTInductorModelBase(two,", "AOTInductorModelBase(2;"})
    expect_error(NEML2_ERROR_ARTIFACT, "does not state the numbers of inputs and outputs",
                 [&] { read_signature(with("AOTInductorModelBase(2,", arity)); });
  const std::string source = source_of("elasticity");
  const std::string cut = source.substr(0, source.find("AOTInductorModelBase(2,") + 22);
  expect_error(NEML2_ERROR_ARTIFACT, "numbers of inputs and outputs", [&] { read_signature(cut); });
}

void bounds_are_possible() {
  const auto refused = [](const char* from, const char* to, const std::string& message) {
    expect_error(NEML2_ERROR_ARTIFACT, message, [&] { read_signature(with(from, to)); });
  };
  refused("if (arg1_1_size[0] < 2)", "if (arg1_1_size[0] < -2)", "input 0 has impossible bounds of axis 0");
  refused("if (arg1_1_size[0] > 1048576)", "if (arg1_1_size[0] > 1)", "input 0 has impossible bounds of axis 0");
  std::string large = with("if (6 != arg1_1_size[1])", "if (4611686018427387904 != arg1_1_size[1])");
  replace_all(large, "if (arg1_1_size[0] < 2)", "if (4 != arg1_1_size[0])");
  replace_all(large, "6 != arg1_1_stride[0]", "4611686018427387904 != arg1_1_stride[0]");
  expect_error(NEML2_ERROR_ARTIFACT, "input 0 is too large", [&] { read_signature(large); });
  // Checks of what no input has say nothing.
  const char* const first = "if (6 != arg1_1_size[1]) {";
  for (const char* other :
       {"7 != arg1_1_size[-1]", "7 != arg1_1_size[16]", "7 != arg1_1_size[x]", "arg1_1_stride[0] < 9"})
    expect(read_signature(with(first, join("if (", other, ") {\n    ", first))).inputs[0].least == Dims({2, 6}), other);
}

void inputs_keep_their_strides() {
  expect_error(NEML2_ERROR_UNSUPPORTED, "input 0 with strides of its own",
               [] { read_signature(with("int64_t s74 = s35;", "int64_t s74 = arg1_1_stride[0];")); });
  expect(read_signature(with("int64_t s74 = s35;", "int64_t s74 = buf9_stride[0];")).inputs.size() == 2, "of another");
  expect_error(NEML2_ERROR_UNSUPPORTED, "input 0 with gaps",
               [] { read_signature(with("6 != arg1_1_stride[0]", "7 != arg1_1_stride[0]")); });
}

void an_input_has_a_variable_of_its_own() {
  std::string source = source_of("elasticity");
  const std::size_t begin = source.find("check_input_1("), end = source.find("\n}", begin);
  std::string checks = source.substr(begin, end - begin);
  replace_all(checks, "arg2_1", "arg1_1");
  source.replace(begin, end - begin, checks);
  expect_error(NEML2_ERROR_ARTIFACT, "input 1 has the variable of another, arg1_1", [&] { read_signature(source); });
}

void what_is_told_of_outputs_is_read() {
  const auto output = [](const char* from, const std::string& to) {
    return read_signature(with(from, to)).outputs.at(0);
  };
  const char* const last = "output_handles[0] = buf0.release();";
  expect(output(last, last).dtype == DType::float64, "its type");
  for (const char* index : {"-1", "1", "x", "99999999999999999999"})
    expect(!output(last, join("output_handles[", index, "] = buf0.release();")).dtype, join("the output ", index));
  expect(output(last, join("auto buf1 = std::move(buf0);  // reuse\n", "output_handles[0] = buf1.release();")).sizes ==
             Dims({-1, 6}),
         "by another name");
  expect(output(last, join("auto buf0 = std::move(buf0);\n", last)).dtype == DType::float64, "by its own");
  std::string sizes = "s35";
  for (int i = 0; i < 16; ++i) sizes += ", 1L";
  expect(!output("{s35, 6L};", "{" + sizes + "};").sizes, "more sizes than a tensor has axes");
}

void the_source_is_bounded() {
  expect_error(NEML2_ERROR_ARTIFACT, "expected at most",
               [] { read_signature(std::string(limits::source_bytes + 1, ' ')); });
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
  line_ends_may_be_those_of_another_system();
  numbers_of_tensors_are_numbers();
  bounds_are_possible();
  inputs_keep_their_strides();
  an_input_has_a_variable_of_its_own();
  what_is_told_of_outputs_is_read();
  the_source_is_bounded();
  damaged_text_does_no_harm();
  return 0;
}
