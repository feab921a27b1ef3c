// The operator of powers: special values, accuracy, and independence of neighbours, places and strides; for the
// instruction set of this machine and for the one that runs everywhere.
#include "provider_calls.h"

#define NML2_INSTRUCTION_SET everywhere
#include <algorithm>
#include <limits>

#include "capi/lanes/vector_kernels.cpp"

using namespace neml2_capi;
using namespace neml2_capi::test;

namespace {

template <class T>
using Power = std::vector<T> (*)(const std::vector<T>& x, const std::vector<T>& y);

template <class T>
Tensor borrowed(const std::vector<T>& values) {
  return Tensor::borrow(const_cast<T*>(values.data()), dtype_of<T>, {static_cast<std::int64_t>(values.size())});
}

template <class T>
std::vector<T> by_the_provider(const std::vector<T>& x, const std::vector<T>& y) {
  const Tensor out = call("neml2::opaque_pow", {borrowed(x), borrowed(y)}, 1)[0];
  return std::vector<T>(out.data_as<T>(), out.data_as<T>() + out.numel());
}

template <class T>
std::vector<T> by_the_portable_kernel(const std::vector<T>& x, const std::vector<T>& y) {
  std::vector<T> out(x.size());
  lanes::everywhere::power<T>(static_cast<std::int64_t>(x.size()), out.data(), 1, x.data(), 1, y.data(), 1);
  return out;
}

template <class T>
void special_values_are_those_of_the_standard(Power<T> power) {
  using Limits = std::numeric_limits<T>;
  const T beyond = std::ldexp(T(1), Limits::digits);  // from here on every number is even
  std::vector<T> values = {0,
                           1,
                           2,
                           3,
                           4,
                           7,
                           8,
                           0.5,
                           0.25,
                           1.5,
                           10,
                           1024.5,
                           beyond / 2,
                           beyond - 1,
                           beyond,
                           beyond + 2,
                           Limits::max(),
                           Limits::min(),
                           100,
                           33,
                           T(1) / 3,
                           1 + Limits::epsilon(),
                           1 - Limits::epsilon() / 2,
                           Limits::denorm_min(),
                           Limits::min() / 2,
                           Limits::infinity(),
                           Limits::quiet_NaN()};
  for (std::size_t i = values.size(); i-- > 0;) values.push_back(-values[i]);
  std::vector<T> x, y;
  for (const T a : values)
    for (const T b : values) x.push_back(a), y.push_back(b);
  const std::vector<T> result = power(x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T expected = std::pow(x[i], y[i]);
    // A unit in the last place if it is not one of the exact values.
    const bool near = std::nextafter(expected, result[i]) == result[i] && std::isnormal(expected);
    if (same(result[i], expected) || near) continue;
    if (std::fpclassify(expected) == FP_SUBNORMAL && std::abs(result[i] - expected) <= Limits::denorm_min()) continue;
    std::fprintf(stderr, "%a ** %a is %a, not %a\n", double(x[i]), double(y[i]), double(expected), double(result[i]));
    std::exit(1);
  }
}

void powers_that_can_be_exact_are(Power<double> power) {
  std::vector<double> x, y, expected;
  for (int base = -40; base <= 40; ++base)
    for (int exponent = 0; exponent <= 9; ++exponent) {
      double product = 1;
      for (int k = 0; k < exponent; ++k) product *= base;
      x.push_back(base), y.push_back(exponent), expected.push_back(product);
    }
  for (int n = -1074; n <= 1023; ++n) x.push_back(2), y.push_back(n), expected.push_back(std::ldexp(1.0, n));
  for (int n = 1; n <= 1000; ++n) x.push_back(double(n) * n), y.push_back(0.5), expected.push_back(n);
  Numbers random;
  for (int n = 0; n < 1000; ++n) {
    x.push_back(std::ldexp(random.between(1, 2), static_cast<int>(random.bits() % 2000) - 1000));
    y.push_back(1);
    expected.push_back(x.back());
  }
  EXPECT(power(x, y) == expected);
}

// In units in the last place of the result.
struct Errors {
  double largest = 0, mean = 0, wrong = 0;  // wrong: the part that is not the nearest number
};

Errors errors(Power<double> power, const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> result = power(x, y);
  Errors found;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
    const auto nearest = static_cast<double>(exact);
    if (nearest == 0 || std::isinf(nearest)) {
      EXPECT(result[i] == nearest);
      continue;
    }
    const int exponent = std::max(std::ilogb(nearest), -1022) - 52;
    const double error =
        std::abs(static_cast<double>(std::ldexp(static_cast<long double>(result[i]) - exact, -exponent)));
    found.largest = std::max(found.largest, error);
    found.mean += error / static_cast<double>(x.size());
    found.wrong += (result[i] != nearest) / static_cast<double>(x.size());
  }
  return found;
}

