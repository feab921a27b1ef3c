// Blocks of points through the segments of a model, for one instruction set: this file is compiled once for each.
//
// No function of another header may be compiled here with it: the linker keeps one copy of an inline function, and it
// must run on every processor.
#include "capi/kernels/block.h"

#include "capi/kernels/newton_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

template <class T>
class Block {
  using V = Lanes<T>;
  static constexpr int lanes = width<T>;

 public:
  explicit Block(const Walk<T>& walk) : walk_(walk) {}

  void run(model::Counts& counts) {
    for (begin_ = walk_.begin; begin_ < walk_.end; begin_ += lanes) {
      used_ = walk_.end - begin_ < lanes ? static_cast<int>(walk_.end - begin_) : lanes;
      gather();
      copy_all(walk_.seeds);
      BlockReport<T> report;
      report.begin = begin_;
      report.used = used_;
      start_history(report);
      for (std::int64_t i = 0; i < walk_.steps.count; ++i) take(walk_.steps.items[i], report);
      copy_all(walk_.zeros);
      for (std::int64_t i = 0; i < walk_.products.count; ++i) push_forward(walk_.products.items[i], 1);
      for (std::int64_t i = 0; i < walk_.pulled.count; ++i) pull_back(walk_.pulled.items[i]);
      note_non_finite(report, counts);
      scatter(report);
      write_reports(report, counts);
    }
  }

 private:
  static V* vectors(T* scratch) { return reinterpret_cast<V*>(scratch); }
  static const V* vectors(const T* scratch) { return reinterpret_cast<const V*>(scratch); }
  static T* at(const Bound<T>& array, std::int64_t point) { return array.data + point * array.stride; }

  // Lanes without a point of their own repeat the last one.
  template <class X>
  void rows(const Bound<T>& array, X* (&row)[lanes]) const {
    X* const first = at(array, begin_);
    if (used_ == lanes) {
#pragma GCC unroll 16
      for (int l = 0; l < lanes; ++l) row[l] = first + l * array.stride;
    } else {
      for (int l = 0; l < lanes; ++l) row[l] = first + (l < used_ ? l : used_ - 1) * array.stride;
    }
  }

  void gather() {
    given_ = Mask<T>{};
    for (std::int64_t i = 0; i < walk_.inputs.count; ++i) {
      const Bound<T>& array = walk_.inputs.items[i];
      V* const to = vectors(array.scratch);
      if (array.stride == 0) {
        if (begin_ == walk_.begin || !array.lasts)
          for (std::int64_t c = 0; c < array.components; ++c) to[c] = array.data[c] - V{};
        if (begin_ == walk_.begin) of_all_ |= bits_of(array.scratch, array.components);
        continue;
      }
      const T* from[lanes];
      rows(array, from);
      rows_to_vectors<T>(from, array.scratch, array.components);
      given_ |= bits_of(array.scratch, array.components);
    }
    given_ |= of_all_;
  }

  void start_history(BlockReport<T>& report) const {
    const Bound<double>& history = walk_.reports.history;
    if (!history.data) return;
    report.history = history.data + begin_ * history.stride;
    report.history_stride = history.stride;
    for (int l = 0; l < used_; ++l)
      for (std::int64_t i = 0; i < history.components; ++i) report.history[l * history.stride + i] = no_number<double>;
  }

  void take(const Step<T>& step, BlockReport<T>& report) {
    copy_all(step.begin);
    if (step.run.kernel) {
      if (step.run.kernel->prepare) step.run.kernel->prepare(step.run.inputs, step.run.kept);
      for (std::int64_t pass = 1;; ++pass) {
        call(step.run);
        if (pass >= step.passes) break;
        copy(step.feedback);
      }
    }
    copy_all(step.pack);
    if (step.implicit) solve_implicit(*step.implicit, report);
    if (step.chain) derive(*step.chain);
  }

  void solve_implicit(const Implicit<T>& system, BlockReport<T>& report) {
    Trace* const trace = walk_.traces ? walk_.traces + system.number : nullptr;
    const WideMask<T> failed = Newton<T>(system, walk_.rules, report, trace).run();
    copy_all(system.unpack);
    copy_all(system.iterates);
    if (any(failed)) mark_failed(system, __builtin_convertvector(failed, Mask<T>));
  }

