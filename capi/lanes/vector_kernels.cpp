// Kernels for one instruction set: this file is compiled once for each, with NML2_INSTRUCTION_SET as its name.
//
// The file includes no header from outside: the linker keeps one copy of an inline function, which must run on every
// processor.
#include "capi/lanes/lu.h"
#include "capi/lanes/power.h"
#include "capi/lanes/product.h"

namespace neml2_capi::lanes::NML2_INSTRUCTION_SET {

template <class T>
constexpr Kernels<T> table = {solve<T>, solve_work<T>, substitute<T>, multiply<T>, multiply_work<T>, power<T>};

extern const Kernels<double> double_kernels = table<double>;
extern const Kernels<float> float_kernels = table<float>;

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