void powers_are_accurate(Power<double> power, const char* by) {
  if (std::numeric_limits<long double>::digits < 64) return;  // nothing to compare with
  Numbers random;
  struct Case {
    const char* name;
    double low, high, exponent;  // of the base, as powers of two; the largest exponent
  };
  for (const Case& range : {Case{"usual", -20, 20, 8}, Case{"all results", -100, 100, 11},
                            Case{"near one", -1e-3, 1e-3, 1e6}, Case{"subnormal results", -1000, 1000, 1.2}}) {
    std::vector<double> x, y;
    for (int i = 0; i < 300'000; ++i) {
      x.push_back(std::exp2(random.between(range.low, range.high)));
      y.push_back(random.between(-range.exponent, range.exponent));
    }
    const Errors ours = errors(power, x, y);
    const Errors library = errors(
        [](const std::vector<double>& base, const std::vector<double>& exponent) {
          std::vector<double> out(base.size());
          for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::pow(base[i], exponent[i]);
          return out;
        },
        x, y);
    std::printf(
        "%-9s %-18s largest error %.4f ulp, mean %.4f, not nearest %.3f%%; the C library's %.4f, %.4f, %.3f%%\n", by,
        range.name, ours.largest, ours.mean, 100 * ours.wrong, library.largest, library.mean, 100 * library.wrong);
    EXPECT(ours.largest < 0.8);
    EXPECT(ours.mean < 0.252);
  }
}

void powers_of_floats_are_those_of_doubles_rounded(Power<float> power) {
  Numbers random;
  std::vector<float> x, y;
  for (int i = 0; i < 100'000; ++i) {
    x.push_back(static_cast<float>(std::exp2(random.between(-20, 20))));
    y.push_back(static_cast<float>(random.between(-8, 8)));
  }
  const std::vector<float> result = power(x, y);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT(result[i] == static_cast<float>(std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]))));
}

// Some of everything.
template <class T>
std::vector<T> mixture(std::size_t n, Numbers& random) {
  const T odd_ones[] = {0,
                        -1,
                        -2.5,
                        std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::quiet_NaN(),
                        std::numeric_limits<T>::denorm_min()};
  std::vector<T> values;
  for (std::size_t i = 0; i < n; ++i)
    values.push_back(random.bits() % 4 == 0 ? odd_ones[random.bits() % 6] : static_cast<T>(random.between(-1, 30)));
  return values;
}

template <class T>
void a_power_does_not_depend_on_its_neighbours(Power<T> power) {
  Numbers random;
  const std::vector<T> x = mixture<T>(400, random), y = mixture<T>(400, random);
  const std::vector<T> all = power(x, y);
  for (std::size_t n = 1; n <= 40; ++n)
    for (std::size_t first = 0; first + n <= 80; first += 7) {
      const std::vector<T> part = power({&x[first], &x[first] + n}, {&y[first], &y[first] + n});
      for (std::size_t i = 0; i < n; ++i) EXPECT(same(part[i], all[first + i]));
    }
  std::vector<std::size_t> order(x.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.bits() % (i + 1)]);
  std::vector<T> shuffled_x, shuffled_y;
  for (const std::size_t i : order) shuffled_x.push_back(x[i]), shuffled_y.push_back(y[i]);
  const std::vector<T> shuffled = power(shuffled_x, shuffled_y);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT(same(shuffled[i], all[order[i]]));
}

