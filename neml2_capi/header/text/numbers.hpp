typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef int int32_t;
static_assert(sizeof(int64_t) == 8 && sizeof(int32_t) == 4 && sizeof(double) == 8, "other sizes of numbers");

/* Numbers as the processor has them. No compiler fuses a product with a sum, whatever its options are. */

template <class T>
NEML2_FUNCTION static T product_of_numbers(T a, T b) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
  T product = a * b;
#if !NEML2_ON_DEVICE && NEML2_FUSED && defined(__GNUC__)
#if defined(__x86_64__)
  __asm__("" : "+x"(product));
#elif defined(__aarch64__)
  __asm__("" : "+w"(product));
#else
  __asm__("" : "+m"(product));
#endif
#endif
  return product;
}

#if defined(__CUDA_ARCH__)
NEML2_FUNCTION static double times(double a, double b) { return __dmul_rn(a, b); }
NEML2_FUNCTION static float times(float a, float b) { return __fmul_rn(a, b); }
NEML2_FUNCTION static double over(double a, double b) { return __ddiv_rn(a, b); }
NEML2_FUNCTION static float over(float a, float b) { return __fdiv_rn(a, b); }
NEML2_FUNCTION static double root(double x) { return __dsqrt_rn(x); }
NEML2_FUNCTION static float root(float x) { return __fsqrt_rn(x); }
NEML2_FUNCTION static double fused_doubles(double x, double y, double z) { return __fma_rn(x, y, z); }
NEML2_FUNCTION static double down(double x) { return ::floor(x); }
NEML2_FUNCTION static float down(float x) { return ::floorf(x); }
NEML2_FUNCTION static double size_of(double x) { return ::fabs(x); }
NEML2_FUNCTION static float size_of(float x) { return ::fabsf(x); }
NEML2_FUNCTION static uint64_t upper_half(uint64_t x, uint64_t y) { return __umul64hi(x, y); }
NEML2_FUNCTION static double double_of(uint64_t bits) { return __longlong_as_double(static_cast<int64_t>(bits)); }
NEML2_FUNCTION static uint64_t bits_of_double(double x) { return static_cast<uint64_t>(__double_as_longlong(x)); }
#else
NEML2_FUNCTION static double times(double a, double b) { return product_of_numbers(a, b); }
NEML2_FUNCTION static float times(float a, float b) { return product_of_numbers(a, b); }
NEML2_FUNCTION static double over(double a, double b) { return a / b; }
NEML2_FUNCTION static float over(float a, float b) { return a / b; }
#if defined(__GNUC__)
NEML2_FUNCTION static double root(double x) { return __builtin_sqrt(x); }
NEML2_FUNCTION static float root(float x) { return __builtin_sqrtf(x); }
NEML2_FUNCTION static double fused_doubles(double x, double y, double z) { return __builtin_fma(x, y, z); }
NEML2_FUNCTION static double down(double x) { return __builtin_floor(x); }
NEML2_FUNCTION static float down(float x) { return __builtin_floorf(x); }
NEML2_FUNCTION static double size_of(double x) { return __builtin_fabs(x); }
NEML2_FUNCTION static float size_of(float x) { return __builtin_fabsf(x); }
#else
NEML2_FUNCTION static double root(double x) { return std::sqrt(x); }
NEML2_FUNCTION static float root(float x) { return std::sqrt(x); }
NEML2_FUNCTION static double fused_doubles(double x, double y, double z) { return std::fma(x, y, z); }
NEML2_FUNCTION static double down(double x) { return std::floor(x); }
NEML2_FUNCTION static float down(float x) { return std::floor(x); }
NEML2_FUNCTION static double size_of(double x) { return std::fabs(x); }
NEML2_FUNCTION static float size_of(float x) { return std::fabs(x); }
#endif
/* The upper half of a product of integers, by halves. */
NEML2_FUNCTION static uint64_t upper_half(uint64_t x, uint64_t y) {
  const uint64_t low = 0xffffffff, a = x >> 32, b = x & low, c = y >> 32, d = y & low;
  const uint64_t middle = b * c + (b * d >> 32), cross = a * d + (middle & low);
  return a * c + (middle >> 32) + (cross >> 32);
}
NEML2_FUNCTION static double double_of(uint64_t bits) {
  double result;
  copy_bits(&bits, &result);
  return result;
}
NEML2_FUNCTION static uint64_t bits_of_double(double x) {
  uint64_t result;
  copy_bits(&x, &result);
  return result;
}
template <class From, class To>
NEML2_FUNCTION static void copy_bits(const From *from, To *to) {
#if defined(__GNUC__)
  __builtin_memcpy(to, from, sizeof(To));
#else
  for (unsigned i = 0; i < sizeof(To); ++i)
    reinterpret_cast<unsigned char *>(to)[i] = reinterpret_cast<const unsigned char *>(from)[i];
#endif
}
#endif
NEML2_FUNCTION static double infinite() { return double_of(0x7ff0000000000000); }
NEML2_FUNCTION static double no_number() { return double_of(0x7ff8000000000000); }
NEML2_FUNCTION static real real_infinite() { return static_cast<real>(infinite()); }
NEML2_FUNCTION static real real_no_number() { return static_cast<real>(no_number()); }

