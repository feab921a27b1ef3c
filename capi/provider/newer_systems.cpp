// Symbols of a newer C or C++ library that packages find here, on a system without them: see loader/versions.h.
#include <cstddef>
#include <cstring>
#include <string>

#include "capi/provider/exports.h"

// __libc_single_threaded: code that reads false locks as in a process with several threads.
extern "C" {
__attribute__((visibility("default"))) char nml2bc_single_threaded = 0;
}

// std::string::_M_replace_cold(): writes `text`, which may lie within the string, over the `replaced` characters at
// `place`, and moves the `rest` behind them. There is room.
NML2_EXPORT void nml2t7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm(
    void*, char* place, std::size_t replaced, const char* text, std::size_t size, std::size_t rest) {
  const std::string copy(text, size);
  std::memmove(place + size, place + replaced, rest);
  std::memcpy(place, copy.data(), size);
}
