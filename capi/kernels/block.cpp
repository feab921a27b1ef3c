// Blocks of points through the segments of a model, for one instruction set: this file is compiled once for each.
//
// No function of another header may be compiled here with it: the linker keeps one copy of an inline function, and it
// must run on every processor.
#include "capi/kernels/block.h"

#include "capi/kernels/free_in_lanes.h"
#include "capi/kernels/newton_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

template <class T>
class Block {
  using V = Lanes<T>;
  static constexpr int lanes = width<T>;
  static constexpr std::int64_t most_in_column = 16;

 public:
  // `number` is the scratch that it works in.
  Block(const Walk& walk, int number)
      : walk_(walk), scratch_(walk.scratch, walk.size, number), is_explicit_(gives_values_alone(walk)) {
    for (const Step& step : walk.steps) has_systems_ |= step.implicit != nullptr;
    for (int kind = 0; kind <= NEML2_REPORT_SUGGESTED_CUT; ++kind) is_reported_ |= walk.report[kind].data != nullptr;
    for (std::int64_t i = 0; i < walk.inputs.count; ++i)
      if (const Bound& input = walk.inputs.items[i]; input.array.stride != 0) last_new_ = i + 1;
  }

  // Evaluates a block from `begin` on, or all full blocks of values alone that there is scratch for; returns the next point.
  std::int64_t run(std::int64_t begin, model::Counts& counts) {
    const std::int64_t full = (walk_.end - begin) / lanes,
                       blocks = full < walk_.blocks_in_turn ? full : walk_.blocks_in_turn;
    const std::int64_t end = is_explicit_ && full > 0 ? begin + blocks * lanes : begin + 1;
    if (is_explicit_ && full > 0 && run_explicit(begin, blocks, counts)) return end;
    while (begin < end) {
      take(begin);
      if (walk_.has_sites_in_lanes && used_ <= most_one_by_one) used_ = 1;
      scratch_.is_one = used_ == 1;
      run(walk_, counts, *this);
      begin += used_;
    }
    return begin;
  }

  // Tells whether nothing is solved or derived.
  bool is_explicit() const { return is_explicit_; }

  // Evaluates two full blocks, which take turns: while one waits for its operations, the other's go on.
  static std::int64_t run_both(std::int64_t begin, Block& first, Block& second, model::Counts& counts) {
    first.take(begin);
    second.take(begin + lanes);
    run(first.walk_, counts, first, second);
    return begin + 2 * lanes;
  }

 private:
  // Tells whether nothing is solved or derived.
  static bool gives_values_alone(const Walk& walk) {
    for (const Step& step : walk.steps)
      if (step.implicit || step.chain || step.of_free) return false;
    return walk.free.count + walk.seeds.count + walk.blocks.count + walk.zeros.count + walk.products.count +
               walk.pulled.count ==
           0;
  }

  void take(std::int64_t begin) {
    begin_ = begin;
    used_ = walk_.end - begin < lanes ? static_cast<int>(walk_.end - begin) : lanes;
  }

  template <class... Blocks>
  static void run(const Walk& walk, model::Counts& counts, Blocks&... blocks) {
    (blocks.start(), ...);
    if (walk.free.count > 0) return with_count(walk.free.count, [&]<int n>() { run_free<n>(walk, counts, blocks...); });
    for (const Step& step : walk.steps) {
      (run_forward(blocks.scratch_, step), ...);
      (blocks.scratch_.copy(step.pack), ...);
      (blocks.scratch_.copy(step.guess), ...);
      if (step.implicit) {
        Newton<T>::run(blocks.newton(*step.implicit)...);
        (blocks.unpack(*step.implicit), ...);
      }
      if (step.chain) (blocks.derive(*step.chain), ...);
    }
    (blocks.finish(counts), ...);
  }

