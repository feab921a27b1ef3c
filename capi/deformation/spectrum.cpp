#include "capi/deformation/spectrum.h"

#include <algorithm>
#include <cmath>

namespace neml2_capi::deformation {
namespace {

// Turns columns p and q of the vectors so that the element (p, q) of the symmetric matrix vanishes.
void annihilate(Matrix& a, Matrix& vectors, std::size_t p, std::size_t q) {
  const double off = a[3 * p + q];
  constexpr double negligible = 1e-20;
  if (std::abs(off) <= negligible * (std::abs(a[4 * p]) + std::abs(a[4 * q]))) {
    a[3 * p + q] = a[3 * q + p] = 0;
    return;
  }
  const double ratio = (a[4 * q] - a[4 * p]) / (2 * off);
  const double t = std::copysign(1.0, ratio) / (std::abs(ratio) + std::sqrt(1 + ratio * ratio));
  const double c = 1 / std::sqrt(1 + t * t), s = t * c;
  const std::size_t r = 3 - p - q;
  const double rp = a[3 * r + p], rq = a[3 * r + q];
  a[4 * p] -= t * off;
  a[4 * q] += t * off;
  a[3 * p + q] = a[3 * q + p] = 0;
  a[3 * r + p] = a[3 * p + r] = c * rp - s * rq;
  a[3 * r + q] = a[3 * q + r] = s * rp + c * rq;
  for (std::size_t i = 0; i < 3; ++i) {
    const double vp = vectors[3 * i + p], vq = vectors[3 * i + q];
    vectors[3 * i + p] = c * vp - s * vq;
    vectors[3 * i + q] = s * vp + c * vq;
  }
}

}  // namespace

Spectrum::Spectrum(const Matrix& gradient) : vectors(unit) {
  Matrix h = gradient;  // F - 1
  for (const std::size_t i : {0u, 4u, 8u}) h[i] -= 1;
  Matrix excess = multiply(transpose(h), h);  // C - 1
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) excess[3 * i + j] += h[3 * i + j] + h[3 * j + i];
  constexpr int most_sweeps = 12;  // it takes five at most; NaN never ends
  for (int sweep = 0; sweep < most_sweeps && (excess[1] != 0 || excess[2] != 0 || excess[5] != 0); ++sweep) {
    annihilate(excess, vectors, 0, 1);
    annihilate(excess, vectors, 0, 2);
    annihilate(excess, vectors, 1, 2);
  }
  constexpr double near = 0.1;  // to the unit tensor: there C - 1 has the digits, and C = |F n|^2 farther away
  const Matrix images = multiply(gradient, vectors);
  for (std::size_t i = 0; i < 3; ++i) {
    const double own = excess[4 * i];
    const bool is_near = std::abs(own) < near;
    values[i] =
        is_near ? 1 + own : images[i] * images[i] + images[3 + i] * images[3 + i] + images[6 + i] * images[6 + i];
    logarithms[i] = (is_near ? std::log1p(own) : std::log(values[i])) / 2;
  }
}

double difference_of_logarithm(double a, double b) {
  const double x = (a - b) / b;
  return (x == 0 ? 1 : std::log1p(x) / x) / (2 * b);
}

// Near each other: Taylor's series about the middle, f[a, b, c] = sum of f^(n)(m) / n! h(n - 2) with the complete
// symmetric polynomials h of the distances. The middle of a and c makes their distances opposite.
double difference_of_logarithm(double a, double b, double c) {
  const double least = std::min({a, b, c}), greatest = std::max({a, b, c});
  const double between = std::max(std::min(a, b), std::min(std::max(a, b), c));
  const double middle = (least + greatest) / 2, far = (greatest - least) / 2 / middle;
  constexpr double near = 0.06;  // a distance beyond which the quotient loses two digits
  if (!(far <= near))
    return (difference_of_logarithm(between, greatest) - difference_of_logarithm(least, between)) / (greatest - least);
  // h of (-far, far) is far^k for even k and 0 for odd; of all three, h(k) = h of two (k) + y h(k - 1).
  const double y = (between - middle) / middle;
  constexpr int terms = 14;
  double sum = 0, of_two = 1, of_three = 0, sign = -1;
  for (int k = 0; k < terms; ++k) {
    of_three = y * of_three + (k % 2 == 0 ? of_two : 0);
    if (k % 2 == 0) of_two *= far * far;
    sum += sign * of_three / (k + 2);
    sign = -sign;
  }
  return sum / (2 * middle * middle);
}

}  // namespace neml2_capi::deformation