  void derive(const Chain<T>& chain) const {
    for (std::int64_t i = 0; i < chain.operators.count; ++i) call(chain.operators.items[i]);
    copy_all(chain.zeros);
    for (std::int64_t i = 0; i < chain.products.count; ++i) push_forward(chain.products.items[i], chain.count);
    if (chain.system && chain.count > 0) solve_sensitivity(chain);
    copy_all(chain.unpack);
  }

  void solve_sensitivity(const Chain<T>& chain) const {
    // By the implicit function theorem, with the operator at the solution: a line search leaves another one.
    const Implicit<T>& system = *chain.system;
    if (walk_.rules.ls_max_iters > 1) call(system.system);
    V* const right = vectors(chain.right);
    for (std::int64_t i = 0; i < system.unknowns * chain.count; ++i) right[i] = -right[i];
    if (chain.count == 1 && system.newton_step.kernel) return solve_once(system, right);
    copy_all(system.assemble);
    solve<T>(vectors(system.jacobian), right, system.unknowns, chain.count);
  }

  // One direction is a Newton step more, from another residual; with row pivoting if that does not trust its pivots.
  static void solve_once(const Implicit<T>& system, V* right) {
    V* const r = vectors(system.r);
    for (std::int64_t i = 0; i < system.unknowns; ++i) r[i] = right[i];
    call(system.newton_step);
    const Mask<T> bad = *vectors(system.trusted) != T(1);
    if (any(bad)) {
      copy_all(system.assemble);
      solve<T>(vectors(system.jacobian), right, system.unknowns, 1);
    }
    for (std::int64_t i = 0; i < system.unknowns; ++i) right[i] = bad ? right[i] : vectors(system.step)[i];
  }

  static void push_forward(const Product<T>& product, std::int64_t count) {
    const V* const from = vectors(product.from);
    for (std::int64_t r = 0; r < product.rows; ++r) {
      const V* const row = vectors(product.block) + r * product.stride;
      V* const to = vectors(product.to) + r * count;
      if (!from)
        for (std::int64_t c = 0; c < product.columns; ++c) to[product.first + c] += row[c];
      else
        for (std::int64_t c = 0; c < product.columns; ++c)
          for (std::int64_t k = 0; k < count; ++k) to[k] += row[c] * from[c * count + k];
    }
  }

  static void pull_back(const Adjoint<T>& adjoint) {
    V* const to = vectors(adjoint.to);
    for (std::int64_t r = 0; r < adjoint.rows; ++r)
      for (std::int64_t c = 0; c < adjoint.columns; ++c)
        to[c] += vectors(adjoint.matrix)[r * adjoint.stride + c] * vectors(adjoint.from)[r];
  }

  // So that nothing after them takes the unknowns of failed points for a solution.
  static void mark_failed(const Implicit<T>& system, const Mask<T>& failed) {
    for (std::int64_t i = 0; i < system.unpack.count; ++i) {
      V* const values = vectors(system.unpack.items[i].to);
      for (std::int64_t c = 0; c < system.unpack.items[i].components; ++c)
        values[c] = failed ? all_of<V>(no_number<double>) : values[c];
    }
  }

  // x - x is zero or NaN: whatever bits of NaN are joined make one again. A sum would wait for every addition.
  static Mask<T> bits_of(const T* scratch, std::int64_t components) {
    const V* const values = vectors(scratch);
    Mask<T> bits{};
    for (std::int64_t c = 0; c < components; ++c) bits |= __builtin_bit_cast(Mask<T>, values[c] - values[c]);
    return bits;
  }
  static Mask<T> bits_of(const Matrix<T>& block) {
    Mask<T> bits{};
    if (!block.scratch) return bits;
    if (block.row_stride == block.columns) return bits_of(block.scratch, block.sites * block.rows * block.columns);
    for (std::int64_t row = 0; row < block.sites * block.rows; ++row)
      bits |= bits_of(block.scratch + row * block.row_stride * lanes, block.columns);
    return bits;
  }
  static Mask<T> non_finite_in(const Mask<T>& bits) { return __builtin_bit_cast(V, bits) != T(0); }