  // Solves for the free components and the unknowns at once: each iteration of Newton's method is followed by a correction
  // of the free components, with which the unknowns go to first order.
  template <int n, class... Blocks>
  static void run_free(const Walk& walk, model::Counts& counts, Blocks&... blocks) {
    (blocks.template start_free<n>(), ...);
    for (std::int64_t i = 0; (... || blocks.goes_on()); ++i) {
      for (const Step& step : walk.steps) {
        ((blocks.goes_on() ? blocks.evaluate(step, i) : void()), ...);
        if (step.implicit) ((blocks.goes_on() ? blocks.iterate(*step.implicit, i) : void()), ...);
      }
      ((blocks.goes_on() ? blocks.template judge<n>(i) : void()), ...);
      for (const Step& step : walk.steps)
        if (step.of_free) ((blocks.goes_on() ? blocks.derive_free(step) : void()), ...);
      ((blocks.goes_on() ? blocks.template correct<n>(i) : void()), ...);
    }
    (blocks.finish_free(), ...);
    if (walk.blocks.count > 0)
      for (const Step& step : walk.steps) {
        if (step.implicit) (blocks.renew(*step.implicit), ...);
        if (step.chain) (blocks.derive(*step.chain), ...);
      }
    (blocks.finish(counts), ...);
  }

  bool goes_on() const { return any(open_); }

  template <int n>
  void start_free() {
    open_ = ~WideMask<T>{};
    left_ = WideMask<T>{};
    last_ = V{};
    FreeInLanes<T, n>(walk_.free, scratch_).begin();
  }

  void evaluate(const Step& step, std::int64_t i) {
    if (i == 0 || !step.implicit) run_forward(scratch_, step);
    if (!step.implicit) return;
    scratch_.copy(i == 0 ? step.pack : walk_.free.pack);
    if (i == 0) scratch_.copy(step.guess);
    newton_of(*step.implicit).prepare();
    scratch_.call(step.implicit->system);
  }

  void iterate(const Implicit& system, std::int64_t i) {
    Newton<T> newton = newton_of(system);
    found_ = newton.iterate(i, open_, initial_, left_);
    has_factors_ = newton.has_factors();
    scratch_.copy(system.unpack);
  }

  // Ends lanes in which all is found. In those that go on, the derivative of a residual by the free components is new if it
  // was not good enough: few residuals have one that changes.
  template <int n>
  void judge(std::int64_t i) {
    const FreeInLanes<T, n> free(walk_.free, scratch_);
    const V residual = free.residual();
    const Mask<T> bad = non_finite_in(bits_of(scratch_[walk_.free.output], 6));
    left_ |= __builtin_convertvector(bad, WideMask<T>);
    open_ &= ~left_;
    retire(i, free.vanish(residual));
    if (i + 1 == 2 * walk_.rules.miters) left_ |= open_;
    open_ &= ~left_;
    is_stale_ = i == 0 ? ~Mask<T>{} : residual > T(0.1) * last_;
    last_ = residual;
  }

  void derive_free(const Step& step) {
    const Chain& chain = *step.of_free;
    if (!step.implicit || !chain.system) return derive(chain);
    const std::int64_t entries = chain.system->unknowns * chain.count;
    V* const kept = scratch_[walk_.free.right];
    if (any(is_stale_)) {
      assemble(chain);
      for (std::int64_t k = 0; k < entries; ++k) set_where(is_stale_, kept[k], scratch_[chain.right][k]);
    }
    solve(chain, kept);
    scratch_.copy(chain.unpack);
  }

  // Calls a system again whose matrix a factorisation overwrites, whether or not it did.
  void renew(const Implicit& system) const {
    if (system.assemble.count == 0) scratch_.call(system.system);
  }

  template <int n>
  void correct(std::int64_t i) {
    const FreeInLanes<T, n> free(walk_.free, scratch_);
    left_ |= open_ & ~__builtin_convertvector(free.correct(), WideMask<T>);
    open_ &= ~left_;
    retire(i, free.stand());
    const Mask<T> moves = __builtin_convertvector(open_, Mask<T>);
    free.move(moves);
    for (const Step& step : walk_.steps)
      if (step.implicit) free.move(moves, *step.implicit, *step.of_free);
  }

