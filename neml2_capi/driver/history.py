"""History of a driven model: forces, states and parameters of each increment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.tensor import Tensor
from neml2_capi.driver.control import Control
from neml2_capi.driver.forces import Force, Table
from neml2_capi.driver.given import Given
from neml2_capi.driver.series import Roles, Series

if TYPE_CHECKING:
    from neml2_capi.model import Model

#: Of the first step: what passes if a law has no value at rest.
MOMENT = 1e-9


class History:
    """The increments that were made, in order, and what the model was given in each.

    Increment k leads from node k - 1 to node k; node 0 is the initial state. Points are in a row.
    """

    def __init__(
        self,
        model: Model,
        roles: Roles,
        forces: Mapping[str, Force],
        initial: Mapping[str, Given],
        parameters: Mapping[str, Given],
        batch: tuple[int, ...],
        control: Control | None,
        clock: Table,
    ) -> None:
        """Keep what is given: derivatives are asked for later, and a caller's arrays can change."""
        for force in (clock, *forces.values()):
            force.keep()
        initial = {name: each._replace(value=each.value.copy()) for name, each in initial.items()}
        self.model, self.roles, self.forces, self.initial = model, roles, forces, initial
        self.control, self.clock, self.batch = control, clock, batch
        self.points = int(np.prod(batch))
        stored = model.named_parameters()
        self.given_parameters = {each.variable.name: each for each in parameters.values()}
        #: The values that parameters had, (points or nothing, *shape).
        self.parameters = {
            v.name: self._row(
                self.given_parameters[v.name].value
                if v.name in self.given_parameters
                else np.asarray(Tensor(stored[v.name])),
                v.point_shape,
            ).astype(v.dtype, copy=False)
            for v in model.parameters
        }
        #: The step of each node, and the fraction of it that has passed.
        self.nodes: list[tuple[int, float]] = []
        #: For each time, its node.
        self.whole: Array = np.empty(0, int)
        self._values: dict[str, Array] = {}

    @property
    def is_solved(self) -> bool:
        """Whether the model is evaluated at the first time as in any step."""
        return not self.roles.series

    @property
    def recorded(self) -> list[str]:
        """Names of the variables to record: the state, and what a control finds."""
        outputs = self.model.outputs.index_of
        remembered = [s.name for s in self.roles.series if s.name in outputs]
        found = [self.control.output.name, self.control.input.name] if self.control else []
        return list(dict.fromkeys([*remembered, *self.roles.guesses, *found]))

    @property
    def found(self) -> str:
        """The input whose components a control finds; "" if there is none."""
        return self.control.input.name if self.control else ""

    def keep(
        self, rows: Mapping[str, Array], inner: Sequence[tuple[int, float, Mapping[str, Array]]]
    ) -> None:
        """Copy what was recorded at the times, and at the ends of increments between them."""
        steps = self.clock.steps
        at = np.concatenate([[step for step, _, _ in inner], np.arange(steps)]).astype(int)
        ends = np.concatenate([[end for _, end, _ in inner], np.ones(steps)])
        order = np.lexsort((ends, at))
        self.nodes = list(zip(at[order].tolist(), ends[order].tolist(), strict=True))
        self.whole = np.flatnonzero(ends[order] == 1.0)
        for name, recorded in rows.items():
            size = int(np.prod(recorded.shape[1 + len(self.batch) :]))
            flat = np.array(recorded).reshape(steps, self.points, size)
            if inner:
                between = [values[name].reshape(self.points, size) for _, _, values in inner]
                flat = np.concatenate([np.stack(between), flat])[order]
            self._values[name] = flat

    def inputs(
        self, first: int, last: int, points: slice, *, rest: bool = False
    ) -> dict[str, Array]:
        """The inputs of increments `first` to `last` - 1, (nodes, points, *shape) each.

        At `rest`, nothing has happened since the node before.
        """
        given = {}
        for variable in self.model.inputs:
            series, age = self._series(variable.name)
            if series:
                since = age - 1 if rest and age else age
                values = self.at_nodes(series, first, last, points, since)
            elif variable.name in self.roles.guesses:  # which is what it leads to
                values = self._values[variable.name][first:last, points]
            else:
                values = self._force(variable.name, first, last, points)
            shape = (last - first, values.shape[1], *variable.point_shape)
            given[variable.name] = np.ascontiguousarray(values.reshape(shape), variable.dtype)
        return given

    def at_rest(self, points: slice, fraction: float) -> dict[str, Array]:
        """The inputs at the first time, when this fraction of the first step has passed."""
        given = self.inputs(0, 1, points, rest=True)
        rows = self.clock.rows
        for name, force in self.forces.items():
            if force is self.clock:
                time = rows[0] + fraction * (rows[min(1, len(rows) - 1)] - rows[0])
                row = np.broadcast_to(self._row(np.asarray(time), ()), (self.points,))
                given[name] = row[None, points].astype(given[name].dtype)
        return given

    def _series(self, name: str) -> tuple[Series | None, int]:
        """The series whose member an input is, and its age."""
        for series in self.roles.series:
            if name in series.ages[1:]:
                return series, series.ages.index(name)
            if name == series.name and name not in self.roles.guesses:
                return series, 0
        return None, 0

    def at_nodes(self, series: Series, first: int, last: int, points: slice, age: int) -> Array:
        """The values of a series, (nodes, points, size), `age` nodes before each of some."""
        begin, end = first - age, last - age
        known = max(begin, 0)
        rows = [self._current(series.name, known, max(end, known), points)]
        for node in range(begin, min(0, end)):
            rows.insert(node - begin, self._before(series, -node, points))
        return np.concatenate(rows) if len(rows) > 1 else rows[0]

    def _current(self, name: str, first: int, last: int, points: slice) -> Array:
        if name in self._values and (name == self.found or name not in self.forces):
            return self._values[name][first:last, points]
        return self._force(name, first, last, points)

    def _before(self, series: Series, age: int, points: slice) -> Array:
        """The values so many steps before the first time, one row."""
        value = self._current(series.name, 0, 1, points)
        for newer, _ in pairwise(series.ages[1 : age + 2]):
            if newer in self.initial:
                given = self.initial[newer]
                value = self._row(given.value, given.variable.point_shape).reshape(
                    -1, value.shape[2]
                )[None]
                value = np.broadcast_to(value, (1, self.points, value.shape[2]))[:, points]
        return value

    def _force(self, name: str, first: int, last: int, points: slice) -> Array:
        if name == self.found:
            return self._values[name][first:last, points]
        force = self.forces[name]
        nodes = self.nodes[first:last]
        size = int(np.prod(force.shape))
        if force.constant:
            rows = force.at(0, 1.0)[None]
        elif nodes and len(self.whole) == len(self.nodes):
            rows = force.ends(nodes[0][0], len(nodes))
        else:
            rows = np.stack([force.at(step, end) for step, end in nodes] or [force.at(0, 1.0)])
        missing = (1,) * (len(self.batch) - len(force.batch))
        rows = rows.reshape(len(rows), *missing, *force.batch, size)
        rows = np.broadcast_to(rows, (len(nodes), *self.batch, size))
        at_nodes: Array = rows.reshape(len(nodes), self.points, size)[:, points]
        return at_nodes

    def _row(self, value: Array, shape: tuple[int, ...]) -> Array:
        """A copy of a value with its points in a row; of one value for all, (1, *shape)."""
        own = value.shape[: value.ndim - len(shape)]
        if int(np.prod(own)) == 1:
            return np.array(value.reshape(1, *shape))
        return np.array(np.broadcast_to(value, self.batch + shape).reshape(self.points, *shape))