  // By the rule of model::Marks.
  void note_non_finite(BlockReport<T>& report, model::Counts& counts) const {
    Mask<T> bits{};
    for (std::int64_t i = 0; i < walk_.outputs.count; ++i)
      bits |= bits_of(walk_.outputs.items[i].scratch, walk_.outputs.items[i].components);
    for (std::int64_t i = 0; i < walk_.blocks.count; ++i) bits |= bits_of(walk_.blocks.items[i]);
    const Mask<T> given = non_finite_in(given_);
    if (!any(given) && !any(report.status) && !any(non_finite_in(bits))) return;
    const WideMask<T> bad = __builtin_convertvector(non_finite_in(bits), WideMask<T>);
    report.status = (bad & (report.status == newton::ok)) ? InLanes<T>::status(newton::non_finite) : report.status;
    for (int l = 0; l < used_; ++l) {
      const bool has_failed = failed(report, l);
      if (given[l] && (has_failed || gives_nan(l))) report.status[l] = newton::non_finite;
      if (has_failed && given[l]) report.lost[l] = -1;
      if (has_failed && (given[l] || is_step_of_zero(report, l))) report.suggested_cut[l] = 1.0;
      if (report.status[l] == newton::non_finite && counts.non_finite.point < 0)
        counts.non_finite = {begin_ + l, reason(l, given[l] != 0)};
    }
  }

  // Inputs of a lane, before a result is written over them.
  const T* given_to(const Bound<T>& array, int l) const { return at(array, begin_ + l); }

  bool gives_nan(int l) const {
    for (std::int64_t i = 0; i < walk_.inputs.count; ++i)
      for (std::int64_t c = 0; c < walk_.inputs.items[i].components; ++c)
        if (const T x = given_to(walk_.inputs.items[i], l)[c]; x != x) return true;
    return false;
  }

  bool is_step_of_zero(const BlockReport<T>& report, int l) const {
    if (report.iterations[l] != 0 || report.residual_norm[l] - report.residual_norm[l] == 0.0) return false;
    for (std::int64_t i = 0; i < walk_.increments.count; ++i)
      if (*given_to(walk_.increments.items[i].now, l) == *given_to(walk_.increments.items[i].before, l)) return true;
    return false;
  }

  // The first array that is not finite in a lane.
  model::Named reason(int l, bool given) const {
    for (std::int64_t i = 0; given && i < walk_.inputs.count; ++i)
      for (std::int64_t c = 0; c < walk_.inputs.items[i].components; ++c)
        if (const T x = given_to(walk_.inputs.items[i], l)[c]; x - x != T(0)) return walk_.inputs.items[i].named;
    for (std::int64_t i = 0; i < walk_.outputs.count; ++i)
      if (non_finite_in(bits_of(walk_.outputs.items[i].scratch, walk_.outputs.items[i].components))[l])
        return walk_.outputs.items[i].named;
    for (std::int64_t i = 0; i < walk_.blocks.count; ++i)
      if (non_finite_in(bits_of(walk_.blocks.items[i]))[l]) return walk_.blocks.items[i].named;
    return {};
  }

  // A point in every lane, and none failed.
  bool all_are_good(const BlockReport<T>& report) const {
    return used_ == lanes && !any((report.status > newton::non_finite) | report.lost);
  }
  bool has_results(const BlockReport<T>& report, int l) const { return !failed(report, l) && !report.lost[l]; }
  bool becomes_nan(const BlockReport<T>& report, int l) const { return walk_.mark_failed || report.lost[l]; }
  bool failed(const BlockReport<T>& report, int l) const { return report.status[l] > newton::non_finite; }

  void scatter(const BlockReport<T>& report) const {
    const bool all = all_are_good(report);
    for (std::int64_t i = 0; i < walk_.outputs.count; ++i) scatter(walk_.outputs.items[i], report, all);
    for (std::int64_t i = 0; i < walk_.blocks.count; ++i) scatter(walk_.blocks.items[i], report, all);
    for (std::int64_t i = 0; i < walk_.iterates.count; ++i) {
      const Bound<T>& array = walk_.iterates.items[i];
      for (int l = 0; l < used_; ++l)
        if (failed(report, l)) write(array, l);
    }
  }

