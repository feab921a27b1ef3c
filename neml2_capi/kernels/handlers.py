"""What operators of torch do with arrays of nodes, if that takes more than a line.

`a` is the arrays of the graph. What torch returns as a view is a view here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neml2_capi.kernels.arrays import Arrays, Nodes
from neml2_capi.kernels.program import NoKernel

_SOLVE = "it solves linear systems, which is the engine's own work"


def add(a: Arrays, x: Any, y: Any, alpha: float = 1) -> Nodes:
    return a.add(x, y if alpha == 1 else a.mul(y, alpha))


def sub(a: Arrays, x: Any, y: Any, alpha: float = 1) -> Nodes:
    return a.sub(x, y if alpha == 1 else a.mul(y, alpha))


def same(a: Arrays, x: Nodes, *_: Any, **__: Any) -> Nodes:
    return x


def copy(a: Arrays, x: Nodes, *_: Any, **__: Any) -> Nodes:
    result: Nodes = x.copy()
    return result


def to(a: Arrays, x: Nodes, *types: Any, dtype: Any = None, **_: Any) -> Nodes:
    """A conversion: a truth value becomes 0 or 1, a number stays as it is or loses its fraction."""
    wanted = str(dtype if dtype is not None else next(iter(types), ""))
    if wanted == "torch.bool":
        return a.truth(x)
    if "int" in wanted and wanted.startswith("torch."):
        floor = a.function("floor", a.function("abs", x))
        return a.add(a.mul(a.function("sign", x), floor), 0.0)  # integers have no -0
    return a.number(x)


def size(a: Arrays, x: Nodes, axis: int) -> int:
    return int(x.shape[axis])


def reshape(a: Arrays, x: Nodes, shape: Sequence[int]) -> Nodes:
    return x.reshape([int(n) for n in shape])


def expand(a: Arrays, x: Nodes, shape: Sequence[int], implicit: bool = False) -> Nodes:
    own = (1,) * (len(shape) - x.ndim) + x.shape
    return np.broadcast_to(x, [n if m == -1 else int(m) for n, m in zip(own, shape, strict=True)])


def slice_(
    a: Arrays, x: Nodes, axis: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Nodes:
    part: Nodes = x[along(x, axis, slice(start, end, step))]
    return part


def along(x: Nodes, axis: int, place: Any) -> tuple[Any, ...]:
    """An index of one axis; the others are taken whole."""
    return (slice(None),) * (axis % x.ndim) + (place,)


def select(a: Arrays, x: Nodes, axis: int, index: int) -> Nodes:
    place = (*along(x, axis, index), Ellipsis)
    chosen: Nodes = x[place]
    return chosen


def into_zeros(a: Arrays, x: Nodes, shape: Sequence[int], axis: int, place: Any) -> Nodes:
    """The adjoint of a select or a slice: zeros, except for x at its place."""
    result = a.full(shape, 0.0)
    result[along(result, axis, place)] = x
    return result


def scatter(a: Arrays, x: Nodes, y: Nodes, axis: int, place: Any) -> Nodes:
    """A copy of x with y at a place."""
    result: Nodes = x.copy()
    result[along(result, axis, place)] = y
    return result


def strided(
    a: Arrays, x: Nodes, shape: Sequence[int], strides: Sequence[int], start: Any = None
) -> Nodes:
    """A view of elements that lie at these distances, in an array that lies row by row."""
    last = (start or 0) + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if not x.flags.c_contiguous or last >= x.size:
        raise NoKernel("it views memory that is not in order")
    steps = [int(s) * x.itemsize for s in strides]
    view: Nodes = np.lib.stride_tricks.as_strided(x.reshape(-1)[start or 0 :], shape, steps)
    return view


def strided_scatter(
    a: Arrays, x: Nodes, y: Nodes, shape: Sequence[int], strides: Sequence[int], start: Any = None
) -> Nodes:
    """A copy of x with y in such a view."""
    result: Nodes = x.copy()
    strided(a, result, shape, strides, start)[...] = y
    return result


def assign(a: Arrays, x: Nodes, y: Any, *_: Any) -> Nodes:
    x[...] = a.array(y)
    return x


def unsqueeze(a: Arrays, x: Nodes, axis: int) -> Nodes:
    return np.expand_dims(x, axis)


def squeeze(a: Arrays, x: Nodes, axes: Any = None) -> Nodes:
    if axes is None:
        raise NoKernel("squeeze() without an axis may drop the points; name the axis")
    chosen = [axes] if isinstance(axes, int) else axes
    return np.squeeze(x, axis=tuple(k % x.ndim for k in chosen if x.ndim and x.shape[k] == 1))


def cat(a: Arrays, parts: Sequence[Nodes], axis: int = 0) -> Nodes:
    return np.concatenate([part for part in parts if part.shape != (0,)], axis=axis)


def split(a: Arrays, x: Nodes, sizes: Any, axis: int = 0) -> list[Nodes]:
    total = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, total - i) for i in range(0, total, sizes)]
    ends = np.cumsum(sizes)
    return [x[along(x, axis, slice(int(e - n), int(e)))] for e, n in zip(ends, sizes, strict=True)]


def index_(a: Arrays, x: Nodes, places: Sequence[Any]) -> Nodes:
    chosen = tuple(slice(None) if p is None else a.integers(a.array(p)) for p in places)
    found = x[chosen]
    return found if isinstance(found, np.ndarray) else a.array(found)


def index_put(a: Arrays, x: Nodes, places: Sequence[Any], y: Nodes, add: bool = False) -> Nodes:
    chosen = tuple(slice(None) if p is None else a.integers(a.array(p)) for p in places)
    result: Nodes = x.copy()
    if not add:
        result[chosen] = y
        return result
    flat, at = result.reshape(-1), np.arange(x.size).reshape(x.shape)[chosen]
    for place, value in zip(at.ravel(), np.broadcast_to(a.array(y), at.shape).ravel(), strict=True):
        flat[place] = a.add(flat[place], value)[()]  # a place may be named twice
    return result


def scatter_add(a: Arrays, x: Nodes, axis: int, places: Nodes, values: Nodes) -> Nodes:
    """x and values added to it where the places along an axis say, which may depend on data."""
    result: Nodes = x.copy()
    along_axis = [axis % x.ndim == k for k in range(x.ndim)]
    for at in np.ndindex(places.shape):
        for k in range(x.shape[axis]):
            to = tuple(k if here else i for here, i in zip(along_axis, at, strict=True))
            added = a.add(result[to], values[at])
            result[to] = a.where(a.eq(places[at], float(k)), added, result[to])[()]
    return result


def pad(a: Arrays, x: Nodes, widths: Sequence[int], value: float = 0.0) -> Nodes:
    """Values around the last axes, from the last on: before and behind; negative ones cut."""
    for k in range(len(widths) // 2):
        axis, (before, behind) = x.ndim - 1 - k, widths[2 * k : 2 * k + 2]
        x = x[along(x, axis, slice(max(-before, 0), x.shape[axis] - max(-behind, 0)))]
        sides = [(max(before, 0), max(behind, 0)) if j == axis else (0, 0) for j in range(x.ndim)]
        shape = [n + sum(side) for n, side in zip(x.shape, sides, strict=True)]
        padded = a.full(shape, value)
        padded[along(padded, axis, slice(sides[axis][0], sides[axis][0] + x.shape[axis]))] = x
        x = padded
    return x


def eye(a: Arrays, n: int, m: int | None = None, **_: Any) -> Nodes:
    return a.array(np.eye(n, n if m is None or not isinstance(m, int) else m))


def diagonal(a: Arrays, x: Nodes, offset: int = 0, first: int = 0, second: int = 1) -> Nodes:
    return np.diagonal(x, offset, first, second)


def diagonal_scatter(
    a: Arrays, x: Nodes, y: Nodes, offset: int = 0, first: int = 0, second: int = 1
) -> Nodes:
    result: Nodes = x.copy()
    square = np.moveaxis(result, (first, second), (-2, -1))
    k = np.arange(y.shape[-1])
    square[..., k + max(-offset, 0), k + max(offset, 0)] = y
    return result


def arange(a: Arrays, *bounds: float, **_: Any) -> Nodes:
    return a.array(np.arange(*bounds))


def search(a: Arrays, table: Nodes, x: Any, *_: Any, right: bool = False, **more: Any) -> Nodes:
    return a.count_below(table, a.array(x), right or more.get("side") == "right")


def no_solver(a: Arrays, *_: Any, **__: Any) -> Nodes:
    raise NoKernel(_SOLVE)
