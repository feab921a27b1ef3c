#include "capi/newton/krylov.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "capi/tensor/numbers.h"

namespace neml2_capi::newton {
namespace {

// One value per point.
using Column = Vector<double>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

bool is_single(const Tensor& tensor) { return tensor.dtype() == DType::float32; }

// State of the points that both methods keep. A point is open until it has converged or was given up.
class Batch {
 public:
  Batch(const Operator& a, const Operator& preconditioner, const Tensor& b, const LinearSettings& settings)
      : settings_(settings),
        points_(b.sizes()[0]),
        n_(b.sizes()[1]),
        epsilon_(is_single(b) ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon()),
        floor_(settings.whole_batch ? epsilon_
               : is_single(b)       ? std::numeric_limits<float>::min()
                                    : std::numeric_limits<double>::min()),
        b_(b.row_major()),
        x_(Tensor::zeros(b.dtype(), b.sizes())),
        outcome_{Vector<std::int32_t>(index(points_), 0), Vector<char>(index(points_), 0)},
        a_(a),
        preconditioner_(preconditioner),
        given_up_(index(points_), 0),
        scale_(index(points_)) {
    for (std::int64_t p = 0; p < points_; ++p) scale_[index(p)] = std::max(norm(row(b_, p)), floor_);
  }

 protected:
  Tensor times_a(const Tensor& v) const { return a_(v).row_major(); }
  Tensor precondition(const Tensor& v) const { return preconditioner_ ? preconditioner_(v).row_major() : v; }

  Tensor vectors() const { return Tensor::empty(b_.dtype(), b_.sizes()); }
  Numbers row(const Tensor& v, std::int64_t p) const { return numbers_of(v).from(p * n_); }
  void fill(const Numbers& row, double value) const {
    for (std::int64_t i = 0; i < n_; ++i) row.set(i, value);
  }
  double dot(const Numbers& v, const Numbers& w) const {
    double sum = 0;
    for (std::int64_t i = 0; i < n_; ++i) sum += v[i] * w[i];
    return sum;
  }
  double norm(const Numbers& v) const { return std::sqrt(dot(v, v)); }

  bool given_up(std::int64_t p) const { return given_up_[index(p)]; }
  bool open(std::int64_t p) const { return !outcome_.converged[index(p)] && !given_up(p); }
  bool any_open() const {
    for (std::int64_t p = 0; p < points_; ++p)
      if (open(p)) return true;
    return false;
  }

  // Closes the point if its residual norm says so.
  void judge(std::int64_t p, double residual) {
    if (!std::isfinite(residual)) {
      given_up_[index(p)] = 1;
      fill(row(x_, p), NAN);
    } else if (residual < settings_.abs_tol || residual / scale_[index(p)] < settings_.rel_tol) {
      outcome_.converged[index(p)] = 1;
    }
  }

  const LinearSettings& settings_;
  const std::int64_t points_, n_;
  const double epsilon_;
  const double floor_;  // of denominators
  const Tensor b_;
  Tensor x_;
  LinearOutcome outcome_;

 private:
  const Operator& a_;
  const Operator& preconditioner_;
  Vector<char> given_up_;
  Column scale_;
};

// Restarted, with left preconditioning. A cycle builds an orthonormal basis V of the Krylov space by classical
// Gram-Schmidt, done twice, and turns the Hessenberg matrix of A in it into a triangular R by Givens rotations.
class Gmres : Batch {
 public:
  using Batch::Batch;

  LinearOutcome run(Tensor& x) {
    const std::int64_t cycles = (settings_.max_its + settings_.restart - 1) / settings_.restart;
    for (std::int64_t cycle = 0; cycle < cycles; ++cycle) {
      start(precondition(cycle == 0 ? b_ : residual()));
      if (!any_open()) break;
      for (std::int64_t j = 0; j < settings_.restart && any_unfinished(); ++j) extend(j);
      update();
    }
    x = x_;
    return std::move(outcome_);
  }

 private:
  Tensor residual() const {
    const Tensor ax = times_a(x_), out = vectors();
    const Numbers b = numbers_of(b_), product = numbers_of(ax), difference = numbers_of(out);
    for (std::int64_t i = 0; i < points_ * n_; ++i) difference.set(i, b[i] - product[i]);
    return out;
  }

  bool any_unfinished() const {
    for (std::int64_t p = 0; p < points_; ++p)
      if (growing_[index(p)] && open(p)) return true;
    return false;
  }

  void start(const Tensor& z) {
    v_ = {vectors()};
    g_ = {Column(index(points_), 0.0)};
    r_.clear();
    cosine_.clear();
    sine_.clear();
    growing_.assign(index(points_), 0);
    width_.assign(index(points_), 0);
    for (std::int64_t p = 0; p < points_; ++p) {
      const double beta = norm(row(z, p));
      if (open(p)) judge(p, beta);
      growing_[index(p)] = settings_.whole_batch ? !given_up(p) : open(p);
      const Numbers v = row(v_[0], p);
      fill(v, 0);
      if (!growing_[index(p)]) continue;
      g_[0][index(p)] = beta;
      for (std::int64_t i = 0; i < n_; ++i) v.set(i, row(z, p)[i] / std::max(beta, floor_));
    }
  }

