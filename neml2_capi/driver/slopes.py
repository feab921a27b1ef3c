"""Derivatives by what is constant over time, carried through the increments of a history.

dz_k = A_k dz_(k-1) + B_k dc: by the library, in lanes and in one call for many increments, or, if
its kernels cannot, by numpy from the matrices A and B. The former takes one solution of the tangent
for each component of c, and stores no matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.dtypes import CODES
from neml2_capi._ffi.errors import check, last_message
from neml2_capi._ffi.handle import Handle
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.logs import drain, listening
from neml2_capi._ffi.strings import c_string
from neml2_capi.driver.asked import Asked
from neml2_capi.driver.linearized import Linearized
from neml2_capi.driver.memory import new_rows


class Slopes(NamedTuple):
    """Derivatives after the increments `first` to `last` - 1, at some points."""

    first: int
    last: int
    points: slice
    #: By output and constant, (increments, points, size of the output, size of the constant).
    by: dict[tuple[str, str], Array]


class NotCarriedError(Exception):
    """The library takes no derivatives of inputs here, or an increment has none."""


def carried(
    linear: Linearized, outputs: Sequence[str], wanted: Sequence[Asked], memory: int
) -> Iterator[Slopes]:
    """Yield the derivatives of outputs in order of time, by the library.

    Some points come after others, in pieces of about `memory` bytes. NotCarriedError if it
    cannot, or an increment has no derivative.
    """
    history = linear.history
    if history.control:
        raise NotCarriedError
    ordered = _parameters_first(wanted)
    starts = _starts(linear, ordered)
    with _Carrier(linear, outputs, ordered, starts) as carrier:
        yield from carrier.slopes(memory)


def stepped(
    linear: Linearized, outputs: Sequence[str], wanted: Sequence[Asked], memory: int
) -> Iterator[Slopes]:
    """Yield what carried() does, by matrices of increments."""
    ordered = _parameters_first(wanted)
    starts = _starts(linear, ordered)
    size, count = linear.state_size, linear.width - linear.state_size
    for points, blocks in linear.blocks(memory):
        slopes = np.repeat(starts[None], points.stop - points.start, axis=0)
        yield from _at_first(linear, outputs, ordered, starts, points)
        for block in blocks:
            rows = np.empty((len(block.matrices), len(slopes), linear.row_count, starts.shape[1]))
            for matrices, row in zip(block.matrices, rows, strict=True):
                row[:] = matrices[:, :, :size] @ slopes
                row[:, :, :count] += matrices[:, :, size:]
                older = slopes[:, linear.ageing[0]]
                slopes[:, linear.state_places] = row[:, linear.state_rows]
                if older.size:
                    slopes[:, linear.ageing[1]] = older
            by = {output: rows[:, :, linear.rows[output]] for output in outputs}
            yield Slopes(block.first, block.last, points, _by_constant(by, ordered))


class _Carrier(Handle):
    """A call of the library that carries derivatives through steps."""

    _instead = "drive again"

    def __init__(
        self,
        linear: Linearized,
        outputs: Sequence[str],
        wanted: Sequence[Asked],
        starts: Array,
    ) -> None:
        """`starts` has the derivatives of the first state, (state, columns of all constants).

        FatalError if the model is on a device.
        """
        model = linear.history.model
        super().__init__(model._engine.new_call())
        self._linear, self._outputs, self._wanted = linear, outputs, wanted
        variables = (*model.inputs, *model.outputs, *model.parameters)
        self._texts = {variable.name: c_string(variable.name) for variable in variables}
        self._columns, self._starts = _columns(wanted), starts
        #: By constant, what the library calls it.
        self._variables = {each.name: _variable(each) for each in wanted}
        self._states = [c for c in linear.columns if c.kind == "state"]
        #: Outputs whose derivatives have a row for each increment; of others the last is enough.
        self._stepped = {*outputs, *(state.name for state in self._states if state.age)}

    def slopes(self, memory: int) -> Iterator[Slopes]:
        """Yield them as carried() does."""
        linear, history = self._linear, self._linear.history
        first, nodes = (0 if history.is_solved else 1), len(history.nodes)
        each = 8 * (linear.output_count * self._starts.shape[1] + 4 * linear.state_size + 64)
        at_once = max(1, min(history.points, memory // (each * min(nodes, 64))))
        long = max(1, memory // (each * at_once))
        for begin in range(0, history.points, at_once):
            points = slice(begin, min(begin + at_once, history.points))
            count = points.stop - points.start
            yield from _at_first(linear, self._outputs, self._wanted, self._starts, points)
            seeds = {
                (state.name, state.age, name): np.repeat(
                    self._starts[None, place, columns], count, axis=0
                )
                for state, place in zip(self._states, linear.places, strict=False)
                for name, columns in self._columns.items()
            }
            for start in range(first, nodes, long):
                end = min(start + long, nodes)
                slopes = self._run(start, end, points, seeds)
                made = end - start
                seeds = {
                    (output, age, name): slopes.by[output, name][-1 - age]
                    if age < made
                    else seeds[output, age - made, name]
                    for output, age, name in seeds
                }
                yield slopes

    def _run(
        self, first: int, last: int, points: slice, seeds: dict[tuple[str, int, str], Array]
    ) -> Slopes:
        history, model = self._linear.history, self._linear.history.model
        steps, count = last - first, points.stop - points.start
        owner, made = self._open(), ffi.new("int64_t *")
        text = self._texts
        given = history.inputs(first, last, points)
        for name, value in given.items():
            self._bind(lib.neml2_call_bind, (lib.NEML2_INPUT, text[name]), value[0])
            self._step(lib.neml2_call_step_stride_set, (lib.NEML2_INPUT, text[name]), value)
        parameters = {n: v[points] if len(v) > 1 else v for n, v in history.parameters.items()}
        for name, value in parameters.items():
            leading = (lib.NEML2_PARAMETER, text[name])
            self._bind(lib.neml2_call_bind, leading, value, repeats=len(value) == 1)
        by = self._room(steps, count)
        for (output, name), value in by.items():
            kind, variable = self._variables[name]
            block = (kind, text[output], text[variable])
            self._bind(lib.neml2_call_bind_derivative, block, value[0])
            self._step(lib.neml2_call_derivative_step_stride_set, block, value)
        starts = {key: np.ascontiguousarray(seed, model._dtype) for key, seed in seeds.items()}
        for (output, age, name), value in starts.items():
            kind, variable = self._variables[name]
            slope = (text[f"{output}~{age + 1}"], kind, text[variable])
            self._bind(lib.neml2_call_bind_input_derivative, slope, value)
        status: int = lib.neml2_call_run_steps(made, owner[0], count, steps)
        if status == lib.NEML2_ERROR_UNSUPPORTED:
            raise NotCarriedError
        check(min(status, 0))
        if status or listening:
            drain(but=last_message() if status else None)
        if status:
            raise NotCarriedError
        return Slopes(first, last, points, by)

    def _room(self, steps: int, points: int) -> dict[tuple[str, str], Array]:
        """New arrays of derivatives, in memory of one piece."""
        shapes = {}
        for output in dict.fromkeys([*self._outputs, *(s.name for s in self._states)]):
            rows = self._linear.rows[output]
            kept = steps if output in self._stepped else 1
            for name, columns in self._columns.items():
                size = (rows.stop - rows.start, columns.stop - columns.start)
                shapes[output, name] = (kept, points, *size)
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
        room = new_rows((int(ends[-1]),), np.dtype(self._linear.history.model._dtype))
        parts = zip(shapes.items(), np.split(room, ends[:-1]), strict=True)
        return {key: part.reshape(shape) for (key, shape), part in parts}

    def _bind(
        self, function: Any, leading: tuple[Any, ...], points: Array, *, repeats: bool = False
    ) -> None:
        """Bind the rows of points, or one for all."""
        stride = 0 if repeats else points[0].size
        data, code = ffi.from_buffer(points), CODES[points.dtype]
        check(function(self._pointer[0], *leading, data, code, stride))

    def _step(self, function: Any, leading: tuple[Any, ...], steps: Array) -> None:
        if len(steps) > 1:
            check(function(self._pointer[0], *leading, steps[0].size))


def _parameters_first(wanted: Sequence[Asked]) -> list[Asked]:
    return sorted(wanted, key=lambda each: each.kind, reverse=True)


def _columns(wanted: Sequence[Asked]) -> dict[str, slice]:
    """The columns of each constant."""
    ends = np.cumsum([0, *(each.size for each in wanted)])
    pairs = zip(wanted, pairwise(ends), strict=True)
    return {each.name: slice(int(first), int(last)) for each, (first, last) in pairs}


def _by_constant(slopes: dict[str, Array], wanted: Sequence[Asked]) -> dict[tuple[str, str], Array]:
    columns = _columns(wanted).items()
    return {(o, name): v[..., place] for o, v in slopes.items() for name, place in columns}


def _at_first(
    linear: Linearized,
    outputs: Sequence[str],
    wanted: Sequence[Asked],
    starts: Array,
    points: slice,
) -> Iterator[Slopes]:
    """The derivatives at the first time, if nothing is solved there."""
    history = linear.history
    if history.is_solved:
        return
    by_row = dict(zip(linear.state_rows.tolist(), linear.state_places.tolist(), strict=True))
    size, count = linear.state_size, linear.width - linear.state_size
    by, rest = {}, None
    for output in outputs:
        rows = range(*linear.rows[output].indices(linear.row_count))
        by[output] = np.zeros((1, points.stop - points.start, len(rows), starts.shape[1]))
        if set(rows) <= set(by_row):
            by[output][0] = starts[[by_row[row] for row in rows]]
        elif output != history.found:
            if rest is None:
                matrices = linear.at_rest(points)
                rest = matrices[:, :, :size] @ starts
                rest[:, :, :count] += matrices[:, :, size:]
            by[output][0] = rest[:, linear.rows[output]]
    yield Slopes(0, 1, points, _by_constant(by, wanted))


def _starts(linear: Linearized, wanted: Sequence[Asked]) -> Array:
    """The derivatives of the first state by all constants, (state, columns)."""
    columns = _columns(wanted)
    starts = np.zeros((linear.state_size, sum(each.size for each in wanted)))
    for each in wanted:
        if each.kind != "initial":
            continue
        name, age = age_of(each.variable)
        while any(c[:3] == ("state", name, age) for c in linear.columns):
            place = linear.places[state_of(linear, name, age)]
            starts[place, columns[each.name]] = np.eye(each.size)
            age += 1
            if f"{name}~{age}" in linear.history.initial:
                break
    return starts


def age_of(name: str) -> tuple[str, int]:
    """The output of an initial value, and how many steps before the first time it was so."""
    base, _, age = name.partition("~")
    return base, int(age or 0)


def state_of(linear: Linearized, name: str, age: int) -> int:
    """The place of a state among the columns."""
    return next(
        number
        for number, column in enumerate(linear.columns)
        if (column.kind, column.name, column.age) == ("state", name, age)
    )


def _variable(each: Asked) -> tuple[int, str]:
    """The kind and the name of what the library derives by."""
    if each.kind == "parameter":
        return lib.NEML2_PARAMETER, each.variable
    name, age = age_of(each.variable)
    return lib.NEML2_INPUT, f"{name}~{age + 1}"
