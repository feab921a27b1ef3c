"""Derivatives of a driven history, forward and backward through its increments.

A is the derivative of the state z after an increment with respect to the state before, and B with
respect to the constants c. Forward, dz_k = A_k dz_(k-1) + B_k dc, with all columns of dc at once.
Backward, l_(k-1) = A_k^T l_k + ..., and dL/dc = sum B_k^T l_k, for one number L.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from neml2_capi._ffi.errors import unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array, Label
from neml2_capi.driver.asked import Asked, asked, summed
from neml2_capi.driver.history import History
from neml2_capi.driver.linearized import Linearized

#: The bytes that matrices of increments take at a time.
MEMORY = 1 << 25


class Gradients:
    """Derivatives of a history by the variables that were asked for."""

    def __init__(self, history: History, names: Iterable[str]) -> None:
        """FatalError if a name is unknown, or the artifact lacks a derivative."""
        self._history = history
        self.asked = {name: asked(history, name) for name in names}
        Linearized(history, (), [c for each in self.asked.values() for c in each.columns])

    @property
    def outputs(self) -> list[str]:
        """The names of what derivatives may be of: outputs, and what a control found."""
        found = [self._history.found] if self._history.found else []
        return [*self._history.model.outputs.names, *found]

    @property
    def constants(self) -> list[str]:
        """The names of what is constant: parameters and initial values."""
        return [a.name for a in self.asked.values() if a.kind in ("parameter", "initial")]

    def forward(
        self, outputs: Iterable[str], names: Iterable[str], memory: int = MEMORY
    ) -> dict[str, dict[str, Array]]:
        """Derivatives (n, *B, *output, *constant) by output and by the name of a constant."""
        history, outputs = self._history, list(outputs)
        wanted = [self._constant(name) for name in names]
        parameters = [each for each in wanted if each.kind == "parameter"]
        linear = Linearized(history, outputs, [c for each in parameters for c in each.columns])
        size, count = linear.state_size, linear.width - linear.state_size
        starts = [_starting(linear, each, history) for each in wanted if each.kind == "initial"]
        width = count + sum(start.shape[1] for start in starts)
        times = len(history.whole)
        found = {o: np.zeros((times, history.points, _size(linear, o), width)) for o in outputs}
        at_time = {int(node): time for time, node in enumerate(history.whole)}
        at_first = np.concatenate([np.zeros((size, count)), *starts], axis=1)
        for points, blocks in linear.blocks(memory):
            slopes = np.repeat(at_first[None], points.stop - points.start, axis=0)
            if not history.is_solved:
                self._first(linear, found, slopes, points, count)
            for block in blocks:
                for number in range(block.last - block.first):
                    matrices = block.matrices[number]
                    rows = matrices[:, :, :size] @ slopes
                    rows[:, :, :count] += matrices[:, :, size:]
                    older = slopes[:, linear.ageing[0]]
                    slopes[:, linear.state_places] = rows[:, linear.state_rows]
                    if older.size:
                        slopes[:, linear.ageing[1]] = older
                    time = at_time.get(block.first + number)
                    if time is not None:
                        for output in outputs:
                            found[output][time, points] = rows[:, linear.rows[output]]
        return {output: self._named(output, found[output], wanted) for output in outputs}

    def backward(
        self, cotangents: Mapping[str, Array], names: Iterable[str], memory: int = MEMORY
    ) -> dict[str, Array]:
        """Gradients of sum(cotangent * output), by name, in the shapes of what was given."""
        history = self._history
        wanted = [self._asked(name) for name in names]
        columns = [column for each in wanted for column in each.columns]
        linear = Linearized(history, list(cotangents), columns)
        size, nodes = linear.state_size, len(history.nodes)
        constants = np.zeros((history.points, linear.width - size))
        over_time = {
            each.name: np.zeros((nodes, history.points, each.size))
            for each in wanted
            if each.kind in ("force", "target")
        }
        starts = np.zeros((history.points, size))
        for points, blocks in linear.blocks(memory, backward=True):
            adjoint = np.zeros((points.stop - points.start, size))
            for block in blocks:
                weights = self._weights(linear, cotangents, block.first, block.last, points)
                by_state = block.matrices[..., :size]
                for number in range(block.last - block.first - 1, -1, -1):
                    row = weights[number]
                    row[:, linear.state_rows] += adjoint[:, linear.state_places]
                    before = (row[:, None] @ by_state[number])[:, 0]
                    if linear.ageing[0].size:
                        before[:, linear.ageing[0]] += adjoint[:, linear.ageing[1]]
                    adjoint = before
                products = (weights[:, :, None] @ block.matrices[..., size:])[:, :, 0]
                constants[points] += products.sum(axis=0)
                for each in wanted:
                    if each.name in over_time:
                        self._spread(linear, each, products, block.first, points, over_time)
            if not history.is_solved:
                self._last(linear, cotangents, adjoint, points, constants, over_time, wanted)
                starts[points] = adjoint
        return {
            each.name: self._gathered(linear, each, constants, starts, over_time) for each in wanted
        }

    # ------------------------------------------------------------------------------------------
    # Names
    # ------------------------------------------------------------------------------------------

    def _asked(self, name: str) -> Asked:
        if name not in self.asked:
            raise unknown_name("derivative that was asked for", name, self.asked)
        return self.asked[name]

    def _constant(self, name: str) -> Asked:
        each = self._asked(name)
        if each.kind not in ("parameter", "initial"):
            raise Label("derivatives", name).refuse(
                "is prescribed over time: a derivative by it has two axes of times. Take "
                "gradient(), of a number",
                lib.NEML2_ERROR_ARGUMENT,
            )
        return each

    # ------------------------------------------------------------------------------------------
    # Forward
    # ------------------------------------------------------------------------------------------

    def _first(
        self,
        linear: Linearized,
        found: Mapping[str, Array],
        slopes: Array,
        points: slice,
        count: int,
    ) -> None:
        """The derivatives at the first time."""
        size, initial = linear.state_size, set(linear.state_rows.tolist())
        by_row = dict(zip(linear.state_rows.tolist(), linear.state_places.tolist(), strict=True))
        rest: Array | None = None
        for output, values in found.items():
            rows = range(*linear.rows[output].indices(linear.row_count))
            if set(rows) <= initial:
                values[0, points] = slopes[:, [by_row[row] for row in rows]]
            elif output != self._history.found:
                if rest is None:
                    matrices = linear.at_rest(points)
                    rest = matrices[:, :, :size] @ slopes
                    rest[:, :, :count] += matrices[:, :, size:]
                values[0, points] = rest[:, linear.rows[output]]

    def _named(self, output: str, values: Array, wanted: Iterable[Asked]) -> dict[str, Array]:
        """The columns of each constant, in the shapes of the output and of it."""
        history, named, first = self._history, {}, 0
        variables = {v.name: v for v in (*history.model.inputs, *history.model.outputs)}
        variable = variables[output]
        for kind in ("parameter", "initial"):
            for each in wanted:
                if each.kind == kind:
                    last = first + each.size
                    shape = (len(values), *history.batch, *variable.point_shape, *each.shape)
                    part = values[..., first:last].reshape(shape)
                    named[each.name] = part.astype(variable.dtype, copy=False)
                    first = last
        return named

    # ------------------------------------------------------------------------------------------
    # Backward
    # ------------------------------------------------------------------------------------------

    def _weights(
        self,
        linear: Linearized,
        cotangents: Mapping[str, Array],
        first: int,
        last: int,
        points: slice,
    ) -> Array:
        """The cotangents of the rows of some nodes, zero between the times."""
        whole = self._history.whole
        weights = np.zeros((last - first, points.stop - points.start, linear.row_count))
        begin, end = np.searchsorted(whole, [first, last])
        for output, cotangent in cotangents.items():
            rows = cotangent[begin:end].reshape(end - begin, self._history.points, -1)
            weights[whole[begin:end] - first, :, linear.rows[output]] = rows[:, points]
        return weights

    def _spread(
        self,
        linear: Linearized,
        each: Asked,
        products: Array,
        first: int,
        points: slice,
        over_time: Mapping[str, Array],
    ) -> None:
        """Add what increments say of a force to the nodes at which it has its value."""
        target, size = over_time[each.name], linear.state_size
        for column in each.columns:
            place = linear.places[linear.columns.index(column)]
            part = products[..., place.start - size : place.stop - size]
            for number in range(len(part)):
                node = first + number - column.age
                if node >= 0:
                    target[node, points] += part[number]
                elif f"{each.variable}~{-node}" not in self._history.initial:
                    target[0, points] += part[number]

    def _last(
        self,
        linear: Linearized,
        cotangents: Mapping[str, Array],
        adjoint: Array,
        points: slice,
        constants: Array,
        over_time: Mapping[str, Array],
        wanted: Iterable[Asked],
    ) -> None:
        """Add what the results at the first time say, and fold values that were the same there."""
        size = linear.state_size
        weights = self._weights(linear, cotangents, 0, 1, points)[0]
        adjoint[:, linear.state_places] += weights[:, linear.state_rows]
        weights[:, linear.state_rows] = 0.0
        if weights.any():
            matrices = linear.at_rest(points)
            products = np.einsum("pr,prc->pc", weights, np.where(weights[..., None], matrices, 0))
            adjoint += products[:, :size]
            constants[points] += products[:, size:]
            for each in wanted:
                if each.name in over_time:
                    self._spread(linear, each, products[None, :, size:], 0, points, over_time)
        for column, place in reversed(list(zip(linear.columns, linear.places, strict=True))):
            older = f"{column.name}~{column.age}"
            if column.kind == "state" and column.age and older not in self._history.initial:
                newer = linear.columns.index(column._replace(age=column.age - 1))
                adjoint[:, linear.places[newer]] += adjoint[:, place]
                adjoint[:, place] = 0.0
        for each in wanted:  # a force whose components a control finds, and which is remembered
            column = each.columns[0]._replace(kind="state") if each.columns else None
            if each.kind == "force" and each.variable == self._history.found and column:
                for state, place in zip(linear.columns, linear.places, strict=True):
                    if (state.kind, state.name, state.age) == ("state", each.variable, 0):
                        parts = [place.start + part for part in column.parts]
                        over_time[each.name][0, points] += adjoint[:, parts]

    def _gathered(
        self,
        linear: Linearized,
        each: Asked,
        constants: Array,
        starts: Array,
        over_time: Mapping[str, Array],
    ) -> Array:
        """A gradient in the shape of what was given."""
        batch, model = self._history.batch, self._history.model
        if each.kind in ("force", "target"):
            rows = self._at_times(over_time[each.name], each) * each.factor
            rows = rows.reshape(len(rows), *batch, each.size)
            rows = summed(rows, batch, each.batch)
            return rows.reshape((*rows.shape[:-1], *each.shape)).astype(model._dtype, copy=False)
        if each.kind == "parameter":
            place = linear.places[linear.columns.index(each.columns[0])]
            values = constants[:, place.start - linear.state_size : place.stop - linear.state_size]
        else:
            name, age = _age(each.variable)
            values = starts[:, linear.places[_state(linear, name, age)]]
        values = summed(values.reshape(*batch, each.size), batch, each.batch)
        return values.reshape((*each.batch, *each.shape)).astype(model._dtype, copy=False)

    def _at_times(self, nodes: Array, each: Asked) -> Array:
        """Gradients by the values at nodes as ones by the rows that were given."""
        assert each.force is not None
        if each.force.constant:
            return np.asarray(nodes.sum(axis=0, keepdims=True))
        steps = self._history.clock.steps
        if steps == len(nodes):
            return nodes
        rows = np.zeros((steps, *nodes.shape[1:]))
        for node, (step, end) in zip(nodes, self._history.nodes, strict=True):
            rows[step] += end * node
            if end < 1.0:
                rows[step - 1] += (1.0 - end) * node
        return rows


def _size(linear: Linearized, output: str) -> int:
    rows = linear.rows[output]
    return int(rows.stop - rows.start)


def _age(name: str) -> tuple[str, int]:
    base, _, age = name.partition("~")
    return base, int(age or 0)


def _state(linear: Linearized, name: str, age: int) -> int:
    """The place of a state among the columns."""
    return next(
        number
        for number, column in enumerate(linear.columns)
        if (column.kind, column.name, column.age) == ("state", name, age)
    )


def _starting(linear: Linearized, each: Asked, history: History) -> Array:
    """Return the derivative of the first state by an initial value, (state, size)."""
    name, age = _age(each.variable)
    start = np.zeros((linear.state_size, each.size))
    while any(c[:3] == ("state", name, age) for c in linear.columns):
        start[linear.places[_state(linear, name, age)]] = np.eye(each.size)
        age += 1
        if f"{name}~{age}" in history.initial:
            break
    return start
