"""Derivatives of a driven history, forward and backward through its increments.

A is the derivative of the state z after an increment with respect to the state before, and B with
respect to the constants c. Forward, dz_k = A_k dz_(k-1) + B_k dc, with all columns of dc at once.
Backward, l_(k-1) = A_k^T l_k + ..., and dL/dc = sum B_k^T l_k, for one number L. If the library
carries derivatives forward, gradients by constants alone are sums of these, too: it takes less than
matrices of all increments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from neml2_capi._ffi.errors import unknown_name
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import lib
from neml2_capi.driver.asked import Asked, asked, summed
from neml2_capi.driver.forces import Table
from neml2_capi.driver.history import History
from neml2_capi.driver.linearized import Linearized
from neml2_capi.driver.slopes import (
    NotCarriedError,
    Slopes,
    age_of,
    carried,
    state_of,
    stepped,
)

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
        wanted.sort(key=lambda each: each.kind, reverse=True)  # parameters first
        linear = Linearized(history, outputs, [c for each in wanted for c in each.columns])
        found = {
            (o, each.name): np.zeros(
                (len(history.whole), history.points, _size(linear, o), each.size)
            )
            for o in outputs
            for each in wanted
        }

        def take(slopes: Slopes) -> None:
            begin, end = np.searchsorted(history.whole, [slopes.first, slopes.last])
            for key, values in found.items():
                nodes = history.whole[begin:end] - slopes.first
                values[begin:end, slopes.points] = slopes.by[key][nodes]

        try:
            for slopes in carried(linear, outputs, wanted, memory):
                take(slopes)
        except NotCarriedError:
            for slopes in stepped(linear, outputs, wanted, memory):
                take(slopes)
        return {o: {e.name: self._shaped(o, found[o, e.name], e) for e in wanted} for o in outputs}

    def backward(
        self, cotangents: Mapping[str, Array], names: Iterable[str], memory: int = MEMORY
    ) -> dict[str, Array]:
        """Gradients of sum(cotangent * output), by name, in the shapes of what was given."""
        history = self._history
        wanted = [self._asked(name) for name in names]
        columns = [column for each in wanted for column in each.columns]
        linear = Linearized(history, list(cotangents), columns)
        size, nodes = linear.state_size, len(history.nodes)
        if all(each.kind in ("parameter", "initial") for each in wanted):
            try:
                return self._by_constants(linear, cotangents, wanted, memory)
            except NotCarriedError:
                pass
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
    # By constants
    # ------------------------------------------------------------------------------------------

    def _shaped(self, output: str, values: Array, each: Asked) -> Array:
        """Derivatives by a constant in the shapes of the output and of it."""
        history = self._history
        variables = {v.name: v for v in (*history.model.inputs, *history.model.outputs)}
        variable = variables[output]
        shape = (len(values), *history.batch, *variable.point_shape, *each.shape)
        return values.reshape(shape).astype(variable.dtype, copy=False)

    def _by_constants(
        self, linear: Linearized, cotangents: Mapping[str, Array], wanted: list[Asked], memory: int
    ) -> dict[str, Array]:
        """Gradients from derivatives of all outputs that have cotangents, which are not kept."""
        history = self._history
        # The sum over all points of one value is one product with a vector.
        one = {each.name: math.prod(each.batch) == 1 for each in wanted}
        sums = {
            each.name: np.zeros((1 if one[each.name] else history.points, each.size))
            for each in wanted
        }
        for slopes in carried(linear, list(cotangents), wanted, memory):
            begin, end = np.searchsorted(history.whole, [slopes.first, slopes.last])
            nodes = history.whole[begin:end] - slopes.first
            for output, cotangent in cotangents.items():
                size = _size(linear, output)
                weights = cotangent[begin:end].reshape(end - begin, history.points, size)
                weights = np.ascontiguousarray(weights[:, slopes.points])
                for each in wanted:
                    by = slopes.by[output, each.name]
                    by = by if len(nodes) == len(by) else by[nodes]
                    if one[each.name]:
                        sums[each.name] += weights.reshape(-1) @ by.reshape(weights.size, each.size)
                    else:
                        sums[each.name][slopes.points] += np.einsum("npr,nprc->pc", weights, by)
        return {each.name: self._summed(sums[each.name], each) for each in wanted}

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
            size = _size(linear, output)
            rows = cotangent[begin:end].reshape(end - begin, self._history.points, size)
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
                elif not any(
                    f"{each.variable}~{-n}" in self._history.initial for n in range(node, 0)
                ):
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
        found = self._history.found
        for each in wanted:  # a force whose components a control finds, and which is no state
            if each.kind == "force" and each.variable == found in cotangents and each.columns:
                given = np.arange(linear.row_count)[linear.rows[found]][list(each.columns[0].parts)]
                over_time[each.name][0, points] += weights[:, given]
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
            rows = rows.reshape((*rows.shape[:-1], *each.shape)).astype(model._dtype, copy=False)
            assert isinstance(each.force, Table)
            return rows[0, ...] if each.force.alone else rows
        if each.kind == "parameter":
            place = linear.places[linear.columns.index(each.columns[0])]
            values = constants[:, place.start - linear.state_size : place.stop - linear.state_size]
        else:
            name, age = age_of(each.variable)
            values = starts[:, linear.places[state_of(linear, name, age)]]
        return self._summed(values, each)

    def _summed(self, values: Array, each: Asked) -> Array:
        """A gradient by a constant, (points, size), in the shape of what was given."""
        batch = self._history.batch
        if len(values) != 1:
            values = summed(values.reshape(*batch, each.size), batch, each.batch)
        shaped = values.reshape((*each.batch, *each.shape))
        return shaped.astype(self._history.model._dtype, copy=False)

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