  void write(const Bound<T>& array, int l) const {
    T* const to = at(array, begin_ + l);
    for (std::int64_t c = 0; c < array.components; ++c) to[c] = array.scratch[c * lanes + l];
  }

  static void fill_nan(T* to, std::int64_t count) {
    for (std::int64_t c = 0; c < count; ++c) to[c] = no_number<T>;
  }

  void scatter(const Bound<T>& array, const BlockReport<T>& report, bool all) const {
    if (!array.data) return;
    if (all) {
      T* to[lanes];
      rows(array, to);
      return vectors_to_rows<T>(array.scratch, to, array.components);
    }
    for (int l = 0; l < used_; ++l)
      if (has_results(report, l))
        write(array, l);
      else if (becomes_nan(report, l))
        fill_nan(at(array, begin_ + l), array.components);
  }

  void scatter(const Matrix<T>& block, const BlockReport<T>& report, bool all) const {
    if (block.scratch && !walk_.input_first && all) {
      T* to[lanes];
      for (int l = 0; l < lanes; ++l) to[l] = block.data + (begin_ + l) * block.stride;
      for (std::int64_t row = 0; row < block.sites * block.rows; ++row) {
        vectors_to_rows<T>(block.scratch + row * block.row_stride * lanes, to, block.columns);
        for (int l = 0; l < lanes; ++l) to[l] += block.columns;
      }
      return;
    }
    for (int l = 0; l < used_; ++l) {
      T* to = block.data + (begin_ + l) * block.stride;
      if (has_results(report, l))
        write(block, l, to);
      else if (becomes_nan(report, l))
        fill_nan(to, block.sites * block.rows * block.columns);
    }
  }

  void write(const Matrix<T>& block, int l, T* to) const {
    const bool turned = walk_.input_first;
    const std::int64_t by_row = turned ? 1 : block.columns, by_column = turned ? block.rows : 1;
    for (std::int64_t site = 0; site < block.sites; ++site, to += block.rows * block.columns)
      for (std::int64_t i = 0; i < block.rows; ++i) {
        const T* row = block.scratch ? block.scratch + (site * block.rows + i) * block.row_stride * lanes + l : nullptr;
        for (std::int64_t j = 0; j < block.columns; ++j) to[i * by_row + j * by_column] = row ? row[j * lanes] : T(0);
      }
  }

  template <class X, class Values>
  void write_report(const Bound<X>& array, const Values& values) const {
    if (!array.data) return;
    for (int l = 0; l < used_; ++l) array.data[(begin_ + l) * array.stride] = static_cast<X>(values[l]);
  }

  void write_reports(const BlockReport<T>& report, model::Counts& counts) const {
    const Reports& reports = walk_.reports;
    write_report(reports.status, report.status);
    write_report(reports.iterations, report.iterations);
    write_report(reports.residual_norm, report.residual_norm);
    write_report(reports.suggested_cut, report.suggested_cut);
    if (!any(report.status)) {
      if (counts.count[newton::ok] == 0) counts.first[newton::ok] = begin_;
      counts.count[newton::ok] += used_;
      return;
    }
    for (int l = 0; l < used_; ++l) {
      const std::int64_t status = report.status[l];
      if (counts.count[status]++ == 0) counts.first[status] = begin_ + l;
      if (status > newton::non_finite && counts.failed.point < 0)
        counts.failed = {begin_ + l, report.iterations[l], report.residual_norm[l]};
    }
  }

  const Walk<T>& walk_;
  std::int64_t begin_ = 0;
  int used_ = 0;
  Mask<T> given_{}, of_all_{};  // bits of what is given: of the lanes, and of values that all points have
};

template <class T>
void walk(const Walk<T>& points, model::Counts& counts) {
  Block<T>(points).run(counts);
}

}  // namespace

extern const Functions<double> double_functions = {width<double>, walk<double>};
extern const Functions<float> float_functions = {width<float>, walk<float>};

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
