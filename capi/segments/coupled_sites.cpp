#include "capi/segments/coupled_sites.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "capi/base/error.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

// Ranges of the values that inputs have: a law may not be defined everywhere, or couple sites beyond a threshold only.
struct Range {
  double least, most;
};
constexpr Range ranges[] = {{0.5, 1.5}, {-0.9, 0.9}, {20, 400}};

// The sites of which one digit of the number, in base two, is this one. Two sites differ in some digit.
struct Some {
  int digit;
  bool one;
  bool has(std::int64_t site) const { return ((site >> digit & 1) == 1) == one; }
};

// Calls f(values) for a tensor of real numbers.
template <class F>
void with_values(const Tensor& tensor, F&& f) {
  if (is_real(tensor.dtype())) with_scalar(tensor.dtype(), [&]<class Scalar>(Scalar*) { f(tensor.data_as<Scalar>()); });
}

class Probe {
 public:
  Probe(const GraphCall& value, Range range)
      : value_(value), range_(range), points_(value.package().baked_batch() ? value.package().baked_batch() : 2) {
    run(std::nullopt, 0, {});
    before_ = outputs_;
  }

  // Runs with other values at some sites of an input, of the first point. False if the graph cannot.
  bool change(std::size_t input, std::int64_t sites, Some some) { return run(input, sites, some); }
  bool was_run() const { return !before_.empty(); }

  enum class Answer { depends, does_not, cannot_tell };
  // Tells whether the other sites of an output depend on those that were changed.
  Answer look(std::size_t output, std::int64_t sites, Some some) const {
    Answer answer = Answer::does_not;
    const Tensor &a = before_[output], &b = outputs_[output];
    with_values(a, [&](const auto* before) {
      using Scalar = std::remove_cvref_t<decltype(*before)>;
      const std::int64_t rows = a.numel() / sites / (value_.package().batched_output(output) ? points_ : 1);
      const Scalar* after = b.data_as<const Scalar>();
      for (std::int64_t i = 0; i < sites * rows; ++i) {
        if (some.has(i / rows)) continue;
        const bool is_finite = std::isfinite(before[i]);
        if (is_finite && before[i] != after[i]) {
          answer = Answer::depends;
          return;
        }
        if (!is_finite) answer = Answer::cannot_tell;
      }
    });
    return answer;
  }

 private:
  // Numbers that repeat nowhere, below 1.
  static double fraction(double number) {
    constexpr double golden = 0.61803398874989485;
    return number * golden - std::floor(number * golden);
  }

  bool run(std::optional<std::size_t> changed, std::int64_t sites, Some some) {
    const Package& package = value_.package();
    Vector<Tensor> inputs = package.filled(points_, 0);
    double number = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      with_values(inputs[k], [&](auto* values) {
        using Scalar = std::remove_cvref_t<decltype(*values)>;
        const std::int64_t points = package.batched_input(k) ? points_ : 1, count = inputs[k].numel() / points;
        const double length = range_.most - range_.least;
        for (std::int64_t i = 0; i < count; ++i) {
          const double value = range_.least + length * fraction(++number);
          for (std::int64_t p = 0; p < points; ++p) values[p * count + i] = static_cast<Scalar>(value);
          if (changed == k && some.has(i / (count / sites)))
            values[i] = static_cast<Scalar>(value + 0.2 * length * (0.5 + fraction(number + 0.5)));
        }
      });
    try {
      outputs_ = package.run_from_host(std::move(inputs));
      for (Tensor& output : outputs_) output = output.row_major();
      return true;
    } catch (const Error& error) {  // of an operator that refuses these values
      if (error.status() != NEML2_ERROR_RUNTIME) throw;
      return false;
    }
  }

  const GraphCall& value_;
  const Range range_;
  const std::int64_t points_;
  Vector<Tensor> before_, outputs_;
};

bool is_asked(const PairInfo& pair) {
  return !pair.shape.lumped && pair.shape.input_sites > 1 && pair.shape.output_sites > 1;
}

}  // namespace

void find_coupled_sites(const GraphCall& value, std::vector<PlacedPair>& pairs) {
  for (PlacedPair& placed : pairs) {
    BlockShape& shape = placed.info.shape;
    if (!is_asked(placed.info)) continue;
    const auto place_of = [](const std::vector<std::size_t>& all, std::size_t number) {
      return static_cast<std::size_t>(std::ranges::find(all, number) - all.begin());
    };
    const std::size_t input = place_of(value.inputs(), placed.info.input),
                      output = place_of(value.outputs(), placed.info.output);
    const std::int64_t sites = shape.input_sites;
    std::vector<bool> told;
    for (const Range range : ranges) {
      Probe probe(value, range);
      std::size_t number = 0;
      for (int digit = 0; probe.was_run() && (sites - 1) >> digit != 0; ++digit)
        for (const bool one : {false, true}) {
          if (number == told.size()) told.push_back(false);
          const Some some{digit, one};
          const auto answer =
              probe.change(input, sites, some) ? probe.look(output, sites, some) : Probe::Answer::cannot_tell;
          shape.lumped = shape.lumped || answer == Probe::Answer::depends;
          told[number] = told[number] || answer != Probe::Answer::cannot_tell;
          ++number;
        }
      if (shape.lumped) break;
    }
    shape.lumped = shape.lumped || told.empty() || !std::ranges::all_of(told, [](bool each) { return each; });
  }
}

}  // namespace neml2_capi::model
