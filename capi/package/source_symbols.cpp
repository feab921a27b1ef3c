#include "capi/package/source_symbols.h"

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "capi/base/error.h"
#include "capi/package/source_text.h"

namespace neml2_capi::aoti {
namespace {

// Symbols by which run_impl names sizes. It declares each at the input that shows it first, and its other names:
//   int64_t s35 = arg1_1_size[0];
//   int64_t s74 = s35;
// and checks the layout of inputs that kernels read.
class Symbols {
 public:
  Symbols(std::string_view body, const std::vector<InputSpec>& inputs) : inputs_(inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!numbers_.emplace(inputs[i].name, static_cast<std::int64_t>(i)).second)
        malformed_input(static_cast<std::int64_t>(i), join("has the variable of another, ", inputs[i].name));
    Lines lines(body);
    while (const auto line = lines.next()) {
      if (const auto declaration = between(*line, "int64_t ", ";")) declare(*declaration);
      if (const auto layout = checked_layout(*line)) read_sizes(*layout);
    }
  }

  // Returns groups of axes that have one size.
  std::vector<std::vector<Axis>> equal_axes() const {
    if (count_ == 1) return by_bounds(inputs_);
    std::vector<std::vector<Axis>> groups;
    for (const auto& [symbol, axes] : axes_)
      if (axes.size() > 1) groups.push_back(axes);
    return groups;
  }

  // Returns, for every name, an axis of an input that has the size.
  std::map<std::string, Axis, std::less<>> axes() const {
    std::map<std::string, Axis, std::less<>> found;
    for (const auto& [name, symbol] : names_) found.emplace(name, axes_.at(symbol).front());
    return found;
  }

 private:
  std::optional<std::int64_t> input_named(std::string_view name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

  // Adds an axis to a symbol's axes, once.
  void add(const std::string& symbol, Axis axis) {
    if (axis.axis >= inputs_[static_cast<std::size_t>(axis.input)].least.size())
      malformed_input(axis.input, join("has no axis ", axis.axis, ", whose size is read"));
    if (known_.emplace(symbol, axis.input * Dims::capacity + axis.axis).second) axes_[symbol].push_back(axis);
  }

  void declare(std::string_view declaration) {
    const std::size_t equals = declaration.find(" = ");
    if (equals == std::string_view::npos || !is_identifier(declaration.substr(0, equals))) return;
    const std::string symbol(declaration.substr(0, equals));
    const std::string_view value = declaration.substr(equals + 3);
    if (const auto found = names_.find(value); found != names_.end()) names_.emplace(symbol, found->second);
    const auto element = to_element(value);
    if (!element) return;
    constexpr std::string_view stride = "_stride", size = "_size";
    if (element->array.ends_with(stride))
      if (const auto input = input_named(element->array.substr(0, element->array.size() - stride.size())))
        throw Error(NEML2_ERROR_UNSUPPORTED, "",
                    join("The package takes input ", *input,
                         " with strides of its own. Compile it with contiguous example inputs."));
    if (!element->array.ends_with(size)) return;
    const auto input = input_named(element->array.substr(0, element->array.size() - size.size()));
    if (!input) return;
    names_.emplace(symbol, symbol);
    add(symbol, {*input, element->index});
    ++count_;
  }

  void read_sizes(const CheckedLayout& layout) {
    const auto input = input_named(layout.tensor);
    for (std::int64_t axis = 0; input && axis < std::ssize(layout.sizes); ++axis)
      if (const auto found = names_.find(layout.sizes[static_cast<std::size_t>(axis)]); found != names_.end())
        add(found->second, {*input, axis});
  }

  // Groups the dynamic axes by their bounds. A single symbol is behind all of them, whether or not a kernel reads the
  // input; axes that are a function of it have other bounds.
  static std::vector<std::vector<Axis>> by_bounds(const std::vector<InputSpec>& inputs) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Axis>> groups;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (std::int64_t axis = 0; axis < inputs[i].least.size(); ++axis)
        if (!inputs[i].is_fixed(axis))
          groups[{inputs[i].least[axis], inputs[i].greatest[axis]}].push_back({static_cast<std::int64_t>(i), axis});
    std::vector<std::vector<Axis>> equal;
    for (const auto& [bounds, axes] : groups)
      if (axes.size() > 1) equal.push_back(axes);
    return equal;
  }

  const std::vector<InputSpec>& inputs_;
  std::map<std::string_view, std::int64_t> numbers_;       // of the inputs, by their variables
  std::map<std::string, std::string, std::less<>> names_;  // from every name of a symbol to its first one
  std::map<std::string, std::vector<Axis>> axes_;
  std::set<std::pair<std::string, std::int64_t>> known_;  // symbols, and the axes that they have
  int count_ = 0;
};

}  // namespace

SizeSymbols read_symbols(std::string_view body, const std::vector<InputSpec>& inputs) {
  const Symbols symbols(body, inputs);
  return {symbols.equal_axes(), symbols.axes()};
}

}  // namespace neml2_capi::aoti