  // Ends lanes whose free components are found, if the unknowns are, too.
  void retire(std::int64_t i, const Mask<T>& lanes) {
    WideMask<T> done = open_ & __builtin_convertvector(lanes, WideMask<T>);
    if (has_systems_) done &= found_;
    set_where(done, report_.iterations, WideMask<T>(WideMask<T>{} + i));
    open_ &= ~done;
  }

  void finish_free() {
    report_.status = left_ ? InLanes<T>::status(NEML2_NOT_CONVERGED) : report_.status;
    for (const Step& step : walk_.steps)
      if (step.implicit && walk_.traces) Newton<T>::note_end(*trace(*step.implicit), report_, report_);
  }

  // Condenses derivatives; returns the lanes in which that is possible.
  Mask<T> condense() const {
    if (walk_.free.count > 0 && walk_.condensed.count > 0)
      return with_count(walk_.free.count,
                        [&]<int n>() { return FreeInLanes<T, n>(walk_.free, scratch_).condense(walk_.condensed); });
    for (const Condensed& block : walk_.condensed) {
      V* to = scratch_[block.to];
      for (const std::int64_t r : block.rows)
        for (const std::int64_t c : block.columns)
          *to++ = block.direct.at == nowhere ? V{} : scratch_[block.direct.at][r * block.direct.stride + c];
    }
    return ~Mask<T>{};
  }

  void start() {
    gather();
    scratch_.copy(walk_.seeds);
    report_ = {};
    report_.begin = begin_;
    report_.used = used_;
    start_history(report_);
    has_factors_ = false;
  }

  void finish(model::Counts& counts) {
    scratch_.copy(walk_.zeros);
    for (const Product& product : walk_.products) scratch_.push_forward(product, 1);
    for (const Adjoint& adjoint : walk_.pulled) pull_back(adjoint);
    if (walk_.takes_good_alone)
      leave_others(condense());
    else
      note_non_finite(report_, counts);
    scatter(report_);
    write_reports(report_, counts);
    is_first_ = false;
  }

  // Calls a function with 0, 1, ..., and with counts that are constants for symmetric tensors with nothing between.
  template <class Take>
  [[gnu::always_inline]] static void each(std::int64_t blocks, std::int64_t stride, std::int64_t components,
                                          Take&& take) {
    if (stride == 6 && components == 6)
      for (std::int64_t b = 0; b < blocks; ++b) take(b, 6, 6);
    else
      for (std::int64_t b = 0; b < blocks; ++b) take(b, stride, components);
  }

  // Full blocks of values alone, each in a scratch of its own, so that what all have in common is looked up once. False if
  // something is not finite: then nothing is written.
  [[gnu::always_inline]] bool run_explicit(std::int64_t begin, std::int64_t blocks, model::Counts& counts) {
    const std::int64_t size = walk_.size;
    Mask<T> bits{};
    begin_ = begin;
    used_ = lanes;
    for (const Bound& input : walk_.inputs) {
      const T* const from = at(input.array, begin);
      V* const to = scratch_[input.at];
      if (input.array.stride != 0) {
        each(blocks, input.array.stride, input.components,
             [&bits, from, to, size](std::int64_t b, std::int64_t stride, std::int64_t components) {
               V* const vectors = to + b * size;
               rows_to_vectors<T>(from + b * lanes * stride, stride, reinterpret_cast<T*>(vectors), components);
               bits |= bits_of(vectors, components);
             });
      } else if (is_first_) {
        for (std::int64_t b = 0; b < walk_.blocks_in_turn; ++b) repeat(from, to + b * size, input.components);
        of_all_ |= bits_of(to, input.components);
      }
    }
    is_first_ = false;
    for (const Step& step : walk_.steps) {
      const bool is_plain = step.run.kernel && !step.run.kernel->prepare && step.begin.count == 0 && step.passes == 1;
      for (std::int64_t b = 0; b < blocks; ++b) {
        const Scratch<T> scratch(walk_.scratch, size, b);
        if (is_plain)
          scratch.call(step.run, step.run.kernel->run);
        else
          run_forward(scratch, step);
      }
    }
    for (const Bound& output : walk_.outputs)
      each(blocks, 6, output.components,
           [&bits, size, from = scratch_[output.at]](std::int64_t b, std::int64_t, std::int64_t components) {
             bits |= bits_of(from + b * size, components);
           });
    if (any(non_finite_in(bits | of_all_))) return false;
    for (const Bound& output : walk_.outputs)
      if (output.array.data)
        each(blocks, output.array.stride, output.components,
             [size, from = scratch_[output.at], to = at(output.array, begin)](std::int64_t b, std::int64_t stride,
                                                                              std::int64_t components) {
               const T* const vectors = reinterpret_cast<const T*>(from + b * size);
               vectors_to_rows<T>(vectors, to + b * lanes * stride, stride, components);
             });
    for (; is_reported_ && begin_ < begin + blocks * lanes; begin_ += lanes) write_good_reports();
    count_good(counts, begin, blocks * lanes);
    return true;
  }