  // Adds a basis vector. It becomes zero for points that are done, so that products with it stay finite.
  void extend(std::int64_t j) {
    v_.push_back(precondition(times_a(v_.back())).copy());
    r_.emplace_back(index(points_ * (j + 1)), 0.0);
    for (auto* columns : {&cosine_, &sine_, &g_}) columns->emplace_back(index(points_), 0.0);
    for (std::int64_t p = 0; p < points_; ++p) {
      if (growing_[index(p)])
        extend(j, p);
      else
        fill(row(v_.back(), p), 0);
    }
  }

  void extend(std::int64_t j, std::int64_t p) {
    const Numbers w = row(v_.back(), p);
    double* h = &r_.back()[index(p * (j + 1))];
    // What is left of w below this is rounding error. NEML2 takes it for one more direction.
    const double rounding = settings_.whole_batch ? -1.0 : 10 * epsilon_ * norm(w);
    orthogonalise(w, h, j, p);
    const double next = norm(w);
    for (std::int64_t i = 0; i < n_; ++i) w.set(i, w[i] / std::max(next, floor_));
    const double residual = rotate(h, next, j, p);
    const bool singular = h[j] <= rounding;  // A v is in the space already: no use of it, nor of the residual
    if (open(p)) {
      ++outcome_.iterations[index(p)];
      if (!singular) judge(p, residual);
    }
    if (!singular) width_[index(p)] = j + 1;
    // If the space is exhausted, the next cycle starts from the true residual.
    growing_[index(p)] = (settings_.whole_batch ? !given_up(p) : open(p)) && !singular && next > rounding;
  }

  void orthogonalise(const Numbers& w, double* h, std::int64_t j, std::int64_t p) {
    for (int pass = 0; pass < 2; ++pass) {
      coefficients_.clear();
      for (std::int64_t i = 0; i <= j; ++i) coefficients_.push_back(dot(row(v_[index(i)], p), w));
      for (std::int64_t i = 0; i <= j; ++i) {
        const double c = coefficients_[index(i)];
        const Numbers v = row(v_[index(i)], p);
        for (std::int64_t k = 0; k < n_; ++k) w.set(k, w[k] - c * v[k]);
        h[i] += c;
      }
    }
  }

  // Makes column j of the Hessenberg matrix, `h` above `next`, a column of R. Returns the residual norm.
  double rotate(double* h, double next, std::int64_t j, std::int64_t p) {
    const std::size_t at = index(p), last = index(j);
    for (std::int64_t i = 0; i < j; ++i) {
      const double c = cosine_[index(i)][at], s = sine_[index(i)][at], upper = h[i];
      h[i] = c * upper + s * h[i + 1];
      h[i + 1] = -s * upper + c * h[i + 1];
    }
    const double length = std::max(std::sqrt(h[j] * h[j] + next * next), floor_);
    const double c = h[j] / length, s = next / length;
    cosine_[last][at] = c;
    sine_[last][at] = s;
    h[j] = c * h[j] + s * next;
    g_[last + 1][at] = -s * g_[last][at];
    g_[last][at] *= c;
    return std::abs(g_[last + 1][at]);
  }

  // x += V y, with R y = g.
  void update() {
    for (std::int64_t p = 0; p < points_; ++p) {
      if (given_up(p)) continue;
      const std::int64_t width = width_[index(p)];
      coefficients_.assign(index(width), 0.0);
      for (std::int64_t i = width; i-- > 0;) {
        double sum = g_[index(i)][index(p)];
        for (std::int64_t k = i + 1; k < width; ++k) sum -= r(i, k, p) * coefficients_[index(k)];
        coefficients_[index(i)] = sum / (r(i, i, p) + floor_);
      }
      const Numbers x = row(x_, p);
      for (std::int64_t k = 0; k < n_; ++k) {
        double sum = 0;
        for (std::int64_t i = 0; i < width; ++i) sum += coefficients_[index(i)] * row(v_[index(i)], p)[k];
        x.set(k, x[k] + sum);
      }
    }
  }

  double r(std::int64_t i, std::int64_t j, std::int64_t p) const { return r_[index(j)][index(p * (j + 1) + i)]; }

  // State of the cycle, by column:
  Vector<Tensor> v_;
  std::vector<Column> r_, cosine_, sine_, g_;  // r_[j]: (points, j + 1)
  // and by point:
  Vector<char> growing_;
  Vector<std::int64_t> width_;
  Vector<double> coefficients_;
};

class BiCGStab : Batch {
 public:
  using Batch::Batch;

  LinearOutcome run(Tensor& x) {
    r_ = b_.copy();
    p_ = v_ = Tensor::zeros(b_.dtype(), b_.sizes());
    rho_ = alpha_ = omega_ = Column(index(points_), 1.0);
    for (std::int64_t p = 0; p < points_; ++p) judge(p, norm(row(r_, p)));
    for (std::int64_t i = 0; i < settings_.max_its && any_open(); ++i) iterate();
    x = x_;
    return std::move(outcome_);
  }