struct truth {
  bool holds;
  truth() = default;
  NEML2_FUNCTION constexpr truth(bool value) : holds(value) {}
  NEML2_FUNCTION constexpr explicit operator bool() const { return holds; }
  NEML2_FUNCTION friend truth operator&(truth a, truth b) { return a.holds && b.holds; }
  NEML2_FUNCTION friend truth operator|(truth a, truth b) { return a.holds || b.holds; }
  NEML2_FUNCTION friend truth operator!(truth a) { return !a.holds; }
};

template <class T>
struct number {
  T value;
  number() = default;
  NEML2_FUNCTION constexpr number(T x) : value(x) {}
  NEML2_FUNCTION number &operator+=(number x) { return *this = *this + x; }
  NEML2_FUNCTION number &operator-=(number x) { return *this = *this - x; }
  NEML2_FUNCTION number &operator*=(number x) { return *this = *this * x; }
  /* By a difference: clang gives a unary minus the flags of the command, which may change signs of zeros. */
  NEML2_FUNCTION friend number operator-(number a) { return T(-0.0) - a.value; }
  NEML2_FUNCTION friend number operator+(number a, number b) { return a.value + b.value; }
  NEML2_FUNCTION friend number operator-(number a, number b) { return a.value - b.value; }
  NEML2_FUNCTION friend number operator*(number a, number b) { return times(a.value, b.value); }
  NEML2_FUNCTION friend number operator/(number a, number b) { return over(a.value, b.value); }
  NEML2_FUNCTION friend truth operator<(number a, number b) { return a.value < b.value; }
  NEML2_FUNCTION friend truth operator>(number a, number b) { return a.value > b.value; }
  NEML2_FUNCTION friend truth operator<=(number a, number b) { return a.value <= b.value; }
  NEML2_FUNCTION friend truth operator>=(number a, number b) { return a.value >= b.value; }
  NEML2_FUNCTION friend truth operator==(number a, number b) { return a.value == b.value; }
  NEML2_FUNCTION friend truth operator!=(number a, number b) { return a.value != b.value; }
};

typedef number<real> lanes;
typedef number<double> wide;
typedef truth mask;
typedef truth wide_mask;
typedef uint64_t wide_bits;

NEML2_FUNCTION static wide_bits bits_of(wide x) { return bits_of_double(x.value); }
NEML2_FUNCTION static int64_t words_of(wide x) { return static_cast<int64_t>(bits_of(x)); }
NEML2_FUNCTION static wide wide_of(wide_bits x) { return double_of(x); }
NEML2_FUNCTION static wide number_of(uint64_t x) { return static_cast<double>(x); }
NEML2_FUNCTION static wide fused(wide x, wide y, wide z) { return fused_doubles(x.value, y.value, z.value); }
NEML2_FUNCTION static wide widened(lanes x) { return static_cast<double>(x.value); }
NEML2_FUNCTION static lanes narrowed(wide x) { return static_cast<real>(x.value); }
NEML2_FUNCTION static real as_real(lanes x) { return x.value; }
NEML2_FUNCTION static double plain(wide x) { return x.value; }
NEML2_FUNCTION static wide choose(mask condition, wide value, wide other) { return condition ? value : other; }
NEML2_FUNCTION static int choose(mask condition, int value, int other) { return condition ? value : other; }
NEML2_FUNCTION static lanes as_lanes(mask x) { return x ? real(1) : real(0); }
NEML2_FUNCTION static mask as_mask(lanes x) { return x.value != 0; }
NEML2_FUNCTION static mask as_mask(mask x) { return x; }
NEML2_FUNCTION static lanes absolute(lanes x) { return size_of(x.value); }
NEML2_FUNCTION static wide wide_absolute(wide x) { return size_of(x.value); }
NEML2_FUNCTION static lanes square_root(lanes x) { return root(x.value); }
NEML2_FUNCTION static wide wide_square_root(wide x) { return root(x.value); }
NEML2_FUNCTION static lanes round_down(lanes x) { return down(x.value); }
NEML2_FUNCTION static lanes fill(real x) { return x; }
NEML2_FUNCTION static wide wide_fill(double x) { return x; }
NEML2_FUNCTION static wide wide_fill(wide x) { return x; }
NEML2_FUNCTION static lanes where(mask condition, lanes value, lanes other) { return condition ? value : other; }
NEML2_FUNCTION static wide wide_where(mask condition, wide value, wide other) { return condition ? value : other; }
