#include "capi/segments/coupled_sites.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "capi/base/error.h"
#include "capi/tensor/numbers.h"
#include "capi/tensor/probe.h"

namespace neml2_capi::model {
namespace {

// Ranges of the values that inputs have: a law may not be defined everywhere, or couple sites beyond a threshold only.
struct Range {
  double least, most;
};
constexpr Range ranges[] = {{0.5, 1.5}, {-0.9, 0.9}, {0.05, 0.95}, {20, 400}, {400, 3000}, {-3000, 3000}};
constexpr std::size_t num_ranges = std::size(ranges);
// Draws of values until all sites had a number.
constexpr std::size_t most_draws = 8 * num_ranges;

// The sites of which one digit of the number, in base two, is this one. Two sites differ in some digit.
struct Some {
  int digit;
  bool one;
  bool has(std::int64_t site) const { return ((site >> digit & 1) == 1) == one; }
};

class Probe {
 public:
  // `draw` is a number of the values, within one of the ranges.
  Probe(const GraphCall& value, std::size_t draw)
      : value_(value),
        range_(ranges[draw % num_ranges]),
        draw_(static_cast<double>(draw)),
        points_(value.package().baked_batch() ? value.package().baked_batch() : 2) {
    run(std::nullopt, 0, {});
    before_ = outputs_;
  }

  // Runs with other values at some sites of an input, of the first point. False if the graph cannot.
  bool change(std::size_t input, std::int64_t sites, Some some) { return run(input, sites, some); }
  bool was_run() const { return !before_.empty(); }

  // Tells whether other sites of an output depend on those that were changed, and notes which elements had a number.
  bool depends(std::size_t output, std::int64_t sites, Some some, std::vector<bool>& told) const {
    const Tensor& all = before_[output];
    if (!is_real(all.dtype())) return false;
    const std::int64_t count = all.numel() / (value_.package().batched_output(output) ? points_ : 1);
    const Numbers before = numbers_of(all), after = numbers_of(outputs_[output]);
    told.resize(static_cast<std::size_t>(count), false);
    for (std::int64_t i = 0; i < count; ++i) {
      const bool is_seen = !some.has(i / (count / sites)), is_number = std::isfinite(before[i]);
      if (is_seen && is_number && before[i] != after[i]) return true;
      if (!is_seen || is_number) told[static_cast<std::size_t>(i)] = true;
    }
    return false;
  }

 private:
  bool run(std::optional<std::size_t> changed, std::int64_t sites, Some some) {
    const Package& package = value_.package();
    Vector<Tensor> inputs = package.filled(points_, 0);
    double number = 0;
    const auto drawn = [&](double at) { return range_.least + (range_.most - range_.least) * uneven(at, draw_); };
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!is_real(inputs[k].dtype())) continue;
      const std::int64_t points = package.batched_input(k) ? points_ : 1, count = inputs[k].numel() / points;
      const Numbers values = numbers_of(inputs[k]);
      for (std::int64_t i = 0; i < count; ++i) {
        ++number;
        for (std::int64_t p = 0; p < points; ++p) values.set(p * count + i, drawn(number));
        if (changed == k && some.has(i / (count / sites))) values.set(i, drawn(number + 0.5));
      }
    }
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
  const double draw_;
  const std::int64_t points_;
  Vector<Tensor> before_, outputs_;
};

bool all(const std::vector<bool>& told) {
  return !told.empty() && std::ranges::all_of(told, [](bool each) { return each; });
}

// Tells whether a site of an output depends on other sites of an input, or no run could tell.
bool couples_sites(const GraphCall& value, std::size_t input, std::size_t output, std::int64_t sites) {
  std::vector<Some> parts;
  for (int digit = 0; (sites - 1) >> digit != 0; ++digit)
    for (const bool one : {false, true}) parts.push_back({digit, one});
  std::vector<std::vector<bool>> told(parts.size());
  const auto is_open = [&](std::size_t k, std::size_t draw) { return draw < num_ranges || !all(told[k]); };
  for (std::size_t draw = 0; draw < most_draws; ++draw) {
    if (draw >= num_ranges && std::ranges::all_of(told, all)) return false;
    Probe probe(value, draw);
    for (std::size_t k = 0; probe.was_run() && k < parts.size(); ++k)
      if (is_open(k, draw) && probe.change(input, sites, parts[k]) && probe.depends(output, sites, parts[k], told[k]))
        return true;
  }
  return !std::ranges::all_of(told, all);
}

bool is_asked(const PairInfo& pair) {
  return !pair.shape.lumped && pair.shape.input_sites > 1 && pair.shape.output_sites > 1;
}

}  // namespace

void find_coupled_sites(const GraphCall& value, std::vector<PlacedPair>& pairs) {
  const auto place_of = [](const std::vector<std::size_t>& among, std::size_t number) {
    return static_cast<std::size_t>(std::ranges::find(among, number) - among.begin());
  };
  for (PlacedPair& placed : pairs) {
    PairInfo& pair = placed.info;
    if (is_asked(pair))
      pair.shape.lumped = couples_sites(value, place_of(value.inputs(), pair.input),
                                        place_of(value.outputs(), pair.output), pair.shape.input_sites);
  }
}

}  // namespace neml2_capi::model