  T* numbers(At place) const { return reinterpret_cast<T*>(scratch_[place]); }
  template <class X = T>
  static X* at(const model::Points& array, std::int64_t point) {
    return reinterpret_cast<X*>(array.data) + point * array.stride;
  }

  // Rows of a block that is not full: lanes without a point of their own repeat the last one.
  struct SomeRows {
    const T* first;
    std::int64_t stride;
    int used;

    const T* operator[](int l) const { return first + (l < used ? l : used - 1) * stride; }
  };

  void take_rows(const Bound& from) const {
    const T* const first = at(from.array, begin_);
    if (used_ == lanes)
      rows_to_vectors<T>(first, from.array.stride, numbers(from.at), from.components);
    else
      transpose_to_vectors<T>(SomeRows{first, from.array.stride, used_}, numbers(from.at), from.components);
  }

  static void repeat(const T* values, V* to, std::int64_t components) {
    count_to(components, [&](std::int64_t c) { to[c] = values[c] - V{}; });
  }

  void gather() {
    Mask<T> given{};
    const std::int64_t count = is_first_ ? walk_.inputs.count : last_new_;
    for (const Bound& input : List<Bound>{walk_.inputs.items, count}) {
      V* const to = scratch_[input.at];
      const T* const values = at(input.array, begin_);
      if (input.array.stride == 0) {
        if (is_first_) repeat(values, to, input.components);
        if (is_first_) of_all_ |= bits_of(to, input.components);
        continue;
      }
      if (used_ == 1) {
        repeat(values, to, input.components);
        given |= bits_of(to, input.components);
        continue;
      }
      take_rows(input);
      given |= bits_of(to, input.components);
    }
    given_ = given | of_all_;
  }

  void start_history(BlockReport<T>& report) const {
    const model::Points& history = walk_.report[NEML2_REPORT_RESIDUAL_HISTORY];
    if (!history.data) return;
    report.history = at<double>(history, begin_);
    report.history_stride = history.stride;
    for (int l = 0; l < used_; ++l)
      for (std::int64_t i = 0; i < walk_.rules.miters; ++i) report.history[l * history.stride + i] = no_number<double>;
  }

  [[gnu::always_inline]] static void run_forward(const Scratch<T>& scratch, const Step& step) {
    scratch.copy(step.begin);
    if (step.run.kernel) {
      scratch.prepare(step.run);
      for (std::int64_t pass = 1;; ++pass) {
        scratch.call(step.run);
        if (pass >= step.passes) break;
        scratch.copy(step.feedback);
      }
    }
  }

  Trace* trace(const Implicit& system) const { return walk_.traces ? walk_.traces + system.number : nullptr; }

  Newton<T> newton_of(const Implicit& system) { return {system, scratch_, walk_.rules, report_, trace(system)}; }

  Newton<T> newton(const Implicit& system) {
    Newton<T> newton = newton_of(system);
    newton.prepare();
    if (walk_.guesses.count > 0) {
      newton.take_reference();
      take_guesses(system);
    }
    return newton;
  }

