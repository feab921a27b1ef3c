"""Tensors of scalar expressions: numpy arrays whose elements are nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi.kernels.program import NoKernel
from neml2_capi.kernels.scalar import Node, Scalars, constant_of

Nodes = NDArray[np.object_]
Elementwise = Callable[..., Nodes]


class Arrays:
    """Operations on arrays of the nodes of one graph. Views share memory, as in torch."""

    def __init__(self) -> None:
        self.scalars = Scalars()
        #: The largest number of the type of the inputs.
        self.largest = float(np.finfo(np.float64).max)
        s = self.scalars
        self.add, self.sub, self.mul, self.div = map(self._arithmetic, ("add", "sub", "mul", "div"))
        self.pow, self.neg = self._each(s.pow, 2), self._each(s.neg, 1)
        self.gt, self.ge, self.eq = (self._each(f, 2) for f in (s.gt, s.ge, s.eq))
        self.not_, self.truth = self._each(s.not_, 1), self._each(s.truth, 1)
        self.and_, self.or_ = self._each(s.and_, 2), self._each(s.or_, 2)
        self.where, self.number = self._each(s.where, 3), self._each(s.number, 1)
        self.greatest, self.least = self._each(s.greatest, 2), self._each(s.least, 2)

    def _each(self, function: Callable[..., Node], count: int) -> Elementwise:
        """A function of nodes, applied to each element of broadcast arrays or numbers."""
        each = np.frompyfunc(function, count, 1)

        def applied(*values: Any) -> Nodes:
            result = each(*map(self.array, values))
            return result if isinstance(result, np.ndarray) else _of_one(result)

        return applied

    def _arithmetic(self, name: str) -> Elementwise:
        """The same; a zero in an array is structural, and one that a law writes is a number."""
        structural = self._each(getattr(self.scalars, name), 2)
        exact = self._each(functools.partial(self.scalars.with_zero, name), 2)

        def applied(x: Any, y: Any) -> Nodes:
            return exact(x, y) if _is_zero(x) or _is_zero(y) else structural(x, y)

        return applied

    def function(self, name: str, x: Any) -> Nodes:
        """A function of folding.FUNCTIONS, of each element."""
        return self._each(functools.partial(self.scalars.function, name), 1)(x)

    def binary(self, name: str, x: Any, y: Any) -> Nodes:
        """A function of folding.BINARY, of each pair of elements."""
        return self._each(functools.partial(self.scalars.binary, name), 2)(x, y)

    # Making arrays

    def array(self, value: Any) -> Nodes:
        """Nodes as they are; numbers become constants."""
        if isinstance(value, Node):  # an element of an array of one axis
            return _of_one(value)
        if isinstance(value, np.ndarray) and value.dtype == object:
            return value
        numbers = np.asarray(value, dtype=float)
        result = np.empty(numbers.shape, dtype=object)
        for place in np.ndindex(numbers.shape):
            result[place] = self.scalars.constant(numbers[place])
        return result

    def full(self, shape: Sequence[int], value: Any) -> Nodes:
        result = np.empty(tuple(map(int, shape)), dtype=object)
        result[...] = self.array(value)
        return result

    def variables(self, array: int, shape: Sequence[int]) -> Nodes:
        """The components of input number `array`, row-major."""
        result = np.empty(tuple(shape), dtype=object)
        for component, place in enumerate(np.ndindex(result.shape)):
            result[place] = self.scalars.variable(array, component)
        return result

    # Sums and products

    def sum(self, x: Nodes, axes: Any = None, keep: bool = False, **_: Any) -> Nodes:
        return self._reduce(self.add, 0.0, x, axes, keep)

    def prod(self, x: Nodes, axes: Any = None, keep: bool = False, **_: Any) -> Nodes:
        return self._reduce(self.mul, 1.0, x, axes, keep)

    def amax(self, x: Nodes, axes: Any = None, keep: bool = False) -> Nodes:
        return self._reduce(self.greatest, -np.inf, x, axes, keep)

    def amin(self, x: Nodes, axes: Any = None, keep: bool = False) -> Nodes:
        return self._reduce(self.least, np.inf, x, axes, keep)

    def any(self, x: Nodes, axes: Any = None, keep: bool = False) -> Nodes:
        return self._reduce(self.or_, 0.0, self.truth(x), axes, keep)

    def all(self, x: Nodes, axes: Any = None, keep: bool = False) -> Nodes:
        return self._reduce(self.and_, 1.0, self.truth(x), axes, keep)

    def mean(self, x: Nodes, axes: Any = None, keep: bool = False, **_: Any) -> Nodes:
        total = self.sum(x, axes, keep)
        return self.div(total, x.size / max(total.size, 1))

    def _reduce(
        self, function: Elementwise, start: float, x: Nodes, axes: Any, keep: bool
    ) -> Nodes:
        if axes is None or axes == []:
            axes = list(range(x.ndim))
        chosen = {axis % x.ndim for axis in ([axes] if isinstance(axes, int) else axes)}
        for axis in sorted(chosen, reverse=True):
            parts = [x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis])]
            total = functools.reduce(function, parts) if parts else self.full(x.shape[:axis], start)
            x = np.expand_dims(total, axis) if keep else _array(total)
        return x

    def cumulated(self, function: Elementwise, x: Nodes, axis: int) -> Nodes:
        result: Nodes = x.copy()
        moved = np.moveaxis(result, axis, 0)
        for i in range(1, len(moved)):
            moved[i] = function(moved[i - 1], moved[i])
        return result

    def matmul(self, x: Nodes, y: Nodes) -> Nodes:
        """As torch.matmul: vectors, matrices, and batches of matrices."""
        if y.ndim == 1:
            return self.sum(self.mul(x, y), -1)
        if x.ndim == 1:
            product: Nodes = self.matmul(x[None, :], y)[..., 0, :]
            return product
        return self.sum(self.mul(x[..., :, :, None], y[..., None, :, :]), -2)

    def cross(self, x: Nodes, y: Nodes, axis: int = -1) -> Nodes:
        a, b = (np.moveaxis(v, axis, 0) for v in np.broadcast_arrays(x, y))
        rows = [
            self.sub(self.mul(a[i], b[j]), self.mul(a[j], b[i]))
            for i, j in ((1, 2), (2, 0), (0, 1))
        ]
        return np.stack(rows, axis=axis)

    # Choosing by numbers

    def integers(self, x: Nodes) -> NDArray[np.int64]:
        """The values of constants. NoKernel if one depends on data."""
        values = [constant_of(node) for node in x.ravel()]
        if any(value is None for value in values):
            raise NoKernel("an index depends on data")
        found = np.array([int(value) for value in values if value is not None], dtype=np.int64)
        return found.reshape(x.shape)

    def gather(self, x: Nodes, axis: int, index: Nodes) -> Nodes:
        """x[index] along an axis, chosen by comparisons if the index depends on data."""
        if all(constant_of(node) is not None for node in index.ravel()):
            cut = tuple(slice(n) for n in index.shape)
            trimmed = x[tuple(slice(None) if a == axis % x.ndim else c for a, c in enumerate(cut))]
            return np.take_along_axis(trimmed, self.integers(index), axis)
        result = np.empty(index.shape, dtype=object)
        for place in np.ndindex(index.shape):
            row = x[tuple(slice(None) if a == axis % x.ndim else p for a, p in enumerate(place))]
            chosen = row[0]
            for i in range(1, len(row)):
                at_least = self.scalars.ge(index[place], self.scalars.constant(i))
                chosen = self.scalars.where(at_least, row[i], chosen)
            result[place] = chosen
        return result

    def count_below(self, sorted_values: Nodes, x: Nodes, right: bool) -> Nodes:
        """torch.searchsorted: how many values are less than x, or not greater if `right`."""
        if sorted_values.ndim == 1:
            table = sorted_values.reshape((1,) * x.ndim + (-1,))
        else:
            table = sorted_values[..., None, :]
        below = self.ge(x[..., None], table) if right else self.gt(x[..., None], table)
        return self.sum(self.number(below), -1)


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _of_one(node: Node) -> Nodes:
    result = np.empty((), dtype=object)
    result[()] = node
    return result


def _array(value: Any) -> Nodes:
    return value if isinstance(value, np.ndarray) else _of_one(value)
