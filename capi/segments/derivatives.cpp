#include "capi/segments/derivatives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace neml2_capi::model {
namespace {

// Number of the set of partners for each member, and those sets.
struct Distinct {
  Vector<std::int64_t> number;
  std::vector<std::vector<bool>> sets;
};

Distinct distinct(const std::vector<std::vector<bool>>& partners) {
  Distinct out;
  std::map<std::vector<bool>, std::int64_t> known;
  for (const auto& set : partners) {
    if (std::none_of(set.begin(), set.end(), [](bool member) { return member; })) {
      out.number.push_back(-1);
      continue;
    }
    const auto [it, added] = known.emplace(set, static_cast<std::int64_t>(out.sets.size()));
    if (added) out.sets.push_back(set);
    out.number.push_back(it->second);
  }
  return out;
}

}  // namespace

void Derivatives::group() {
  std::vector<std::vector<bool>> of_output(outputs_.size(), std::vector<bool>(inputs_.size()));
  std::vector<std::vector<bool>> by_input(inputs_.size(), std::vector<bool>(outputs_.size()));
  for (const Derivative& d : all_) of_output[d.output][d.input] = by_input[d.input][d.output] = true;
  Distinct sets = distinct(of_output);
  output_set_ = std::move(sets.number);
  input_sets_ = std::move(sets.sets);
  sets = distinct(by_input);
  input_set_ = std::move(sets.number);
  output_sets_ = std::move(sets.sets);
}

Directions Derivatives::Chain::directions(std::int64_t count) const {
  Directions directions{points, count, dtype, {}, device};
  directions.of.resize(num_values + num_parameters);
  return directions;
}

void Derivatives::Chain::push_forward(Directions& directions) const {
  for (std::size_t i = 0; i < segments.size(); ++i) model::push_forward(blocks[i], segments[i]->outputs(), directions);
}

void Derivatives::Chain::pull_back(Directions& directions) const {
  for (std::size_t i = segments.size(); i-- > 0;) model::pull_back(blocks[i], segments[i]->outputs(), directions);
}

// Column k holds what is given of the members of sets[k].
void Derivatives::start(Directions& directions, const std::vector<std::size_t>& from, const Vector<Tensor>& given,
                        const Sets& sets) {
  directions.count = std::ssize(sets);
  for (std::size_t k = 0; k < sets.size(); ++k)
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!sets[k][i] || !given[i].data()) continue;
      set_column(directions.at(from[i], given[i].sizes()[1]), static_cast<std::int64_t>(k), given[i]);
    }
}

Vector<Tensor> Derivatives::end(const Directions& directions, const std::vector<std::size_t>& to,
                                const Vector<std::int64_t>& set_of) {
  Vector<Tensor> result(to.size());
  for (std::size_t j = 0; j < to.size(); ++j)
    if (set_of[j] >= 0 && directions.of[to[j]].data()) result[j] = columns_of(directions.of[to[j]], set_of[j], 1);
  return result;
}

void Derivatives::start_jvp(Directions& directions, const Vector<Tensor>& tangents) const {
  start(directions, inputs_, tangents, input_sets_);
}

Vector<Tensor> Derivatives::end_jvp(const Directions& directions) const {
  return end(directions, outputs_, output_set_);
}

Vector<Tensor> Derivatives::jvp(const Chain& chain, const Vector<Tensor>& tangents) const {
  Directions directions = chain.directions(0);
  start_jvp(directions, tangents);
  chain.push_forward(directions);
  return end_jvp(directions);
}

Vector<Tensor> Derivatives::vjp(const Chain& chain, const Vector<Tensor>& cotangents) const {
  Directions directions = chain.directions(0);
  start(directions, outputs_, cotangents, output_sets_);
  chain.pull_back(directions);
  return end(directions, inputs_, input_set_);
}

Vector<Tensor> Derivatives::blocks(const Chain& chain) const {
  Vector<Tensor> result(all_.size());
  if (chain.segments.size() == 1) {  // the blocks of the segment are the model's
    for (std::size_t i = 0; i < all_.size(); ++i)
      for (const Block& block : chain.blocks.front())
        if (block.output == outputs_[all_[i].output] && block.input == inputs_[all_[i].input]) result[i] = block.data;
    return result;
  }
  // One column per component of the inputs.
  Vector<std::int64_t> first(inputs_.size(), -1);
  std::int64_t count = 0;
  for (const Derivative& d : all_)
    if (first[d.input] < 0) {
      first[d.input] = count;
      count += d.columns;
    }
  Directions directions = chain.directions(count);
  for (const Derivative& d : all_)
    directions.of[inputs_[d.input]] =
        identity(chain.points, d.columns, first[d.input], count, chain.dtype, chain.device);
  chain.push_forward(directions);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Derivative& d = all_[i];
    result[i] = columns_of(directions.at(outputs_[d.output], d.rows), first[d.input], d.columns);
  }
  return result;
}

}  // namespace neml2_capi::model
