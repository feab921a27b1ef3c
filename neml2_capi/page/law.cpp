// A law as WebAssembly: one point, whose numbers stand in arrays that the page reads and writes.
#include "law.hpp"

extern "C" {

// Functions of the C library, and of the compiler's, that compilers call.
void* memset(void* to, int value, decltype(sizeof 0) size) {
  for (decltype(size) i = 0; i < size; ++i) static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(value);
  return to;
}

void* memcpy(void* to, const void* from, decltype(sizeof 0) size) {
  for (decltype(size) i = 0; i < size; ++i) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}

// The product of large integers, by which large angles are reduced.
unsigned __int128 __multi3(unsigned __int128 a, unsigned __int128 b) {
  using Whole = unsigned long long;
  const auto low = [](Whole x) { return x & 0xFFFFFFFF; };
  const Whole x = static_cast<Whole>(a), y = static_cast<Whole>(b);
  const Whole least = low(x) * low(y), middle = (x >> 32) * low(y) + (least >> 32);
  const Whole other = low(x) * (y >> 32) + low(middle);
  const Whole high = (x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32) + static_cast<Whole>(a >> 64) * y +
                     x * static_cast<Whole>(b >> 64);
  return static_cast<unsigned __int128>(high) << 64 | other << 32 | low(least);
}

static double inputs[sizeof(law::inputs) / 8], outputs[sizeof(law::outputs) / 8], tangent[sizeof(law::tangent) / 8];
static double parameters[sizeof(law::parameters) / 8 + 1], norm;
static int report[2];

// Evaluates the point; returns its status.
__attribute__((export_name("update"))) int update() {
  law::update_point(0, 1, inputs, parameters, false, outputs, tangent, report, &norm);
  return report[0];
}

// Returns where an array begins.
__attribute__((export_name("place"))) void* place(int array) {
  void* const places[] = {inputs, parameters, outputs, tangent};
  return places[array];
}
}
