#include "capi/kernels/in_place.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "capi/base/error.h"
#include "capi/kernels/kernel_graph.h"
#include "capi/kernels/solve_graph.h"

namespace neml2_capi::kernels {
namespace {

using artifact::ImplicitSegment;

std::vector<std::int64_t> sizes_of(const std::vector<artifact::Group>& groups, const std::string& package) {
  std::vector<std::int64_t> sizes;
  for (const artifact::Group& group : groups) {
    if (group.block && group.sub_batch_shape.product() != 1)
      throw Error(NEML2_ERROR_UNSUPPORTED, package, join(package, " solves for groups that have sub-batch axes."));
    std::int64_t& size = sizes.emplace_back(0);
    for (const artifact::Variable& variable : group.variables) size += variable.point_shape().product();
  }
  return sizes;
}

// The first component of each variable, where groups stand one after another.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> places_of(const std::vector<artifact::Group>& groups) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> places;
  std::int64_t next = 0;
  for (const artifact::Group& group : groups)
    for (const artifact::Variable& variable : group.variables) {
      const std::int64_t size = variable.point_shape().product();
      places[variable.name] = {next, size};
      next += size;
    }
  return places;
}

// One row of a group, as segments pack it.
Dims row_of(const artifact::Group& group, std::int64_t size) {
  return group.block ? group.sub_batch_shape.then({size}) : Dims{size};
}

// (the blocks of dr/du, -r) -> the Newton step, group by group.
std::shared_ptr<const aoti::Graph> newton_step(const ImplicitSegment& segment, const Folder& folder) {
  const std::string& package = segment.solve_package;
  LinearSolve solve = {sizes_of(segment.residuals, package), sizes_of(segment.unknowns, package), {1}, false, {}};
  std::int64_t row = 0;
  for (std::size_t i = 0; i < solve.columns.size(); row += solve.columns[i++])
    solve.parts.push_back({row, solve.columns[i], 0, 1, row_of(segment.unknowns[i], solve.columns[i])});
  return solve_graph(package, std::move(solve), folder.real(), folder.find(segment.jacobian_package).outputs);
}

// (the blocks of dr/du, those of dr/dg) -> -(dr/du)^-1 dr/dg, pair by pair.
std::shared_ptr<const aoti::Graph> given_solve(const ImplicitSegment& segment, const Folder& folder) {
  const artifact::Sensitivity& sensitivity = *segment.given_sensitivity;
  const std::string& package = sensitivity.solve_package;
  LinearSolve solve = {sizes_of(segment.residuals, package),
                       sizes_of(segment.unknowns, package),
                       sizes_of(segment.givens, package),
                       true,
                       {}};
  auto unknowns = places_of(segment.unknowns), givens = places_of(segment.givens);
  for (const artifact::Pair& pair : sensitivity.pairs) {
    const auto [row, rows] = unknowns[pair.output];
    const auto [column, columns] = givens[pair.input];
    solve.parts.push_back({row, rows, column, columns, {rows, columns}});
  }
  std::vector<Slot> inputs = folder.find(segment.jacobian_package).outputs;
  inputs.resize(std::min(inputs.size(), solve.rows.size() * solve.columns.size()));
  for (const Slot& slot : folder.find(sensitivity.operator_package).outputs) inputs.push_back(slot);
  return solve_graph(package, std::move(solve), folder.real(), inputs);
}

// (dr/du, dr/dp) -> -(dr/du)^-1 dr/dp, pair by pair.
std::shared_ptr<const aoti::Graph> parameter_solve(const ImplicitSegment& segment, const Folder& folder,
                                                   const artifact::Metadata& metadata) {
  const artifact::Sensitivity& sensitivity = *segment.parameter_sensitivity;
  const std::string& package = sensitivity.solve_package;
  const std::vector<Slot>& inputs = folder.find(sensitivity.operator_package).outputs;
  std::int64_t size = 0;
  for (const std::int64_t group : sizes_of(segment.unknowns, package)) size += group;
  const std::int64_t width = inputs.size() == 2 && size != 0 ? inputs[1].shape.product() / size : 0;
  LinearSolve solve = {{size}, {size}, {width}, true, {}};
  auto unknowns = places_of(segment.unknowns);
  for (const artifact::Pair& pair : sensitivity.pairs) {
    const auto [row, rows] = unknowns[pair.output];
    const auto is_it = [&](const artifact::Parameter& parameter) { return parameter.name == pair.input; };
    const auto parameter = std::find_if(metadata.parameters.begin(), metadata.parameters.end(), is_it);
    const std::int64_t columns = parameter == metadata.parameters.end() ? 1 : parameter->base_shape.product();
    solve.parts.push_back({row, rows, pair.column, columns, {rows, columns}});
  }
  return solve_graph(package, std::move(solve), folder.real(), inputs);
}

std::shared_ptr<const aoti::Graph> graph_of(const std::string& package, const artifact::Segment& segment,
                                            const Folder& folder, const artifact::Metadata& metadata) {
  if (const auto* implicit = std::get_if<ImplicitSegment>(&segment)) {
    if (package == implicit->solve_package) return newton_step(*implicit, folder);
    if (implicit->given_sensitivity && package == implicit->given_sensitivity->solve_package)
      return given_solve(*implicit, folder);
    if (implicit->parameter_sensitivity && package == implicit->parameter_sensitivity->solve_package)
      return parameter_solve(*implicit, folder, metadata);
  }
  return kernel_graph(package, folder.find(package), folder.real());
}

}  // namespace

std::shared_ptr<const aoti::Graph> graph_in_place_of(const std::string& package, const Folder& folder,
                                                     const artifact::Metadata& metadata) {
  std::size_t number = 0;
  while (number + 1 < metadata.segments.size()) {
    const std::vector<std::string> own = artifact::packages_of(metadata.segments[number]);
    if (std::find(own.begin(), own.end(), package) != own.end()) break;
    ++number;
  }
  try {
    return graph_of(package, metadata.segments[number], folder, metadata);
  } catch (const Error& error) {
    if (error.status() != NEML2_ERROR_UNSUPPORTED) throw;
    throw Error(error.status(), package,
                join("segments[", number, "] of the model needs ", package,
                     ", which is missing, and nothing stands in its place: ", error.what(),
                     " Compile the model with packages: neml2-capi compile INPUT.i --kernels auto"));
  }
}

}  // namespace neml2_capi::kernels
