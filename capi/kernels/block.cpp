// Blocks of points through the segments of a model, for one instruction set: this file is compiled once for each.
//
// No function of another header may be compiled here with it: the linker keeps one copy of an inline function, and it
// must run on every processor.
#include "capi/kernels/block.h"

#include "capi/kernels/free_solve_in_lanes.h"
#include "capi/kernels/gather_in_lanes.h"
#include "capi/kernels/parts_in_lanes.h"
#include "capi/kernels/reports_in_lanes.h"
#include "capi/kernels/scatter_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

template <class T>
class Block {
  static constexpr int lanes = width<T>;
#ifdef NEML2_CAPI_SMALL
  static constexpr bool is_small = true;
#else
  static constexpr bool is_small = false;
#endif

 public:
  // `number` is the scratch that it works in.
  Block(const Walk& walk, int number)
      : walk_(walk),
        points_{walk, {walk.scratch, walk.size, number}},
        gather_(walk),
        is_explicit_(gives_values_alone(walk)) {
    for (int kind = 0; kind <= NEML2_REPORT_SUGGESTED_CUT; ++kind) is_reported_ |= walk.report[kind].data != nullptr;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Evaluates a block from `begin` on, or all full blocks of values alone that there is scratch for; returns the next point.
  std::int64_t run(std::int64_t begin, model::Counts& counts) {
    if (walk_.rows.run && (begin = run_on_rows(begin, counts)) == walk_.end) return begin;
    const std::int64_t full = (walk_.end - begin) / lanes,
                       blocks = full < walk_.blocks_in_turn ? full : walk_.blocks_in_turn;
    const std::int64_t end = is_explicit_ && full > 0 ? begin + blocks * lanes : begin + 1;
    if (is_explicit_ && full > 0 && run_explicit(begin, blocks, counts)) return end;
    if constexpr (!is_small)
      if (is_explicit_ && full == 0 && !walk_.has_sites_in_lanes && run_few(begin, counts)) return walk_.end;
    while (begin < end) {
      take(begin);
      if (walk_.has_sites_in_lanes && points_.used <= most_one_by_one) points_.used = 1;
      scratch().is_one = points_.used == 1;
      run(walk_, counts, *this);
      begin += points_.used;
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
  static bool gives_values_alone(const Walk& walk) {
    for (const Step& step : walk.steps)
      if (step.implicit || step.chain || step.of_free) return false;
    return walk.free.count + walk.seeds.count + walk.blocks.count + walk.zeros.count + walk.products.count +
               walk.pulled.count ==
           0;
  }

  Scratch<T>& scratch() { return points_.scratch; }
  Reports<T> reports() { return {points_, report_}; }
  ChainsInLanes<T> chains() { return {walk_, points_.scratch, has_factors_}; }

  void take(std::int64_t begin) {
    points_.begin = begin;
    points_.used = walk_.end - begin < lanes ? static_cast<int>(walk_.end - begin) : lanes;
  }

  template <class... Blocks>
  static void run(const Walk& walk, model::Counts& counts, Blocks&... blocks) {
    (blocks.start(), ...);
    if (walk.free.count > 0)
      FreeSolve<T>::run(walk, FreeSolve<T>(blocks.points_, blocks.report_, blocks.has_factors_)...);
    else
      for (const Step& step : walk.steps) {
        if (step.parts) (blocks.begin_whole(*step.parts), ...);
        (blocks.scratch().run_forward(step), ...);
        (blocks.scratch().copy(step.pack), ...);
        (blocks.scratch().copy(step.guess), ...);
        if (step.implicit) {
          Newton<T>::run(blocks.newton(*step.implicit)...);
          (blocks.unpack(*step.implicit), ...);
        }
        if (step.chain) (blocks.chains().derive(*step.chain), ...);
        if (step.parts) (blocks.cut(step), ...);
      }
    (blocks.finish(counts), ...);
  }

  void start() {
    gather_.one(points_);
    move(walk_.spread, scratch());
    if (walk_.begins_at_solution)
      for (const Move& one : walk_.packed) *scratch()[one.from] = *scratch()[one.to];
    scratch().copy(walk_.seeds);
    reports().start();
    has_factors_ = false;
  }

  // Moves components one by one.
  [[gnu::always_inline]] static void move(const List<Move>& all, const Scratch<T>& scratch) {
    for (const Move& one : all) *scratch[one.to] = *scratch[one.from];
  }

  void finish(model::Counts& counts) {
    move(walk_.packed, scratch());
    scratch().copy(walk_.zeros);
    for (const Product& product : walk_.products) scratch().push_forward(product, 1);
    for (const Adjoint& adjoint : walk_.pulled) chains().pull_back(adjoint);
    if (walk_.free.count == 0) pick(walk_, points_.scratch);
    const Mask<T> given = gather_.given(), found = reports().bits_of_results();
    if (walk_.takes_good_alone)
      reports().leave_others(~non_finite_in<T>(given | found));
    else
      reports().note_non_finite(non_finite_in<T>(given), non_finite_in<T>(found), counts);
    Scatter<T>(points_, report_).all();
    reports().write(counts);
    gather_.end_first();
  }

  // Full blocks, until something is not finite; returns the next point.
  std::int64_t run_on_rows(std::int64_t begin, model::Counts& counts) {
    const void* inputs[most_on_rows];
    void* outputs[most_on_rows];
    std::int64_t strides[most_on_rows];
    points_.begin = begin;
    points_.used = lanes;
    const List<model::Points>&given = walk_.rows.inputs, made = walk_.rows.outputs;
    for (std::int64_t i = 0; i < given.count; ++i) {
      inputs[i] = points_.at(given.items[i]);
      strides[i] = given.items[i].stride;
    }
    for (std::int64_t i = 0; i < made.count; ++i) outputs[i] = points_.at(made.items[i]);
    const std::int64_t done = walk_.rows.run(inputs, strides, outputs, (walk_.end - begin) / lanes) * lanes;
    if (is_reported_) reports().write_good(done);
    if (done > 0) Reports<T>::count_good(counts, begin, done);
    return begin + done;
  }

  // Full blocks of values alone, each in a scratch of its own, so that what all have in common is looked up once. False if
  // something is not finite: then nothing is written.
  [[gnu::always_inline]] bool run_explicit(std::int64_t begin, std::int64_t blocks, model::Counts& counts) {
    points_.begin = begin;
    points_.used = lanes;
    Mask<T> bits = gather_.full(points_, blocks);
    for (std::int64_t b = 0; b < blocks && walk_.spread.count > 0; ++b)
      move(walk_.spread, {walk_.scratch, walk_.size, b});
    for (const Step& step : walk_.steps) {
      if (is_plain(step))
        call_plain(step.run, blocks);
      else
        for (std::int64_t b = 0; b < blocks; ++b) Scratch<T>(walk_.scratch, walk_.size, b).run_forward(step);
    }
    for (std::int64_t b = 0; b < blocks && walk_.packed.count > 0; ++b)
      move(walk_.packed, {walk_.scratch, walk_.size, b});
    for (const Bound& output : walk_.outputs) {
      ZerosInLanes<T> zeros;  // `bits` is in memory, where another function returned it
      each_block(
          blocks, 6, output.components,
          [&zeros, size = walk_.size, from = scratch()[output.at]](
              std::int64_t b, std::int64_t, std::int64_t components) { zeros.add(from + b * size, components); });
      bits |= zeros.bits();
    }
    if (any(non_finite_in<T>(bits))) return false;
    Scatter<T>::full(points_, blocks);
    if (is_reported_) reports().write_good(blocks * lanes);
    Reports<T>::count_good(counts, begin, blocks * lanes);
    return true;
  }

  // Tells whether a step is one call of a kernel.
  [[gnu::always_inline]] static bool is_plain(const Step& step) {
    return step.run.kernel && !step.run.kernel->prepare && step.begin.count == 0 && step.passes == 1;
  }

  // Calls a kernel for each of these blocks. Their lists of arrays are as far apart as the blocks.
  [[gnu::noinline]] void call_plain(const Run& run, std::int64_t blocks) {
    const auto function = run.kernel->run;
    const std::int64_t inputs = run.kernel->input_count, all = inputs + run.kernel->output_count,
                       size = walk_.size * static_cast<std::int64_t>(sizeof(Lanes<T>) / sizeof(void*));
    void* const* list = scratch().inputs(run);
    for (std::int64_t b = 0; b < blocks; ++b, list += size) function(list, list + inputs, list[all]);
  }

  // A block that is not full, of values alone. False as run_explicit().
  [[gnu::always_inline]] bool run_few(std::int64_t begin, model::Counts& counts) {
    take(begin);
    scratch().is_one = points_.used == 1;
    gather_.one(points_);
    move(walk_.spread, scratch());
    for (const Step& step : walk_.steps)
      if (is_plain(step))
        scratch().call(step.run);
      else
        scratch().run_forward(step);
    move(walk_.packed, scratch());
    Mask<T> bits = gather_.given();
    for (const Bound& output : walk_.outputs) bits |= bits_of<T>(scratch()[output.at], output.components);
    if (any(non_finite_in<T>(bits))) return false;
    gather_.end_first();
    Scatter<T>(points_, report_).few();
    if (!is_reported_) {
      Reports<T>::count_good(counts, begin, points_.used);
      return true;
    }
    reports().start();
    reports().write(counts);
    return true;
  }

  Newton<T> newton(const Implicit& system) {
    Newton<T> newton{system, points_.scratch, walk_.rules, report_, points_.trace(system)};
    newton.prepare();
    if (walk_.guesses.count > 0 || walk_.begins_at_solution) newton.take_reference();
    if (walk_.guesses.count > 0) take_guesses(system);
    if (walk_.begins_at_solution) points_.begin_at_solution(system);
    return newton;
  }

  void unpack(const Implicit& system) {
    scratch().copy(system.unpack);
    scratch().copy(system.iterates);
    if (any(report_.failed)) mark_failed(system, __builtin_convertvector(report_.failed, Mask<T>));
  }

  void begin_whole(const CutIncrement& parts) {
    scratch().copy(parts.whole);
    before_ = report_;
  }

  // Cuts the increments of lanes in which a system was not solved; not in a rescue, which begins at the end of the increment.
  void cut(const Step& step) {
    if (!any(report_.failed) || walk_.rules.in_rescue) return;
    const Implicit& system = *step.implicit;
    InParts<T> parts(step, scratch(), report_, before_, points_.trace(system));
    parts.run(
        [&](const WideMask<T>& open) {
          scratch().run_forward(step);
          scratch().copy(step.pack);
          scratch().copy(step.guess);
          Newton<T> newton(system, scratch(), walk_.rules, report_, nullptr);
          newton.of_part(open);
          newton.prepare();
          Newton<T>::run(newton);
          scratch().copy(system.unpack);
        },
        [&](const List<Product>& products) { chains().derive(*step.chain, products); });
    unpack(system);
  }

  void take_guesses(const Implicit& system) {
    scratch().copy(system.iterates);
    for (std::int64_t i = 0; i < system.parts; ++i) {
      const Bound& guess = walk_.guesses.items[system.first_part + i];
      const SomeRows<T> from{points_.at(guess.array), guess.array.stride, points_.used};
      T* const to = points_.numbers(guess.at);
      for (std::int64_t c = 0; c < guess.components; ++c)
        for (int l = 0; l < lanes; ++l) to[c * lanes + l] = from[l][c] == from[l][c] ? from[l][c] : to[c * lanes + l];
    }
    for (const Move& move : system.iterates) scratch().copy({move.to, move.from, move.components});
  }

  // So that nothing after them takes the unknowns of failed points for a solution.
  void mark_failed(const Implicit& system, const Mask<T>& failed) {
    for (const Move& move : system.unpack) {
      Lanes<T>* const values = scratch()[move.to];
      for (std::int64_t c = 0; c < move.components; ++c)
        set_where(failed, values[c], all_of<Lanes<T>>(no_number<double>));
    }
  }

  const Walk& walk_;
  PointsInLanes<T> points_;
  BlockReport<T> report_;
  newton::Report<InLanes<T>> before_;  // a system whose increment may be cut
  bool has_factors_ = false;           // the kernel of the Newton step has the factors of the last Jacobian
  Gather<T> gather_;
  const bool is_explicit_;  // the steps give values alone
  bool is_reported_ = false;
};

template <class T>
void walk(const Walk& points, model::Counts& counts) {
  constexpr std::int64_t both = 2 * width<T>;
  std::int64_t begin = points.begin;
  Block<T> block(points, 0);
  if constexpr (!is_short<T>)
    if (!block.is_explicit() && points.blocks_in_turn > 1 && points.end - begin >= both) {
      Block<T> second(points, 1);
      while (points.end - begin >= both) begin = Block<T>::run_both(begin, block, second, counts);
    }
  while (begin < points.end) begin = block.run(begin, counts);
}

}  // namespace

extern const Functions double_functions = {width<double>, sizeof(double), walk<double>};
#if !defined(NEML2_CAPI_SMALL) || !defined(__AVX2__)
extern const Functions float_functions = {width<float>, sizeof(float), walk<float>};
#endif

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