// (base, exponent) in the layouts of compiled graphs.
template <class T>
void a_power_does_not_depend_on_strides() {
  Numbers random;
  const std::vector<T> x = mixture<T>(3 * 5 * 7, random), y = mixture<T>(3 * 5 * 7, random);
  const Tensor base = view(borrowed(x), {3, 5, 7}, {35, 7, 1}), exponent = view(borrowed(y), {3, 5, 7}, {35, 7, 1});
  const auto both = [](const Tensor& a, const Tensor& b) { return call("neml2::opaque_pow", {a, b}, 1)[0]; };
  const Tensor expected = both(base, exponent);
  EXPECT((expected.strides() == Dims{35, 7, 1}));

  // Stored with the axes in another order: so is the result.
  const auto reordered = [](const Tensor& t) {
    return view(view(t, {7, 3, 5}, {1, 35, 7}).copy(), {3, 5, 7}, {5, 1, 15});
  };
  EXPECT(same_values<T>(both(reordered(base), reordered(exponent)), expected));
  EXPECT((both(reordered(base), reordered(exponent)).strides() == Dims{5, 1, 15}));
  EXPECT(same_values<T>(both(reordered(base), exponent), expected));
  // Every other element.
  const auto spread = [](const Tensor& t) {
    const Tensor wide = Tensor::zeros(t.dtype(), {3, 5, 7, 2});
    for (std::int64_t i = 0; i < t.numel(); ++i) wide.data_as<T>()[2 * i] = t.data_as<T>()[i];
    return view(wide, {3, 5, 7}, {70, 14, 2});
  };
  EXPECT(same_values<T>(both(spread(base), spread(exponent)), expected));
  // One exponent, or one for each row or column: as if it were repeated.
  const auto repeated = [&](const Dims& sizes, const Dims& strides) {
    const Tensor few = view(exponent, sizes, strides);
    Dims all_strides = strides;
    while (all_strides.size() < 3) all_strides = Dims{0}.then(all_strides);
    for (std::int64_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] == 1) all_strides[3 - sizes.size() + i] = 0;
    EXPECT(same_values<T>(both(base, few), both(base, view(exponent, {3, 5, 7}, all_strides).copy())));
  };
  repeated({}, {});
  repeated({1}, {1});
  repeated({7}, {1});
  repeated({5, 1}, {1, 1});
  repeated({3, 1, 1}, {1, 1, 1});
  repeated({3, 1, 7}, {7, 7, 1});
  EXPECT(both(view(base, {0, 7}, {7, 1}), view(exponent, {}, {})).numel() == 0);
}

}  // namespace

int main(int argc, char** argv) {
  open_provider(argc, argv);
  for (const Power<double> power : {by_the_provider<double>, by_the_portable_kernel<double>}) {
    special_values_are_those_of_the_standard<double>(power);
    powers_that_can_be_exact_are(power);
    powers_are_accurate(power, power == by_the_provider<double> ? "provider" : "portable");
    a_power_does_not_depend_on_its_neighbours<double>(power);
  }
  for (const Power<float> power : {by_the_provider<float>, by_the_portable_kernel<float>}) {
    special_values_are_those_of_the_standard<float>(power);
    powers_of_floats_are_those_of_doubles_rounded(power);
    a_power_does_not_depend_on_its_neighbours<float>(power);
  }
  a_power_does_not_depend_on_strides<double>();
  a_power_does_not_depend_on_strides<float>();
  return 0;
}
