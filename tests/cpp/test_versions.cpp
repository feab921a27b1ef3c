// Symbols of versions that this system lacks: what a package takes in their place.
#include <string>

#include "capi/loader/elf.h"
#include "capi/loader/versions.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::Versions;

namespace {

constexpr const char* of_string = "_ZNOSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv";

// Returns what replaces a symbol, and "-" if nothing does. The version is of the library.
std::string replacement(Versions& versions, const char* library, const char* version, const char* symbol,
                        bool required = true) {
  versions.add(7, library, version);
  const auto found = versions.replace(7, symbol, required);
  return found ? std::string(*found) : "-";
}

void symbols_that_the_system_has_stay() {
  Versions versions;
#if defined(__x86_64__)
  expect(replacement(versions, "libm.so.6", "GLIBC_2.2.5", "pow") == "-", "pow is there");
#endif
  expect(replacement(versions, "libstdc++.so.6", "GLIBCXX_3.4", "_ZSt17__throw_bad_allocv") == "-", "it throws");
  expect(!versions.is_unused(7), "the version is in use");
  expect(!versions.is_unused(8), "nobody told of this one");
  versions.check();
}

void newer_symbols_are_replaced() {
  Versions versions;
  expect(replacement(versions, "libm.so.6", "GLIBC_2.999", "pow").empty(), "pow of any version");
  expect(versions.is_unused(7), "no symbol asks for the version");
  expect(replacement(versions, "libc.so.6", "GLIBC_2.999", "pthread_rwlock_rdlock").empty(), "locks");
  expect(replacement(versions, "libc.so.6", "GLIBC_2.999", "__libc_single_threaded") == "nml2", "the provider's hint");
  expect(replacement(versions, "libc.so.6", "GLIBC_2.999", "__isoc23_strtol") == std::string("strtol\0", 7), "strtol");
  expect(replacement(versions, "libstdc++.so.6", "GLIBCXX_9", of_string) == "_ZNK", "text is copied");
  expect(replacement(versions, "libstdc++.so.6", "CXXABI_9", "__cxa_call_terminate").starts_with("_ZSt9"), "the end");
  expect(replacement(versions, "libstdc++.so.6", "GLIBCXX_9", "_ZSt21ios_base_library_initv").starts_with("_ZNSt8"),
         "streams");
  expect(replacement(versions, "libc.so.6", "GLIBC_2.999", "gettid", false).empty(), "a weak reference may be null");
  versions.check();
}

void others_are_refused_by_name() {
  Versions versions;
  replacement(versions, "libm.so.6", "GLIBC_2.999", "pow");
  expect(replacement(versions, "libm.so.6", "GLIBC_2.999", "power") == "-", "nobody has it");
  expect(replacement(versions, "libc.so.6", "GLIBC_2.999", "closefrom") == "-", "another symbol of the version");
  expect_error(NEML2_ERROR_UNSUPPORTED, "it calls power (GLIBC_2.999), closefrom (GLIBC_2.999), which this one",
               [&] { versions.check(); });
}

void other_libraries_are_left_to_the_dynamic_loader() {
  Versions versions;
  expect(replacement(versions, "libgomp.so.1", "GOMP_9.0", "GOMP_parallel") == "-", "it is not looked at");
  versions.check();
}

}  // namespace

int main() {
#if !defined(__GLIBC__)
  return 77;
#endif
  symbols_that_the_system_has_stay();
  newer_symbols_are_replaced();
  others_are_refused_by_name();
  other_libraries_are_left_to_the_dynamic_loader();
  return 0;
}
