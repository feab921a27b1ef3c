#include "capi/loader/isa.h"

#include <sys/utsname.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "capi/base/error.h"
#include "capi/platform/processor.h"

namespace neml2_capi::aoti {
namespace {

using Names = std::set<std::string, std::less<>>;

#if defined(__x86_64__)

constexpr const char* level_2[] = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"};
constexpr const char* level_3[] = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"};
constexpr const char* level_4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

// Returns the x86-64 level that -march=<name> includes at least.
int level_of(std::string_view march) {
  static constexpr std::string_view third[] = {"x86-64-v3", "haswell",    "broadwell",  "skylake",
                                               "alderlake", "raptorlake", "meteorlake", "arrowlake",
                                               "znver1",    "znver2",     "znver3",     "core-avx2"};
  static constexpr std::string_view fourth[] = {"x86-64-v4",  "skylake-avx512", "cannonlake",     "cascadelake",
                                                "cooperlake", "icelake-client", "icelake-server", "tigerlake",
                                                "rocketlake", "sapphirerapids", "emeraldrapids",  "graniterapids",
                                                "znver4",     "znver5"};
  if (std::ranges::find(fourth, march) != std::end(fourth)) return 4;
  if (std::ranges::find(third, march) != std::end(third)) return 3;
  return march == "x86-64-v2" || march == "nehalem" ? 2 : 1;
}

void add_level(Names& needed, int level) {
  if (level >= 2) needed.insert(std::begin(level_2), std::end(level_2));
  if (level >= 3) needed.insert(std::begin(level_3), std::end(level_3));
  if (level >= 4) needed.insert(std::begin(level_4), std::end(level_4));
}

// Calls a function with each word of a text.
template <class Take>
void for_each_word(std::string_view text, Take&& take) {
  constexpr std::string_view blanks = " \t\n";
  for (std::size_t begin = text.find_first_not_of(blanks), end; begin != text.npos;
       begin = text.find_first_not_of(blanks, end)) {
    end = std::min(text.find_first_of(blanks, begin), text.size());
    take(std::string(text.substr(begin, end - begin)));
  }
}

// Returns the instruction sets that a compiler was allowed to use. Later flags win: -march=native is recorded as a name
// and every -m and -mno- of it.
Names of_command_line(const std::string& producer) {
  Names needed;
  for_each_word(producer, [&](const std::string& word) {
    if (word.starts_with("-march=")) {
      add_level(needed, level_of(std::string_view(word).substr(7)));
    } else if (word.starts_with("-mno-")) {
      needed.erase(word.substr(5));
    } else if (word.starts_with("-m")) {
      needed.insert(word.substr(2));
    }
  });
  return needed;
}

// Adds a vector instruction set by Inductor's name. Returns false for an unknown name.
bool add_instruction_set(Names& needed, const std::string& name) {
  if (name == "AVX2") return add_level(needed, 3), true;
  if (name == "AVX512") return add_level(needed, 4), true;
  if (name == "AVX512_VNNI") return needed.insert("avx512vnni"), true;
  if (name == "AMX_TILE") return needed.insert("amx-tile"), true;
  return name == "INVALID_VEC_ISA";  // scalar code
}

Names missing_of(const Names& needed) {
  Names missing;
  for (const processor::Feature& feature : processor::features)
    if (needed.contains(feature.name) && !processor::is_present(feature)) missing.insert(feature.name);
  return missing;
}

#else

// Other machines have the vector instructions that Inductor uses in their baseline.
Names of_command_line(const std::string&) { return {}; }
bool add_instruction_set(Names&, const std::string& name) {
  return name == "ASIMD" || name == "NEON" || name == "INVALID_VEC_ISA";
}
Names missing_of(const Names&) { return {}; }

#endif

constexpr const char* portable_command = "ATEN_CPU_CAPABILITY=avx2 TORCHINDUCTOR_CPP_MARCH=x86-64-v3 neml2-compile ...";

[[noreturn]] void unsupported(const std::string& what) { throw Error(NEML2_ERROR_UNSUPPORTED, "", what); }

}  // namespace

void check_machine(const Target& target) {
  if (target.device != "cpu" && target.device != "cuda")
    unsupported(join("The package was compiled for the device \"", target.device,
                     "\", and only \"cpu\" and \"cuda\" are supported. Compile the model for one of these."));
  utsname system{};
  uname(&system);
  if (target.machine != system.machine)
    unsupported(join("The package was compiled for the machine \"", target.machine, "\", and this one is \"",
                     system.machine, "\". Compile the model on a machine of this kind."));
}

void check_processor(const Target& target, const std::vector<std::string>& producers) {
  Names needed;
  for_each_word(target.instruction_sets, [&](const std::string& name) {
    if (!add_instruction_set(needed, name))
      unsupported(join("The package was compiled for the unknown instruction set \"", name,
                       "\". Compile a portable package with: ", portable_command));
  });
  for (const std::string& producer : producers) needed.merge(of_command_line(producer));

  const Names missing = missing_of(needed);
  if (missing.empty()) return;
  std::string list;
  for (const std::string& name : missing) add_name(list, name);
  unsupported(join("The package was compiled for a processor with ", list,
                   ", which this one lacks. Compile a portable package with: ", portable_command));
}

}  // namespace neml2_capi::aoti
