/* Numbers of a point: products are not fused with sums, see FP_CONTRACT. */
typedef long int64_t;
typedef ulong uint64_t;
typedef int int32_t;
typedef real lanes;
typedef double wide;
typedef int mask;
typedef int wide_mask;
typedef ulong wide_bits;

#define choose(condition, value, other) ((condition) ? (value) : (other))

NEML2_FUNCTION double infinite(void) { return as_double(0x7ff0000000000000UL); }
NEML2_FUNCTION double no_number(void) { return as_double(0x7ff8000000000000UL); }
NEML2_FUNCTION real real_infinite(void) { return (real)infinite(); }
NEML2_FUNCTION real real_no_number(void) { return (real)no_number(); }
NEML2_FUNCTION wide_bits bits_of(wide x) { return as_ulong(x); }
NEML2_FUNCTION int64_t words_of(wide x) { return as_long(x); }
NEML2_FUNCTION wide wide_of(wide_bits x) { return as_double(x); }
NEML2_FUNCTION wide number_of(ulong x) { return (double)x; }
NEML2_FUNCTION wide widened(lanes x) { return (double)x; }
NEML2_FUNCTION lanes narrowed(wide x) { return (real)x; }
NEML2_FUNCTION real as_real(lanes x) { return x; }
NEML2_FUNCTION double plain(wide x) { return x; }
NEML2_FUNCTION lanes as_lanes(mask x) { return x ? (real)1 : (real)0; }
NEML2_FUNCTION mask as_mask(lanes x) { return x != 0; }
NEML2_FUNCTION wide fused(wide x, wide y, wide z) { return fma(x, y, z); }
NEML2_FUNCTION lanes absolute(lanes x) { return fabs(x); }
NEML2_FUNCTION wide wide_absolute(wide x) { return fabs(x); }
NEML2_FUNCTION lanes square_root(lanes x) { return sqrt(x); }
NEML2_FUNCTION wide wide_square_root(wide x) { return sqrt(x); }
NEML2_FUNCTION lanes round_down(lanes x) { return floor(x); }
NEML2_FUNCTION uint64_t upper_half(uint64_t x, uint64_t y) { return mul_hi(x, y); }
NEML2_FUNCTION lanes fill(real x) { return x; }
NEML2_FUNCTION wide wide_fill(double x) { return x; }
NEML2_FUNCTION lanes where(mask condition, lanes value, lanes other) { return condition ? value : other; }
NEML2_FUNCTION wide wide_where(mask condition, wide value, wide other) { return condition ? value : other; }
