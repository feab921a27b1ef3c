#include <algorithm>

#include "capi/kernels/layout.h"

namespace neml2_capi::kernels {

Places Layout::places_of(const Groups& groups) {
  Places places;
  const At all = place(groups.size).at;
  for (const Group& group : groups.all) places.push_back({all + group.first, group.size()});
  return places;
}

void Layout::expect_sites(const Groups& rows, const Groups& columns, const std::string& who) const {
  std::int64_t sites = 1;
  for (const Groups* groups : {&rows, &columns})
    for (const Group& group : groups->all) {
      if (group.sites != 1 && sites != 1 && group.sites != sites) refuse(who, "its groups have different sites");
      sites = std::max(sites, group.sites);
    }
}

void Layout::move(std::vector<Move>& moves, const Part& part, At from, At to, bool pack) {
  if (part.is_whole()) return moves.push_back({from, to, part.size()});
  for (std::int64_t i = 0; i < part.pieces; ++i)
    moves.push_back(
        {from + i * (pack ? part.piece : part.apart), to + i * (pack ? part.apart : part.piece), part.piece});
}

Place Layout::place_of(const neml2_kernel& kernel, std::size_t output, std::int64_t components) {
  const auto number = static_cast<std::int32_t>(output);
  const neml2_kernel_sparse* sparse = number < kernel.output_count ? sparse_of(kernel, number) : nullptr;
  if (!sparse || sparse->size != components) return place(components);
  return {place(kernel.outputs[number].components).at, kernel.outputs[number].components, sparse};
}

void Layout::move_stored(std::vector<Move>& moves, const Place& block, std::int64_t first, std::int64_t count, At to) {
  if (!block.sparse) return moves.push_back({block.at + first, to, count});
  const std::int32_t *const begin = block.sparse->places, *const end = begin + block.components;
  for (const std::int32_t* it = std::lower_bound(begin, end, first); it != end && *it < first + count; ++it) {
    const Move next = {block.at + (it - begin), to + *it - first, 1};
    Move* const last = moves.empty() ? nullptr : &moves.back();
    if (last && last->from != nowhere && last->from + last->components == next.from &&
        last->to + last->components == next.to)
      ++last->components;
    else
      moves.push_back(next);
  }
}

void Layout::assemble(const Places& blocks, const Groups& rows, const Groups& columns, bool auxiliaries,
                      Implicit& system) {
  system.jacobian = blocks.front().at;
  if (rows.all.size() == 1 && rows.all.front().sites == 1 && !blocks.front().sparse && !auxiliaries) return;
  const std::int64_t n = system.unknowns;
  system.jacobian = place(n * n).at;
  std::vector<Move> moves = {{nowhere, system.jacobian, n * n}};  // sites do not depend on each other
  for (std::size_t i = 0; i < rows.all.size(); ++i)
    for (std::size_t j = 0; j < columns.all.size(); ++j)
      for (const SubMatrix& matrix : sub_matrices(rows.all[i], columns.all[j]))
        for (std::int64_t r = 0; r < matrix.rows; ++r)
          move_stored(moves, blocks[i * columns.all.size() + j], matrix.at + r * matrix.stride, matrix.columns,
                      system.jacobian + (matrix.row + r) * n + matrix.column);
  const std::size_t known = rows.all.size() * (columns.all.size() + 1);
  if (auxiliaries) add_auxiliaries(blocks[known], blocks[known + 1], system, moves);
  system.assemble = memory.keep(moves);
}

void Layout::add_auxiliaries(const Place& by_auxiliaries, const Place& auxiliaries, Implicit& system,
                             std::vector<Move>& moves) {
  const std::int64_t n = system.unknowns, count = by_auxiliaries.sparse->size / n, width = n + count;
  const At slopes = place(count * n).at;  // dw/du
  moves.push_back({nowhere, slopes, count * n});
  std::vector<Product> products;
  const auto each = [](const Place& of, std::int64_t row_width, auto&& take) {
    for (std::int64_t i = 0; i < of.components; ++i)
      take(of.at + i, of.sparse->places[i] / row_width, of.sparse->places[i] % row_width);
  };
  each(auxiliaries, width, [&](At at, std::int64_t row, std::int64_t column) {
    if (column < n)
      moves.push_back({at, slopes + row * n + column, 1});
    else
      products.push_back({at, 1, 1, 1, slopes + (column - n) * n, 0, slopes + row * n});
  });
  each(by_auxiliaries, count, [&](At at, std::int64_t row, std::int64_t column) {
    products.push_back({at, 1, 1, 1, slopes + column * n, 0, system.jacobian + row * n});
  });
  system.substitute = memory.keep(products);
}

void Layout::add(const artifact::ImplicitSegment& segment) {
  const std::string& who = segment.residual_package;
  if (segment.jacobian_package.empty()) refuse(who, "it has no Jacobian");
  Step step;
  CutIncrement parts{.levels = segment.max_substepping_level};
  const std::map<std::string, Place> wholes = begin_parts(segment, parts);
  predict(segment, step);

  Implicit system;
  system.number = std::ssize(systems);
  systems.push_back(who);
  system.is_cut = segment.max_substepping_level > 0;
  const Groups u(segment.unknowns), g(segment.givens), r(segment.residuals);
  if (r.size != u.size || u.size == 0) refuse(who, "it has more or fewer equations than unknowns");
  expect_sites(r, u, who);
  expect_sites(r, g, who);
  system.unknowns = u.size;
  const Places unknowns = places_of(u), givens = places_of(g), residual = places_of(r), trial = places_of(u);
  const Places newton_step = places_of(u);
  Places trial_residual = places_of(r);
  const auto operands = [&](const Places& at) {
    Places places = at;
    places.insert(places.end(), givens.begin(), givens.end());
    for (const std::string& name : segment.parameters) places.push_back(parameter(name));
    return places;
  };
  // The Jacobian in blocks, then the residual, whose groups have places already.
  Places outputs;
  const neml2_kernel& jacobian = folder_.find(segment.jacobian_package);
  for (const Group& row : r.all)
    for (const Group& column : u.all) outputs.push_back(place_of(jacobian, outputs.size(), block_size(row, column)));
  outputs.insert(outputs.end(), residual.begin(), residual.end());
  system.system = run_of(segment.jacobian_package, operands(unknowns), outputs);
  const std::size_t more = outputs.size() - r.all.size() * (u.all.size() + 1);
  const bool auxiliaries = jacobian.version > 1 && jacobian.auxiliaries > 0;
  if (more != (auxiliaries ? 2 : 0)) refuse(segment.jacobian_package, "its kernel returns other arrays");
  assemble(outputs, r, u, auxiliaries, system);
  system.u = unknowns.front().at;
  system.r = residual.front().at;
  system.trial = trial.front().at;
  system.trial_residual = trial_residual.front().at;
  system.step = newton_step.front().at;
  system.residual = run_of(segment.residual_package, operands(trial), trial_residual);
  if (folder_.has(segment.solve_package)) {
    Places made = newton_step;
    made.push_back(place(1));
    system.trusted = made.back().at;
    system.newton_step = run_of(segment.solve_package, outputs, made);
    system.pivoted = place(system.unknowns).at;
  }
  const neml2_kernel* const step_kernel = system.newton_step.kernel;
  operations_ += jacobian.operations + (step_kernel ? step_kernel->operations : most_in_turn);
  if (asked_.by_values) add_sensitivity(segment, operands(unknowns), r, g);
  if (asked_.by_parameters) add_parameter_sensitivity(segment, operands(unknowns), r);

  system.first_part = std::ssize(iterates);
  system.parts = std::ssize(u.parts);
  std::vector<Move> pack, start, unpack, iterate;
  for (const Part& part : g.parts)
    move(pack, part, sized(value(part.name), part), givens.front().at + part.first, true);
  for (const Part& part : u.parts) {
    const At to = system.u + part.first;
    Place& guess = values[part.name];
    if (guess.at == nowhere) guess = place(part.size());  // zeros
    move(start, part, sized(guess, part), to, true);
    guess = place(part.size());
    move(unpack, part, to, guess.at, false);
    iterates.push_back(part.is_whole() ? Place{to, part.size()} : place(part.size()));
    if (!part.is_whole()) move(iterate, part, to, iterates.back().at, false);
  }
  links.back().unknowns = u.parts;
  step.pack = memory.keep(pack);
  step.guess = memory.keep(start);
  system.unpack = memory.keep(unpack);
  system.iterates = memory.keep(iterate);
  step.implicit = links.back().system = memory.keep(std::vector<Implicit>{system}).items;
  if (system.is_cut) step.parts = end_parts(wholes, system.unknowns, parts);
  steps.push_back(step);
}

std::map<std::string, Place> Layout::begin_parts(const artifact::ImplicitSegment& segment, CutIncrement& parts) {
  using Role = artifact::Substep::Role;
  std::map<std::string, Place> wholes, of_part;
  std::vector<Move> whole;
  std::vector<Between> moving;
  for (const artifact::Substep& given : segment.substeps) {
    if (given.role == Role::fixed) continue;
    const Place from = value(given.name), made = place(from.components);
    links.back().roles.push_back(given);
    wholes[given.name] = from;
    of_part[given.name] = made;
    whole.push_back({from.at, made.at, made.components});
    if (given.role == Role::increment)
      moving.push_back({nowhere, from.at, Between::Place::width, made.at, made.components});
    else if (given.role != Role::old_state)
      moving.push_back(between(given, from.at, value(given.partner).at, made));
  }
  for (const auto& [name, place] : of_part) values[name] = place;
  parts.whole = memory.keep(whole);
  parts.moving = memory.keep(moving);
  return wholes;
}

const CutIncrement* Layout::end_parts(const std::map<std::string, Place>& wholes, std::int64_t unknowns,
                                      CutIncrement& parts) {
  std::vector<Move> states;
  for (const artifact::Substep& given : links.back().roles)
    if (given.role == artifact::Substep::Role::old_state)
      states.push_back(whole(value(given.partner), value(given.name), given.name));
  for (const auto& [name, place] : wholes) values[name] = place;
  parts.states = memory.keep(states);
  parts.solution = place(unknowns).at;
  return memory.keep(std::vector<CutIncrement>{parts}).items;
}

At Layout::sized(const Place& from, const Part& part) {
  if (from.components != part.size()) refuse(part.name, "it has another size before");
  return from.at;
}

Move Layout::whole(const Place& from, const Place& to, const std::string& name) {
  if (from.components != to.components) refuse(name, "it has another size before");
  return {from.at, to.at, to.components};
}

void Layout::predict(const artifact::ImplicitSegment& segment, Step& step) {
  if (!segment.predictor) return;
  std::vector<Move> begin;
  if (segment.feedback) {
    const artifact::Feedback& feedback = *segment.feedback;
    const Place first = place(feedback.sub_batch_shape.then(feedback.base_shape).product());
    values[feedback.input] = first;
    begin.push_back({nowhere, first.at, first.components});
    step.passes = feedback.iterations;
  }
  // An unknown that nothing made before starts at zero.
  for (const artifact::Group& group : segment.unknowns)
    for (const artifact::Variable& variable : group.variables)
      if (Place& guess = values[variable.name]; guess.at == nowhere) guess = place(variable.point_shape().product());
  const artifact::NamedGraph& graph = *segment.predictor;
  Places outputs;
  step.run = run_of(graph.package, arguments(graph), outputs);
  if (outputs.size() != graph.outputs.size()) refuse(graph.package, "its kernel returns other arrays");
  for (std::size_t i = 0; i < outputs.size(); ++i) values[graph.outputs[i]] = outputs[i];
  if (segment.feedback)
    step.feedback = whole(value(segment.feedback->output), value(segment.feedback->input), segment.feedback->input);
  step.begin = memory.keep(begin);
}

void Layout::add_sensitivity(const artifact::ImplicitSegment& segment, const Places& operands, const Groups& rows,
                             const Groups& givens) {
  if (!segment.given_sensitivity || !segment.given_sensitivity->block_package.empty())
    refuse(segment.residual_package, "its derivatives with respect to its givens were not compiled");
  const std::string& package = segment.given_sensitivity->operator_package;
  Places blocks;
  links.back().operators.push_back(run_of(package, operands, blocks));
  std::size_t next = 0;
  for (const Group& row : rows.all)
    for (std::size_t j = 0; j < givens.all.size(); ++j, ++next) {
      if (next < blocks.size()) expand(blocks[next]);
      if (next >= blocks.size() || blocks[next].components != block_size(row, givens.all[j]))
        refuse(package, "its kernel returns other blocks");
      for (const SubMatrix& matrix : sub_matrices(row, givens.all[j]))
        for (const Part& part : givens.parts)
          if (part.group == j) links.back().locals.push_back(local(blocks[next].at, matrix, part));
    }
}

void Layout::expand(Place& block) {
  if (!block.sparse) return;
  const Place whole = place(block.sparse->size);
  move_stored(links.back().expand, block, 0, whole.components, whole.at);
  block = whole;
}

Local Layout::local(At block, const SubMatrix& matrix, const Part& part) {
  const std::int64_t column = part.first + matrix.site * part.apart - matrix.column;
  return {"",
          part.name,
          false,
          matrix.row,
          block + matrix.at + column,
          matrix.stride,
          matrix.rows,
          part.piece,
          matrix.site * part.piece};
}

void Layout::add_parameter_sensitivity(const artifact::ImplicitSegment& segment, const Places& operands,
                                       const Groups& rows) {
  if (!segment.parameter_sensitivity) return;
  for (const Group& group : rows.all)
    if (group.sites != 1) refuse(segment.residual_package, "the sites of its groups have derivatives in parameters");
  const std::string& package = segment.parameter_sensitivity->operator_package;
  if (package.empty())
    refuse(segment.residual_package, "its derivatives with respect to parameters are of an old form");
  Places matrices;
  links.back().operators.push_back(run_of(package, operands, matrices));
  if (matrices.size() != 2) refuse(package, "its kernel returns other blocks");
  const std::int64_t width = matrices[1].components / std::max<std::int64_t>(rows.size, 1);
  std::map<std::string, std::int64_t> columns;
  for (const artifact::Pair& pair : segment.parameter_sensitivity->pairs) columns[pair.input] = pair.column;
  for (const auto& [name, column] : columns)
    links.back().locals.push_back(
        {"", name, true, 0, matrices[1].at + column, width, rows.size, parameter(name).components});
}

}  // namespace neml2_capi::kernels