  void unpack(const Implicit& system) const {
    scratch_.copy(system.unpack);
    scratch_.copy(system.iterates);
    if (any(report_.failed)) mark_failed(system, __builtin_convertvector(report_.failed, Mask<T>));
  }

  void take_guesses(const Implicit& system) const {
    scratch_.copy(system.iterates);
    for (std::int64_t i = 0; i < system.parts; ++i) {
      const Bound& guess = walk_.guesses.items[system.first_part + i];
      const SomeRows from{at(guess.array, begin_), guess.array.stride, used_};
      T* const to = numbers(guess.at);
      for (std::int64_t c = 0; c < guess.components; ++c)
        for (int l = 0; l < lanes; ++l) to[c * lanes + l] = from[l][c] == from[l][c] ? from[l][c] : to[c * lanes + l];
    }
    for (const Move& move : system.iterates) scratch_.copy({move.to, move.from, move.components});
  }

  void derive(const Chain& chain) {
    assemble(chain);
    if (chain.system && chain.count > 0) solve_sensitivity(chain);
    scratch_.copy(chain.unpack);
  }

  void assemble(const Chain& chain) const {
    for (const Run& run : chain.operators) scratch_.call(run);
    scratch_.copy(chain.expand);
    scratch_.copy(chain.zeros);
    for (const Product& product : chain.products) scratch_.push_forward(product, chain.count);
  }

  void solve_sensitivity(const Chain& chain) {
    // By the implicit function theorem, with the operator at the solution: a line search leaves another one.
    if (walk_.rules.ls_max_iters > 1) {
      scratch_.call(chain.system->system);
      has_factors_ = false;
    }
    solve(chain, scratch_[chain.right]);
  }

  // Solves for directions `from`, if the kernel of the Newton step cannot, with row pivoting. A direction is a Newton step
  // more, from another residual and by the same factors.
  void solve(const Chain& chain, const V* from) {
    const Implicit& system = *chain.system;
    if (!system.newton_step.kernel || (chain.count > 1 && chain.solved == nowhere))
      return solve_by_pivoting(chain, from);
    if (!has_factors_) scratch_.prepare(system.newton_step);
    if (scratch_.is_one && chain.count > 1)
      solve_steps_of_one(chain, from);
    else
      solve_steps(chain, from);
  }

  void solve_by_pivoting(const Chain& chain, const V* from) const {
    V* const right = scratch_[chain.right];
    if (from != right) renew(*chain.system);
    const std::int64_t entries = chain.system->unknowns * chain.count;
    for (std::int64_t i = 0; i < entries; ++i) right[i] = -from[i];
    scratch_.solve_by_pivoting(*chain.system, right, chain.count);
  }

  // Lanes whose pivots the kernel does not trust are solved with row pivoting; they are the same for all directions.
  void solve_steps(const Chain& chain, const V* from) const {
    const Implicit& system = *chain.system;
    const std::int64_t n = system.unknowns, count = chain.count;
    V *const r = scratch_[system.r], *const step = scratch_[system.step], *const right = scratch_[chain.right];
    V* const solved = count == 1 ? step : scratch_[chain.solved];
    Mask<T> bad{};
    for (std::int64_t k = 0; k < count; ++k) {
      for (std::int64_t i = 0; i < n; ++i) r[i] = -from[i * count + k];
      scratch_.call(system.newton_step);
      bad |= *scratch_[system.trusted] != T(1);
      V* const to = any(bad) ? solved : right;
      for (std::int64_t i = 0; (count > 1 || to == right) && i < n; ++i) to[i * count + k] = step[i];
    }
    if (!any(bad)) return;
    solve_by_pivoting(chain, from);
    for (std::int64_t i = 0; i < n * count; ++i) set_where(~bad, right[i], solved[i]);
  }

