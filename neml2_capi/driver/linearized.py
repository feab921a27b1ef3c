"""A driven model, linear around what it did: what each increment makes of what it is given.

The rows of a matrix are the components of outputs and, if a control finds components of an input,
of that input. Its columns are the state before the increment, and what derivatives are asked by. A
control's components are eliminated by the implicit function theorem: with the outputs s(e, c) and
found components e, of which the prescribed s_f stay, de = -(ds_f/de)^-1 ds_f/dc dc.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import ConvergenceError, FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.driver.history import MOMENT, History
from neml2_capi.model.places import Places


class Column(NamedTuple):
    """Group of columns: the derivatives by one variable."""

    #: "state", "parameter", "force" or "target".
    kind: str
    #: Of the parameter or the variable.
    name: str
    #: How many steps before, of a state or a force.
    age: int
    #: The components of it, as they are stored.
    parts: tuple[int, ...]


class Block(NamedTuple):
    """Matrices of the increments `first` to `last` - 1, at some points."""

    first: int
    last: int
    #: (increments, points, rows, columns)
    matrices: Array


class Linearized:
    """The matrices of the increments of a history, a block of them at a time."""

    def __init__(self, history: History, outputs: Sequence[str], columns: Sequence[Column]) -> None:
        """`outputs` are those that are wanted, and `columns` what derivatives are by."""
        self.history, model = history, history.model
        found = history.found
        remembered = [s for s in history.roles.series if s.name in model.outputs.index_of]
        remembered += [s for s in history.roles.series if s.name == found]
        names = [s.name for s in remembered if s.name != found]
        if history.control:
            names.append(history.control.output.name)
        self.outputs = list(dict.fromkeys([*names, *(o for o in outputs if o != found)]))
        sizes = {v.name: math.prod(v.point_shape) for v in (*model.inputs, *model.outputs)}
        #: The rows of each output, and of the found input.
        self.rows: dict[str, slice] = {}
        count = 0
        for name in [*self.outputs, *([found] if found else [])]:
            self.rows[name] = slice(count, count + sizes[name])
            count += sizes[name]
        self.row_count = count
        self.output_count = count - (sizes[found] if found else 0)
        states = [
            Column("state", s.name, age, tuple(range(sizes[s.name])))
            for s in remembered
            for age in range(s.depth)
        ]
        #: All columns, the state first; and where each begins and ends.
        self.columns = [*states, *columns]
        ends = np.cumsum([0, *(len(column.parts) for column in self.columns)])
        self.places = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.width, self.state_size = int(ends[-1]), int(ends[len(states)])
        #: The rows of the outputs that become the state, and where they stand in it.
        fresh = [place for place, c in enumerate(states) if c.age == 0]
        self.state_rows = _indices([self.rows[states[place].name] for place in fresh])
        self.state_places = _indices([self.places[place] for place in fresh])
        #: Parts of the state that become one step older: from, to.
        older = [place for place, c in enumerate(states) if c.age > 0]
        self.ageing = (
            _indices([self.places[place - 1] for place in older]),
            _indices([self.places[place] for place in older]),
        )
        self._bound: dict[tuple[int, int], _Bound] = {}
        self._require_compiled()

    def blocks(
        self, memory: int, *, backward: bool = False
    ) -> Iterator[tuple[slice, Iterator[Block]]]:
        """For some points at a time their blocks in order of time, each of `memory` bytes."""
        first = 0 if self.history.is_solved else 1
        nodes = len(self.history.nodes)
        each = 8 * 4 * (self.row_count + 1) * (self.width + 8)
        room = max(1, memory // each)
        at_once = max(1, min(self.history.points, room // min(nodes, 64)))
        long = max(1, room // at_once)
        for begin in range(0, self.history.points, at_once):
            points = slice(begin, min(begin + at_once, self.history.points))
            starts = range(first, nodes, long)
            ordered = reversed(starts) if backward else starts
            ends = [(start, min(start + long, nodes)) for start in ordered]
            yield points, (self._block(*each, points) for each in ends)

    def at_rest(self, points: slice) -> Array:
        """The matrices of outputs at the first time, (points, rows, columns); NaN if none.

        Components that a control finds stay what they are.
        """
        for fraction in (0.0, MOMENT):
            partial = self._evaluated(self.history.at_rest(points, fraction), points, rest=True)
            matrices = np.zeros((partial.shape[1], self.row_count, self.width))
            matrices[:, : self.output_count] = partial[0, :, :, : self.width]
            if np.isfinite(matrices).all():
                break
        return matrices

    def _block(self, first: int, last: int, points: slice) -> Block:
        partial = self._evaluated(self.history.inputs(first, last, points), points)
        matrices = self._condensed(partial) if self.history.control else partial
        bad = ~np.asarray(np.isfinite(matrices).all(axis=(2, 3)))
        if bad.any():
            node = first + int(np.flatnonzero(bad.any(axis=1))[0])
            step, end = self.history.nodes[node]
            time = self.history.clock.at(step, end)
            point = points.start + int(np.flatnonzero(bad[node - first])[0])
            raise ConvergenceError(
                f"a derivative of step {step} is not finite, at t = {np.ravel(time)[0]:.6g} and "
                f"point {point}, as it may be where a law begins to flow: choose other times",
                lib.NEML2_NON_FINITE,
            )
        return Block(first, last, matrices)

    def _evaluated(self, inputs: dict[str, Array], points: slice, *, rest: bool = False) -> Array:
        """The partial derivatives, (nodes, points, rows, columns and found components).

        They are written over by the next ones of as many nodes and points.
        """
        nodes, count = next(iter(inputs.values())).shape[:2]
        bound = self._bound.get((nodes, count))
        if bound is None:
            bound = self._bound[nodes, count] = _Bound(self, nodes * count)
        bound.put(inputs, points, nodes)
        try:
            bound.call()
        except ConvergenceError:
            if not rest:
                raise
            return np.full((nodes, count, *bound.matrices.shape[1:]), np.nan)
        return bound.gathered().reshape(nodes, count, *bound.matrices.shape[1:])

    def _condensed(self, partial: Array) -> Array:
        """Without found components: the matrices of outputs, and of what is found."""
        control = self.history.control
        assert control is not None
        free, output = control.free, self.rows[control.output.name]
        by_found, others = partial[..., self.width :], partial[..., : self.width]
        prescribed = [output.start + part for part in free]
        right = -others[:, :, prescribed]
        rows = self.rows[self.history.found]
        result = np.zeros((*partial.shape[:2], self.row_count, self.width))
        for column, place in zip(self.columns, self.places, strict=True):
            if column.kind == "target":
                for number, part in enumerate(column.parts):
                    right[:, :, list(free).index(part), place.start + number] += 1.0
            if column == ("force", self.history.found, 0, column.parts):
                for number, part in enumerate(column.parts):
                    result[:, :, rows.start + part, place.start + number] = 1.0
        with np.errstate(invalid="ignore"):
            try:
                found = np.linalg.solve(by_found[:, :, prescribed], right)
            except np.linalg.LinAlgError:
                found = np.full_like(right, np.nan)
        result[:, :, : self.output_count] = others + by_found @ found
        result[:, :, [rows.start + part for part in free]] += found
        return result

    def variable(self, column: Column) -> str:
        """The input or parameter that a column is of; "" for what a control prescribes."""
        if column.kind == "state":
            return f"{column.name}~{column.age + 1}"
        if column.kind == "force":
            return f"{column.name}~{column.age}" if column.age else column.name
        return column.name if column.kind == "parameter" else ""

    def _require_compiled(self) -> None:
        """FatalError unless the artifact has the derivatives, of variables without sites."""
        model = self.history.model
        pairs = (*model.derivatives, *model.parameter_derivatives)
        known = {(d.output, d.variable) for d in pairs}
        by = [self.variable(column) for column in self.columns]
        by += [self.history.found] if self.history.control else []
        for variable in (*model.inputs, *model.outputs):
            if variable.sub_batch_shape and variable.name in (*by, *self.outputs):
                raise FatalError(
                    f"{variable.name!r} has sites, {variable.sub_batch_shape}: derivatives of what "
                    "is driven are there without them alone",
                    lib.NEML2_ERROR_UNSUPPORTED,
                    variable.name,
                )
        missing = [(o, v) for o in self.outputs for v in by if v and (o, v) not in known]
        if missing:
            call = model._engine.new_call()
            places = Places(model._signature, call[0])
            options = " ".join(dict.fromkeys(f"-d {o}:{v}" for o, v in missing))
            try:
                places.at("derivatives", *missing[0])
                told = f"there is no derivative of {missing[0][0]!r} by {missing[0][1]!r}"
            except FatalError as error:
                told = str(error)
            carried = {history.output for history in model.histories}
            free = [o for o in dict.fromkeys(o for o, _ in missing) if o not in carried]
            names = ", ".join(map(repr, free))
            other = f". Or leave {names} out of what is recorded, by record=[...]" if free else ""
            raise FatalError(
                f"{told} A derivative of a whole history takes, beside others: neml2-capi compile "
                f"... {options}{other}",
                lib.NEML2_ERROR_UNSUPPORTED,
                missing[0][1],
            )


class _Bound:
    """A call for so many nodes and points, and where its blocks go."""

    def __init__(self, linear: Linearized, batch: int) -> None:
        history, model = linear.history, linear.history.model
        found = history.control.free if history.control else ()
        width = linear.width
        columns = [
            *zip(linear.columns, linear.places, strict=True),
            (
                Column("force", history.found, 0, tuple(found)),
                slice(width, width + len(found)),
            ),
        ]
        wanted = [
            (linear.variable(column), column.parts, place)
            for column, place in columns
            if column.parts and linear.variable(column)
        ]
        self._history = history
        #: Values of parameters that points do not share, which are put in with the inputs.
        self._parameters = {
            name: np.empty((batch, *value.shape[1:]), value.dtype)
            for name, value in history.parameters.items()
            if len(value) > 1
        }
        shared = {n: v[0] for n, v in history.parameters.items() if n not in self._parameters}
        self._inputs = {
            v.name: np.empty((batch, *v.point_shape), v.dtype) for v in history.model.inputs
        }
        by = {name: True for name, _, _ in wanted}
        self.call = model.bind(
            self._inputs,
            parameters={**shared, **self._parameters},
            derivatives=dict.fromkeys(linear.outputs, by),
        )
        self.matrices = np.zeros((batch, linear.output_count, width + len(found)))
        self._blocks = []
        for output in linear.outputs:
            rows = linear.rows[output]
            for name, parts, place in wanted:
                block = np.asarray(self.call.derivatives[output][name])
                block = block.reshape(batch, rows.stop - rows.start, -1)
                whole = list(parts) == list(range(block.shape[2]))
                chosen = None if whole else list(parts)
                self._blocks.append((self.matrices[:, rows, place], block, chosen))

    def put(self, inputs: dict[str, Array], points: slice, nodes: int) -> None:
        """Put inputs in, (nodes, points, *shape), and the parameters of some points."""
        for name, value in inputs.items():
            self._inputs[name].reshape(value.shape)[...] = value
        for name, target in self._parameters.items():
            own = self._history.parameters[name][points]
            target.reshape(nodes, *own.shape)[...] = own

    def gathered(self) -> Array:
        """The blocks as matrices, (batch, rows, columns)."""
        for target, block, parts in self._blocks:
            target[...] = block if parts is None else block[:, :, parts]
        return self.matrices


def _indices(slices: Sequence[slice]) -> Any:
    parts = [np.arange(each.start, each.stop) for each in slices]
    return np.concatenate(parts) if parts else np.empty(0, int)
