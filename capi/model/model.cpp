#include "capi/model/model.h"

#include <algorithm>
#include <charconv>
#include <mutex>

#include "capi/base/error.h"
#include "capi/base/names.h"
#include "capi/graph/backend.h"
#include "capi/segments/implicit.h"

namespace neml2_capi::model {
namespace {

// Copies values that another thread may write meanwhile, or read: a word at a time, and what is left by bytes.
void copy_words(const void* from, void* to, std::size_t bytes) {
  const auto copy = [&]<class Word>(Word, std::size_t begin) {
    std::size_t at = begin;
    for (; at + sizeof(Word) <= bytes; at += sizeof(Word))
      __atomic_store_n(
          reinterpret_cast<Word*>(static_cast<char*>(to) + at),
          __atomic_load_n(reinterpret_cast<const Word*>(static_cast<const char*>(from) + at), __ATOMIC_ACQUIRE),
          __ATOMIC_RELEASE);
    return at;
  };
  copy(std::uint8_t{}, copy(std::uint64_t{}, 0));
}

void copy_words(const Tensor& from, const Tensor& to) {
  copy_words(from.data(), to.data(), static_cast<std::size_t>(from.numel() * from.itemsize()));
}

}  // namespace

std::string Views::of_state() const {
  std::string all;
  const auto add = [&](const std::string& each) { all += (all.empty() ? "" : ", ") + each; };
  if (material_axes) add("material_axes");
  if (!hypothesis.empty()) add("hypothesis " + hypothesis);
  if (!strain_measure.empty()) add("strain_measure " + strain_measure);
  return all;
}

graph::Runtime Model::runtime() const {
  if (law_) return law_->runtime();
  if (!device_.is_host()) return graph::Runtime::tensors;
  for (const auto& segment : segments_)
    for (const Package* package : segment->packages())
      if (package->runtime() != graph::Runtime::builtin) return package->runtime();
  return graph::Runtime::builtin;
}

bool Model::cuts_increments() const {
  return std::ranges::any_of(metadata_.segments, [](const artifact::Segment& segment) {
    const auto* implicit = std::get_if<artifact::ImplicitSegment>(&segment);
    return implicit && implicit->max_substepping_level > 0;
  });
}

std::size_t Model::find(Kind kind, std::string_view name) const {
  const auto& all = variables(kind);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].name == name) return i;
  // A parameter may go by the last component of its qualified name, if that is unique.
  std::string names, candidates;
  std::vector<std::string> listed;
  std::size_t found = 0, count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    names += (i ? ", " : "") + all[i].name;
    listed.push_back(all[i].name);
    const std::size_t dot = all[i].name.rfind('.');
    if (kind != Kind::parameter || dot == std::string::npos || all[i].name.substr(dot + 1) != name) continue;
    candidates += (count++ ? ", " : "") + all[i].name;
    found = i;
  }
  if (count == 1) return found;
  if (count > 1)
    throw Error(NEML2_ERROR_NAME, std::string(name),
                join("The parameter '", name, "' could be one of: ", candidates, ". Give its qualified name."));
  throw Error(NEML2_ERROR_NAME, std::string(name),
              join("The model has no ", name_of(kind), " '", name, "'", did_you_mean(name, listed), " Its ",
                   name_of(kind), "s are: ", names.empty() ? "none" : names, "."));
}

std::vector<Model::History> Model::histories() const {
  const auto position = [](const std::vector<Variable>& variables, std::string_view name) {
    const auto it = std::find_if(variables.begin(), variables.end(), [&](const Variable& v) { return v.name == name; });
    return it == variables.end() ? -1 : static_cast<std::int64_t>(it - variables.begin());
  };
  std::vector<History> all;
  const auto& inputs = variables(Kind::input);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = inputs[i].name;
    const std::size_t tilde = name.rfind('~');
    if (tilde == std::string::npos) continue;
    std::int64_t age = 0;
    const auto [end, failure] = std::from_chars(name.data() + tilde + 1, name.data() + name.size(), age);
    if (failure != std::errc() || end != name.data() + name.size() || age < 1) continue;
    const std::string_view base = std::string_view(name).substr(0, tilde);
    all.push_back({static_cast<std::int64_t>(i), age, position(variables(Kind::output), base), position(inputs, base)});
  }
  return all;
}

void Model::keep_on_host() {
  for (Tensor& parameter : parameters_)
    if (!parameter.device().is_host()) parameter = algebra::moved(parameter, {});
  home_ = {};
}

Tensor Model::parameter(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return parameters_[index];
}

void Model::set_parameter(std::size_t index, const Tensor& value) {
  const Variable& parameter = variables(Kind::parameter)[index];
  if (value.dtype() != parameter.dtype)
    throw Error(NEML2_ERROR_DTYPE, parameter.name,
                join("The parameter '", parameter.name, "' is ", neml2_capi::name_of(parameter.dtype), "; got ",
                     neml2_capi::name_of(value.dtype()), ". Convert the value first."));
  const std::int64_t base_ndim = parameter.point_shape.size();
  if (value.ndim() < base_ndim || !(value.sizes().last(base_ndim) == parameter.point_shape))
    throw Error(NEML2_ERROR_SHAPE, parameter.name,
                join("The parameter '", parameter.name, "' takes the shape (*batch, *", parameter.point_shape.str(),
                     "); got ", value.sizes().str(), "."));
  if (value.device().is_host()) check_parameter(*this, index, value);
  const graph::OnStream here(home_.is_host() ? value.device() : home_);
  Tensor copy = home_.is_host() && value.device().is_host() ? value.copy() : algebra::moved(value, home_);
  const std::lock_guard lock(mutex_);
  Tensor& stored = parameters_[index];
  const Writing writing(*this);
  if (stored.sizes() != copy.sizes()) {
    std::swap(stored, copy);
    ++settings_;
  } else if (home_.is_host()) {
    copy_words(copy, stored);
  } else {
    algebra::assign(stored, copy);
  }
}

// Copies the values of parameters without a lock. Returns false if an option or a shape is another than before, or
// anything was changed meanwhile: writes_ is a sequence lock (Boehm, "Can seqlocks get along with programming language
// memory models?", 2012).
bool Model::take_values(Snapshot& snapshot) const {
  const std::uint64_t writes = writes_.load(std::memory_order_acquire);
  if (!home_.is_host() || snapshot.settings != settings_.load(std::memory_order_acquire)) return false;
  for (std::size_t i = 0; i < snapshot.stored.size(); ++i) copy_words(snapshot.stored[i], snapshot.parameters[i]);
  return writes % 2 == 0 && writes_.load(std::memory_order_relaxed) == writes;
}

bool Model::take(Snapshot& snapshot) const {
  if (take_values(snapshot)) return false;
  Vector<Tensor>& copies = snapshot.parameters;
  const std::lock_guard lock(mutex_);
  if (snapshot.settings == settings_ && home_.is_host()) {
    for (std::size_t i = 0; i < copies.size(); ++i) parameters_[i].copy_to(copies[i].data());
    return false;
  }
  copies.clear();
  for (const Tensor& parameter : parameters_) copies.push_back(parameter.copy());
  snapshot.stored.clear();
  if (home_.is_host()) snapshot.stored = parameters_;
  snapshot.options = options_;
  snapshot.settings = settings_;
  return true;
}

Options Model::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

}  // namespace neml2_capi::model