 private:
  void iterate() {
    p_ = directions();
    const Tensor p_hat = precondition(p_);
    v_ = times_a(p_hat);
    const Tensor s = half_steps();
    const Tensor s_hat = precondition(s), t = times_a(s_hat);
    for (std::int64_t p = 0; p < points_; ++p)
      if (open(p)) finish(p, row(p_hat, p), row(s, p), row(s_hat, p), row(t, p));
  }

  Tensor directions() {
    Tensor out = Tensor::zeros(b_.dtype(), b_.sizes());
    for (std::int64_t p = 0; p < points_; ++p) {
      if (!open(p)) continue;
      double &rho = rho_[index(p)], alpha = alpha_[index(p)], omega = omega_[index(p)];
      const double before = std::exchange(rho, dot(row(b_, p), row(r_, p)));
      const double beta = (rho / away_from_zero(before)) * (alpha / away_from_zero(omega));
      for (std::int64_t i = 0; i < n_; ++i)
        row(out, p).set(i, row(r_, p)[i] + beta * (row(p_, p)[i] - omega * row(v_, p)[i]));
    }
    return out;
  }

  Tensor half_steps() {
    Tensor out = Tensor::zeros(b_.dtype(), b_.sizes());
    for (std::int64_t p = 0; p < points_; ++p) {
      if (!open(p)) continue;
      const double alpha = alpha_[index(p)] = rho_[index(p)] / away_from_zero(dot(row(b_, p), row(v_, p)));
      for (std::int64_t i = 0; i < n_; ++i) row(out, p).set(i, row(r_, p)[i] - alpha * row(v_, p)[i]);
    }
    return out;
  }

  void finish(std::int64_t p, const Numbers& p_hat, const Numbers& s, const Numbers& s_hat, const Numbers& t) {
    const double alpha = alpha_[index(p)];
    const double omega = omega_[index(p)] = dot(t, s) / std::max(dot(t, t), floor_);
    for (std::int64_t i = 0; i < n_; ++i) {
      row(x_, p).set(i, row(x_, p)[i] + alpha * p_hat[i] + omega * s_hat[i]);
      row(r_, p).set(i, s[i] - omega * t[i]);
    }
    ++outcome_.iterations[index(p)];
    judge(p, norm(row(r_, p)));
  }

  double away_from_zero(double d) const { return std::abs(d) < floor_ ? (d < 0 ? -floor_ : floor_) : d; }

  Tensor r_, p_, v_;
  Column rho_, alpha_, omega_;
};

}  // namespace

LinearOutcome solve_linear(const Operator& a, const Operator& preconditioner, const Tensor& b, Tensor& x,
                           const LinearSettings& settings) {
  return settings.method == LinearSettings::Method::bicgstab ? BiCGStab(a, preconditioner, b, settings).run(x)
                                                             : Gmres(a, preconditioner, b, settings).run(x);
}

namespace {

// Tells whether x with A x = `product` solves A x = b. Solvers may stop a little above their tolerances, if
// round-off ends them.
bool solves(const Numbers& product, const Numbers& b, std::int64_t n, const LinearSettings& settings) {
  double residual = 0, size = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double difference = product[i] - b[i];
    residual += difference * difference;
    size += b[i] * b[i];
  }
  return std::sqrt(residual) <= 10.0 * settings.abs_tol + std::max(10.0 * settings.rel_tol, 1e-8) * std::sqrt(size);
}

}  // namespace

Tensor solve_dense_columns(const Tensor& a, const Tensor& b, const LinearSettings& settings) {
  const std::int64_t rows = b.sizes()[0] * b.sizes()[1], n = b.sizes()[1], columns = b.sizes()[2];
  Tensor out = Tensor::empty(b.dtype(), b.sizes());
  const Numbers matrix = numbers_of(a), right = numbers_of(b), solutions = numbers_of(out);
  const Operator times_a = [&](const Tensor& v) {
    Tensor product = Tensor::empty(v.dtype(), v.sizes());
    for (std::int64_t row = 0; row < rows; ++row) {
      const Numbers coefficient = matrix.from(row * n), x = numbers_of(v).from(row / n * n);
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += coefficient[i] * x[i];
      numbers_of(product).set(row, sum);
    }
    return product;
  };
  for (std::int64_t j = 0; j < columns; ++j) {
    Tensor column = Tensor::empty(b.dtype(), b.sizes().first(2)), x;
    for (std::int64_t row = 0; row < rows; ++row) numbers_of(column).set(row, right[row * columns + j]);
    solve_linear(times_a, {}, column, x, settings);
    const Tensor product = times_a(x);
    for (std::int64_t p = 0; p < b.sizes()[0]; ++p) {
      const Numbers solution = numbers_of(x).from(p * n);
      const bool good = solves(numbers_of(product).from(p * n), numbers_of(column).from(p * n), n, settings);
      for (std::int64_t i = 0; i < n; ++i) solutions.set((p * n + i) * columns + j, good ? solution[i] : NAN);
    }
  }
  return out;
}

}  // namespace neml2_capi::newton
