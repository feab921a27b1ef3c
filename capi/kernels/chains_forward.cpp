#include <algorithm>
#include <utility>

#include "capi/kernels/chains.h"

namespace neml2_capi::kernels {

Rows Chains::add_free(const Condensation& of, std::int64_t begin, std::int64_t count) {
  const artifact::Pair& pair = inputs_.pairs[static_cast<std::size_t>(of.tangent)];
  if (direct_) return {block_of(pair) + begin, layout_.value(pair.input).components};
  free_.count = count;
  free_.of_values[pair.input] = {nowhere, 0, begin, count};
  Names all;
  for (const auto& output : metadata_.outputs) all.insert(output.name);
  push_forward(free_, &Step::of_free, std::move(all));
  const auto made = free_.of_values.find(pair.output);
  if (made == free_.of_values.end() || made->second.at == nowhere)
    refuse(pair.output, "it does not depend on the strain");
  return {made->second.at, count};
}

std::vector<Chains::Names> Chains::read_of_segments(Names read) const {
  std::vector<Names> of_segments(layout_.links.size());
  for (std::size_t i = of_segments.size(); i-- > 0;) {
    const Links& links = layout_.links[i];
    Names& made = of_segments[i];
    const auto take = [&](const std::string& name) {
      if (read.erase(name) > 0) made.insert(name);
    };
    for (const Local& local : links.locals) take(local.output);
    for (const Part& unknown : links.unknowns) take(unknown.name);
    for (const Local& local : links.locals)
      if (!local.of_parameter && is_needed(links, local, made)) read.insert(local.input);
  }
  return of_segments;
}

void Chains::push_forward(Plan& plan, const Chain* Step::*chain, Names read) {
  const std::int64_t count = plan.count;
  const std::vector<Names> of_segments = read_of_segments(std::move(read));
  plan.pushed.resize(layout_.links.size());
  for (std::size_t i = 0; i < layout_.links.size(); ++i) {
    const Links& links = layout_.links[i];
    Pushed& pushed = plan.pushed[i];
    std::map<std::string, Direction> made;
    for (const Local& local : links.locals) {
      const Direction direction = direction_of(local.input, local.of_parameter ? plan.of_parameters : plan.of_values);
      if (direction.zero() || local.rows == 0 || !is_needed(links, local, of_segments[i])) continue;
      const At room = rooms_[i].at(local.output);
      const std::size_t before = pushed.products.size();
      push(local, direction, count, room, pushed.products);
      if (pushed.products.size() == before) continue;
      if (!links.system && made[local.output].zero()) {
        made[local.output] = {room};
        pushed.zeros.push_back({nowhere, room, local.rows * count});
      }
    }
    if (links.system) push_through(links, rooms_[i], count, pushed, made);
    if (pushed.chain.system && !links.roles.empty()) push_in_parts(plan, i, made, pushed);
    for (const std::string& name : links.outputs) plan.of_values.erase(name);  // another value had the name before
    for (const auto& [name, direction] : made) plan.of_values[name] = direction;
    pushed.chain.operators = list(links.operators);
    for (const Move& move : links.expand)
      if (is_read(move, pushed.products) || is_read(move, pushed.of_parts)) pushed.expand.push_back(move);
    pushed.chain.expand = list(pushed.expand);
    pushed.chain.zeros = list(pushed.zeros);
    pushed.chain.products = list(pushed.products);
    pushed.chain.unpack = list(pushed.unpack);
    pushed.chain.count = count;
    const bool is_empty = !links.system && links.operators.empty() && pushed.products.empty();
    layout_.steps[i].*chain = is_empty ? nullptr : &pushed.chain;
  }
}

bool Chains::is_read(const Move& move, const std::vector<Product>& products) {
  return std::ranges::any_of(products, [&](const Product& product) {
    const At end = product.block + (product.rows - 1) * product.stride + product.columns;
    return product.block < move.to + move.components && move.to < end;
  });
}

void Chains::push(const Local& local, const Direction& direction, std::int64_t count, At room,
                  std::vector<Product>& products) {
  const std::int64_t begin = std::max(local.column, direction.begin),
                     end = std::min(local.column + local.columns, direction.begin + direction.count),
                     columns = direction.first < 0 ? 0 : end - begin;
  const auto add = [&](std::int64_t column, std::int64_t width, At at, std::int64_t first) {
    products.push_back(
        {local.block + column - local.column, local.stride, local.rows, width, at, first, room + local.row * count});
  };
  if (direction.at != nowhere) add(local.column, local.columns, direction.at + local.column * count, 0);
  if (columns > 0) add(begin, columns, nowhere, direction.first + begin - direction.begin);
}

void Chains::push_in_parts(const Plan& plan, std::size_t i, const std::map<std::string, Direction>& made,
                           Pushed& pushed) {
  using Role = artifact::Substep::Role;
  const Links& links = layout_.links[i];
  const auto& rooms = rooms_of_parts_[i];
  std::map<std::string, Direction> of_values = plan.of_values;
  for (const artifact::Substep& given : links.roles) {
    const Direction own = direction_of(given.name, plan.of_values),
                    partner = direction_of(given.partner, plan.of_values);
    const std::int64_t size = layout_.value(given.name).components;
    const auto [to, other] = rooms.at(given.name);
    const auto spread = [&](std::vector<Spread>& list, const Direction& direction, At at) {
      list.push_back(
          {direction.at, at, size, direction.begin, direction.first < 0 ? 0 : direction.count, direction.first});
    };
    const bool is_force = given.role == Role::old_force || given.role == Role::force;
    if (given.role != Role::old_state && own.zero() && (partner.zero() || !is_force)) continue;
    of_values[given.name] = {to};
    if (given.role == Role::old_state) {
      spread(pushed.begins, own, to);
      pushed.states.push_back({made.at(given.partner).at, to, size * plan.count});
      continue;
    }
    spread(pushed.spreads, own, to);
    if (is_force) spread(pushed.spreads, partner, other);
    pushed.moving.push_back(is_force ? between(given, to, other, {to, size})
                                     : Between{nowhere, to, Between::Place::width, to, size});
  }
  for (const Local& local : links.locals)
    if (local.rows > 0)
      push(local, direction_of(local.input, local.of_parameter ? plan.of_parameters : of_values), plan.count,
           rooms_[i].at(""), pushed.of_parts);
  pushed.chain.parts = {list(pushed.begins),   list(pushed.spreads), list(pushed.moving),
                        list(pushed.of_parts), list(pushed.states),  rooms.at("").own};
}

void Chains::find_columns(const Implicit& system, std::int64_t count, Pushed& pushed) const {
  std::vector<Column> columns(static_cast<std::size_t>(count));
  std::int64_t found = 0;
  for (const Product& product : pushed.products) {
    if (product.from != nowhere || product.rows != system.unknowns) return;
    for (std::int64_t k = 0; k < product.columns; ++k, ++found)
      columns[static_cast<std::size_t>(product.first + k)] = {product.block + k, product.stride};
  }
  const bool has_all = std::ranges::none_of(columns, [](const Column& column) { return column.at == nowhere; });
  if (!has_all || found != count) return;
  pushed.columns = std::move(columns);
  pushed.chain.columns = list(pushed.columns);
  pushed.chain.is_of_scalars = std::ranges::all_of(pushed.columns, [&](const Column& column) {
    return layout_.is_of_scalars(column.at, column.stride, system.unknowns);
  });
}

void Chains::push_through(const Links& links, const std::map<std::string, At>& rooms, std::int64_t count,
                          Pushed& pushed, std::map<std::string, Direction>& made) const {
  const At room = rooms.at("");
  for (const Part& part : links.unknowns) {
    Direction& direction = made[part.name];
    if (pushed.products.empty()) continue;
    direction.at = room + part.first * count;
    if (part.is_whole()) continue;
    const At to = rooms.at(part.name);
    for (std::int64_t k = 0; k < part.pieces; ++k)
      pushed.unpack.push_back({direction.at + k * part.apart * count, to + k * part.piece * count, part.piece * count});
    direction.at = to;
  }
  if (pushed.products.empty()) return;
  pushed.zeros.push_back({nowhere, room, links.system->unknowns * count});
  pushed.chain.system = links.system;
  pushed.chain.right = room;
  find_columns(*links.system, count, pushed);
  if (const auto solved = rooms.find(" "); solved != rooms.end()) pushed.chain.solved = solved->second;
}

}  // namespace neml2_capi::kernels
