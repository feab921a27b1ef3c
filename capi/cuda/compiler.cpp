#include "capi/cuda/compiler.h"

#include <array>

#include "capi/base/error.h"
#include "capi/cuda/library.h"

namespace neml2_capi::cuda {
namespace {

// The text, a header, has a kernel if it is told how one is declared. No product is fused with a sum, so that a point has
// the bits that it has on the processor.
constexpr std::array options = {"--std=c++17",      "--fmad=false",
                                "--ftz=false",      "--prec-div=true",
                                "--prec-sqrt=true", "--define-macro=NEML2_KERNEL=extern \"C\" __global__"};

constexpr Status compilation_failed = 6, invalid_option = 5;

void require_compiler(Status status, const char* what) {
  if (status == 0) return;
  throw Error(NEML2_ERROR_RUNTIME, "nvrtc",
              join("CUDA's compiler failed: ", what, ": ", compiler().nvrtcGetErrorString(status), "."));
}

class Program {
 public:
  explicit Program(const std::string& text) {
    require_compiler(compiler().nvrtcCreateProgram(&program_, text.c_str(), "device.cu", 0, nullptr, nullptr),
                     "nvrtcCreateProgram");
  }
  ~Program() { compiler().nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Object get() const { return program_; }
  std::string log() const {
    Size size = 0;
    if (compiler().nvrtcGetProgramLogSize(program_, &size) != 0) return {};
    std::string text(size, '\0');
    if (compiler().nvrtcGetProgramLog(program_, text.data()) != 0) return {};
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
  }

 private:
  Object program_ = nullptr;
};

}  // namespace

std::string compile(std::string_view text, const std::string& architecture) {
  const Program program{std::string(text)};
  const std::string of = "--gpu-architecture=" + architecture;
  std::array<const char*, options.size() + 1> all{of.c_str()};
  for (std::size_t i = 0; i < options.size(); ++i) all[i + 1] = options[i];
  const Status status = compiler().nvrtcCompileProgram(program.get(), static_cast<int>(all.size()), all.data());
  if (status == compilation_failed)
    throw Error(NEML2_ERROR_ARTIFACT, "device.cu",
                join("The kernels do not compile for ", architecture, ": ", program.log(),
                     "\nWrite them again: neml2-capi build-kernels ARTIFACT --target cuda"));
  if (status == invalid_option)
    throw Error(NEML2_ERROR_UNSUPPORTED, architecture,
                join("CUDA's compiler does not take its options for ", architecture, ": ", program.log(),
                     ". Install the version of nvidia-cuda-nvrtc that knows the GPU."));
  require_compiler(status, "nvrtcCompileProgram");
  Size size = 0;
  require_compiler(compiler().nvrtcGetCUBINSize(program.get(), &size), "nvrtcGetCUBINSize");
  std::string cubin(size, '\0');
  require_compiler(compiler().nvrtcGetCUBIN(program.get(), cubin.data()), "nvrtcGetCUBIN");
  return cubin;
}

std::string compiler_key(const std::string& architecture) {
  int major = 0, minor = 0;
  require_compiler(compiler().nvrtcVersion(&major, &minor), "nvrtcVersion");
  std::string key = join("nvrtc ", major, ".", minor, "\n", architecture);
  for (const char* option : options) key += join("\n", option);
  return key;
}

}  // namespace neml2_capi::cuda