  // The same for one point, whose directions are in the lanes.
  void solve_steps_of_one(const Chain& chain, const V* from) const {
    const Implicit& system = *chain.system;
    const std::int64_t n = system.unknowns, count = chain.count, packs = (count + lanes - 1) / lanes;
    V *const r = scratch_[system.r], *const step = scratch_[system.step], *const solved = scratch_[chain.solved];
    Mask<T> bad{};
    for (std::int64_t p = 0; p < packs; ++p) {
      for (std::int64_t i = 0; i < n; ++i) {
        const V* const row = from + i * count;
        V directions{};
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) directions[l] = row[p * lanes + l < count ? p * lanes + l : 0][0];
        r[i] = -directions;
      }
      scratch_.call(system.newton_step, system.newton_step.kernel->run);
      bad |= *scratch_[system.trusted] != T(1);
      for (std::int64_t i = 0; i < n; ++i) solved[i * packs + p] = step[i];
    }
    if (any(bad)) return solve_by_pivoting(chain, from);
    const T* const row = numbers(chain.solved);
    for (std::int64_t i = 0; i < n; ++i) repeat(row + i * packs * lanes, scratch_[chain.right] + i * count, count);
  }

  void pull_back(const Adjoint& adjoint) const {
    V* const to = scratch_[adjoint.to];
    for (std::int64_t r = 0; r < adjoint.rows; ++r)
      for (std::int64_t c = 0; c < adjoint.columns; ++c)
        to[c] += scratch_[adjoint.matrix][r * adjoint.stride + c] * scratch_[adjoint.from][r];
  }

  // So that nothing after them takes the unknowns of failed points for a solution.
  void mark_failed(const Implicit& system, const Mask<T>& failed) const {
    for (const Move& move : system.unpack) {
      V* const values = scratch_[move.to];
      for (std::int64_t c = 0; c < move.components; ++c) set_where(failed, values[c], all_of<V>(no_number<double>));
    }
  }

  // x - x is zero or NaN: whatever bits of NaN are joined make one again. A sum would wait for every addition.
  [[gnu::always_inline]] static Mask<T> bits_of(const V* values, std::int64_t components) {
    Mask<T> bits{};
    const auto join = [&](std::int64_t count) {
#pragma GCC unroll 6
      for (std::int64_t c = 0; c < count; ++c) bits |= __builtin_bit_cast(Mask<T>, values[c] - values[c]);
    };
    if (components == 6)
      join(6);
    else
      join(components);
    return bits;
  }
  Mask<T> bits_of(const Bound& output) const { return bits_of(scratch_[output.at], output.components); }
  Mask<T> bits_of(const Matrix& block) const {
    Mask<T> bits{};
    if (block.at == nowhere) return bits;
    const V* const values = scratch_[block.at];
    if (block.row_stride == block.columns) return bits_of(values, block.sites * block.rows * block.columns);
    for (std::int64_t row = 0; row < block.sites * block.rows; ++row)
      bits |= bits_of(values + row * block.row_stride, block.columns);
    return bits;
  }
  static Mask<T> non_finite_in(const Mask<T>& bits) { return __builtin_bit_cast(V, bits) != T(0); }

  // By the rule of model::Marks.
  void note_non_finite(BlockReport<T>& report, model::Counts& counts) const {
    Mask<T> bits{};
    for (const Bound& output : walk_.outputs) bits |= bits_of(output);
    for (const Matrix& block : walk_.blocks) bits |= bits_of(block);
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

  // Leaves lanes that have not converged, are not regular or not finite, to what evaluates them otherwise.
  void leave_others(const Mask<T>& regular) {
    Mask<T> bits = given_;
    for (const Bound& output : walk_.outputs) bits |= bits_of(output);
    for (const Matrix& block : walk_.blocks) bits |= bits_of(block);
    const WideMask<T> good = __builtin_convertvector(regular & ~non_finite_in(bits), WideMask<T>);
    report_.status = (good & (report_.status == newton::ok)) ? report_.status : InLanes<T>::status(NEML2_NOT_CONVERGED);
  }

  // Inputs of a lane, before a result is written over them.
  const T* given_to(const model::Points& array, int l) const { return at(array, begin_ + l); }

  bool gives_nan(int l) const {
    for (const Bound& input : walk_.inputs)
      for (std::int64_t c = 0; c < input.components; ++c)
        if (const T x = given_to(input.array, l)[c]; x != x) return true;
    return false;
  }

  bool is_step_of_zero(const BlockReport<T>& report, int l) const {
    if (report.iterations[l] != 0 || report.residual_norm[l] - report.residual_norm[l] == 0.0) return false;
    for (const Increment& step : walk_.increments)
      if (*given_to(step.now, l) == *given_to(step.before, l)) return true;
    return false;
  }

  // The first array that is not finite in a lane.
  model::Named reason(int l, bool given) const {
    if (given)
      for (const Bound& input : walk_.inputs)
        for (std::int64_t c = 0; c < input.components; ++c)
          if (const T x = given_to(input.array, l)[c]; x - x != T(0)) return input.named;
    for (const Bound& output : walk_.outputs)
      if (non_finite_in(bits_of(output))[l]) return output.named;
    for (const Matrix& block : walk_.blocks)
      if (non_finite_in(bits_of(block))[l]) return block.named;
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
    for (const Bound& output : walk_.outputs) scatter(output, report, all);
    for (const Matrix& block : walk_.blocks) scatter(block, report, all);
    for (const Bound& iterate : walk_.iterates)
      for (int l = 0; l < used_; ++l)
        if (walk_.guesses.count > 0 || failed(report, l)) write(iterate, l);
  }

  void write(const Bound& output, int l) const {
    T* const to = at(output.array, begin_ + l);
    const T* const from = numbers(output.at) + l;
    count_to(output.components, [&](std::int64_t c) { to[c] = from[c * lanes]; });
  }

  static void fill_nan(T* to, std::int64_t count) {
    for (std::int64_t c = 0; c < count; ++c) to[c] = no_number<T>;
  }

  void scatter(const Bound& output, const BlockReport<T>& report, bool all) const {
    if (!output.array.data) return;
    if (all)
      return vectors_to_rows<T>(numbers(output.at), at(output.array, begin_), output.array.stride, output.components);
    for (int l = 0; l < used_; ++l)
      if (has_results(report, l))
        write(output, l);
      else if (becomes_nan(report, l))
        fill_nan(at(output.array, begin_ + l), output.components);
  }

  void scatter(const Matrix& block, const BlockReport<T>& report, bool all) const {
    if (block.at != nowhere && !walk_.input_first && all) {
      T* to = at(block.array, begin_);
      if (block.columns == 1 && block.sites * block.rows <= most_in_column) return scatter_column(block, to);
      for (std::int64_t row = 0; row < block.sites * block.rows; ++row, to += block.columns)
        vectors_to_rows<T>(numbers(block.at + row * block.row_stride), to, block.array.stride, block.columns);
      return;
    }
    for (int l = 0; l < used_; ++l) {
      T* const to = at(block.array, begin_ + l);
      if (has_results(report, l))
        write(block, l, to);
      else if (becomes_nan(report, l))
        fill_nan(to, block.sites * block.rows * block.columns);
    }
  }

  // A column of a wider matrix, side by side.
  void scatter_column(const Matrix& block, T* to) const {
    V column[most_in_column];
    const V* const from = scratch_[block.at];
    const std::int64_t rows = block.sites * block.rows;
    for (std::int64_t row = 0; row < rows; ++row) column[row] = from[row * block.row_stride];
    vectors_to_rows<T>(reinterpret_cast<const T*>(column), to, block.array.stride, rows);
  }

  void write(const Matrix& block, int l, T* to) const {
    const bool turned = walk_.input_first;
    const std::int64_t by_row = turned ? 1 : block.columns, by_column = turned ? block.rows : 1;
    for (std::int64_t site = 0; site < block.sites; ++site, to += block.rows * block.columns)
      for (std::int64_t i = 0; i < block.rows; ++i) {
        T* const first = to + i * by_row;
        if (block.at == nowhere) {
          for (std::int64_t j = 0; j < block.columns; ++j) first[j * by_column] = T(0);
        } else {
          const T* const row = numbers(block.at + (site * block.rows + i) * block.row_stride) + l;
          count_to(block.columns, [&](std::int64_t j) { first[j * by_column] = row[j * lanes]; });
        }
      }
  }

  template <class X, class Values>
  void write_report(int which, const Values& values) const {
    const model::Points& array = walk_.report[which];
    if (!array.data) return;
    for (int l = 0; l < used_; ++l) *at<X>(array, begin_ + l) = static_cast<X>(values[l]);
  }

  template <class X>
  [[gnu::always_inline]] void fill_report(int which, X value) const {
    const model::Points& array = walk_.report[which];
    if (!array.data) return;
    const RowsOf<X> rows{at<X>(array, begin_), array.stride};
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) *rows[l] = value;
  }

  // Of a point in every lane, for which nothing was solved.
  void write_good_reports() const {
    fill_report<std::int32_t>(NEML2_REPORT_STATUS, newton::ok);
    fill_report<std::int32_t>(NEML2_REPORT_ITERATIONS, 0);
    fill_report<double>(NEML2_REPORT_RESIDUAL_NORM, 0.0);
    fill_report<double>(NEML2_REPORT_SUGGESTED_CUT, 1.0);
    if (walk_.report[NEML2_REPORT_RESIDUAL_HISTORY].data) {
      BlockReport<T> report;
      start_history(report);
    }
  }

  void write_report_arrays(const BlockReport<T>& report) const {
    write_report<std::int32_t>(NEML2_REPORT_STATUS, report.status);
    write_report<std::int32_t>(NEML2_REPORT_ITERATIONS, report.iterations);
    write_report<double>(NEML2_REPORT_RESIDUAL_NORM, report.residual_norm);
    write_report<double>(NEML2_REPORT_SUGGESTED_CUT, report.suggested_cut);
  }

  static void count_good(model::Counts& counts, std::int64_t begin, std::int64_t points) {
    if (counts.count[newton::ok] == 0) counts.first[newton::ok] = begin;
    counts.count[newton::ok] += points;
  }

  void write_reports(const BlockReport<T>& report, model::Counts& counts) const {
    write_report_arrays(report);
    if (!any(report.status)) return count_good(counts, begin_, used_);
    for (int l = 0; l < used_; ++l) {
      const std::int64_t status = report.status[l];
      if (counts.count[status]++ == 0) counts.first[status] = begin_ + l;
      if (status > newton::non_finite && counts.failed.point < 0)
        counts.failed = {begin_ + l, report.iterations[l], report.residual_norm[l]};
    }
  }

  const Walk& walk_;
  Scratch<T> scratch_;
  const bool is_explicit_;  // the steps give values alone
  bool is_reported_ = false, has_systems_ = false;
  std::int64_t last_new_ = 0;  // inputs from here on are the same for all blocks
  bool is_first_ = true;       // of its blocks
  std::int64_t begin_ = 0;
  int used_ = 0;
  BlockReport<T> report_;
  Mask<T> given_{}, of_all_{};  // bits of what is given: of the lanes, and of values that all points have
  // Lanes of a solve for free components: they go on, are left to others, or their unknowns have converged.
  WideMask<T> open_{}, left_{}, found_{};
  Mask<T> is_stale_{};        // the derivative of the residual by the free components is computed again
  V last_{};                  // what did not vanish an iteration before
  Wide<T> initial_{};         // |r| at the guess
  bool has_factors_ = false;  // the kernel of the Newton step has the factors of the last Jacobian
};

template <class T>
void walk(const Walk& points, model::Counts& counts) {
  constexpr std::int64_t both = 2 * width<T>;
  std::int64_t begin = points.begin;
  Block<T> block(points, 0);
  if (!block.is_explicit() && points.blocks_in_turn > 1 && points.end - begin >= both) {
    Block<T> second(points, 1);
    while (points.end - begin >= both) begin = Block<T>::run_both(begin, block, second, counts);
  }
  while (begin < points.end) begin = block.run(begin, counts);
}

}  // namespace

extern const Functions double_functions = {width<double>, sizeof(double), walk<double>};
extern const Functions float_functions = {width<float>, sizeof(float), walk<float>};

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
