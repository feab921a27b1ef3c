"""Whether a graph computes each point from the inputs of this point alone. This module needs torch.

The graph runs twice, as `trace` runs it, over *fingerprints* instead of expressions: once with five
points, and once with seven, of which four are among the five and stand at other places. Each
operation combines the fingerprints of its operands, so that two results have equal fingerprints
only if they were computed in the same way from the same numbers. A graph that works on points
alone gives the four the same fingerprints. One that mixes points does not, nor does one that tells
a point's place or counts the points: no number, zero or choice can hide it.

A fingerprint is a NaN with a payload, in an array of float64: numbers that are known, indices for
example, stay numbers beside it.
"""

from __future__ import annotations

import math
import operator
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi.kernels.arrays import Arrays
from neml2_capi.kernels.places import place_of
from neml2_capi.kernels.program import NoKernel
from neml2_capi.kernels.walk import Walk, has_points

#: By place: which point stands there.
_FEW = (0, 1, 2, 3, 4)
_MORE = (4, 5, 3, 6, 0, 1, 7)
#: The places, among few and among more, of the points that are in both: others from the first one
#: on, and others from the last one back. The third place is compared too, from either side.
_SHARED = tuple((place, _MORE.index(point)) for place, point in enumerate(_FEW) if point in _MORE)

_NAN, _PAYLOAD = np.uint64(0x7FF8 << 48), np.uint64((1 << 51) - 1)
_ODD, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)

Numbers = NDArray[Any]

#: Functions of numbers that are known, as sizes and indices are; all others are not computed.
_KNOWN: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "quotient": np.divide,
    "neg": np.negative,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "not_": np.logical_not,
    "and_": np.logical_and,
    "or_": np.logical_or,
    "truth": lambda x: x != 0,
    "number": np.positive,
    "where": lambda condition, x, y: np.where(condition != 0, x, y),
    "greatest": np.maximum,
    "least": np.minimum,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "trunc": np.trunc,
    "fmod": np.fmod,
}


def require_pointwise(program: Any) -> None:
    """NoKernel, with the operator and its line, if a torch.export.ExportedProgram mixes points."""
    few, more = (_run(program, points) for points in (_FEW, _MORE))
    if not all(map(_same, few, more)):
        raise _blamed(program)


class _Prints(Arrays):
    """Arrays of fingerprints, and of numbers that are known."""

    def array(self, value: Any) -> Numbers:
        return np.asarray(value, dtype=float)

    def full(self, shape: Any, value: Any) -> Numbers:
        return np.full(tuple(map(int, shape)), self.array(value))

    def known(self, x: Numbers) -> bool:
        return not np.isnan(x).any()

    def integers(self, x: Numbers) -> NDArray[np.int64]:
        if not self.known(x):
            raise NoKernel("an index depends on data")
        return x.astype(np.int64)

    def _each(self, name: str, count: int, *data: str) -> Callable[..., Numbers]:
        label = data[0] if data else name
        known = _KNOWN.get(label)
        seed = np.uint64(zlib.crc32(f"{name} {label}".encode()))

        def applied(*values: Any) -> Numbers:
            arguments = np.broadcast_arrays(*map(self.array, values))
            with np.errstate(all="ignore"):
                if known is None:
                    return _print(seed, arguments)
                result = np.asarray(known(*arguments), dtype=float)
                unknown = np.isnan(result)
                for argument in arguments:
                    unknown = unknown | np.isnan(argument)
                return np.where(unknown, _print(seed, arguments), result)

        return applied


def _print(seed: Any, arguments: Any) -> Numbers:
    """The fingerprint of an operation, by those of its operands and by their order."""
    mixed = np.full(np.shape(arguments[0]), seed)
    with np.errstate(over="ignore"):
        for argument in arguments:
            mixed = (mixed ^ argument.view(np.uint64)) * _ODD
            mixed = mixed ^ (mixed >> _SHIFT)
        return np.asarray(mixed * _ODD & _PAYLOAD | _NAN).view(np.float64)


class _Walk(Walk):
    """The walk over fingerprints; with `kept`, the result of each operator is left in it."""

    def __init__(self, program: Any, points: tuple[int, ...], kept: Any = None) -> None:
        super().__init__(program, _Prints(), len(points))
        self._points, self._kept = points, kept

    def input(self, number: int, node: Any, shape: tuple[int, ...]) -> Numbers:
        seed = np.uint64(zlib.crc32(f"input {number}".encode()))
        components = np.arange(float(np.prod(shape))).reshape(shape)
        if not has_points(node.meta["val"]):
            return _print(seed, [components])
        points = np.reshape(np.array(self._points, dtype=float), (-1,) + (1,) * (len(shape) - 1))
        return _print(seed, np.broadcast_arrays(components[:1] + 0 * points, points))

    def call(self, node: Any, known: dict[Any, Any]) -> Any:
        result = super().call(node, known)
        if self._kept is not None and isinstance(result, np.ndarray):
            self._kept[node] = result.copy()
        return result


def _run(program: Any, points: tuple[int, ...], kept: Any = None) -> list[Numbers]:
    walk = _Walk(program, points, kept)
    return walk.run(walk.arguments())


def _same(few: Numbers, more: Numbers, of_output: bool = True) -> bool:
    """Whether the shared points have the same numbers, or all have, on whatever axis they are.

    An output has them on its first one.
    """
    few, more = (np.ascontiguousarray(x, dtype=float).view(np.uint64) for x in (few, more))
    if few.shape == more.shape:
        return np.array_equal(few, more)
    axis = next(k for k, n in enumerate(few.shape) if n != more.shape[k])
    inner = few.shape[axis] // len(_FEW)
    if of_output and (axis, inner) != (0, 1):
        return False
    before, behind = few.shape[:axis], few.shape[axis + 1 :]
    shapes = [(*before, len(points), inner, *behind) for points in (_FEW, _MORE)]
    if (few.size, more.size) != tuple(map(math.prod, shapes)):
        return False
    first, other = (np.array(places) for places in zip(*_SHARED, strict=True))
    return np.array_equal(
        few.reshape(shapes[0]).take(first, axis), more.reshape(shapes[1]).take(other, axis)
    )


def _blamed(program: Any) -> NoKernel:
    """The first operator whose result for a point is another among other points."""
    few: dict[Any, Numbers] = {}
    more: dict[Any, Numbers] = {}
    _run(program, _FEW, few)
    _run(program, _MORE, more)
    for node, result in few.items():
        if node in more and np.isnan(result).any() and not _same(result, more[node], False):
            does = "picks or adds up" if result.shape == more[node].shape else "mixes"
            while node.target is operator.getitem:
                node = node.args[0]
            return NoKernel(f"{node.target} ({node.name}) {does} points", place_of(node))
    return NoKernel("an output depends on a point's place, or on how many points there are")
