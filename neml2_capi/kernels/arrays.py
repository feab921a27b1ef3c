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

    def __init__(self, every_sign: bool = False) -> None:
        self.scalars = Scalars(every_sign=every_sign)
        #: The largest number of the type of the inputs.
        self.largest = float(np.finfo(np.float64).max)
        self.add, self.sub, self.mul, self.div = map(self._arithmetic, ("add", "sub", "mul", "div"))
        self.pow, self.neg = self._each("pow", 2), self._each("neg", 1)
        self.gt, self.ge, self.eq = (self._each(name, 2) for name in ("gt", "ge", "eq"))
        self.not_, self.truth = self._each("not_", 1), self._each("truth", 1)
        self.and_, self.or_ = self._each("and_", 2), self._each("or_", 2)
        self.where, self.number = self._each("where", 3), self._each("number", 1)
        self.greatest, self.least = self._each("greatest", 2), self._each("least", 2)

    def _each(self, name: str, count: int, *data: str) -> Elementwise:
        """A method of Scalars, applied to each element of broadcast arrays or numbers."""
        each = np.frompyfunc(functools.partial(getattr(self.scalars, name), *data), count, 1)

        def applied(*values: Any) -> Nodes:
            result = each(*map(self.array, values))
            return result if isinstance(result, np.ndarray) else _of_one(result)

        return applied

    def _arithmetic(self, name: str) -> Elementwise:
        """The same; a zero in an array is structural, and one that a law writes is a number."""
        structural = self._each(name, 2)
        exact = self._each("with_zero", 2, name)

        def applied(x: Any, y: Any) -> Nodes:
            return exact(x, y) if _is_zero(x) or _is_zero(y) else structural(x, y)

        return applied

    def function(self, name: str, x: Any) -> Nodes:
        """A function of folding.FUNCTIONS, of each element."""
        return self._each("function", 1, name)(x)

    def binary(self, name: str, x: Any, y: Any) -> Nodes:
        """A function of folding.BINARY, of each pair of elements."""
        return self._each("binary", 2, name)(x, y)

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
            x = np.expand_dims(total, axis) if keep else self.array(total)
        return x

    def cumulated(self, function: Elementwise, x: Nodes, axis: int) -> Nodes:
        result: Nodes = x.copy()
        moved = np.moveaxis(result, axis, 0)
        for i in range(1, len(moved)):
            moved[i, ...] = function(moved[i - 1], moved[i])
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

    def known(self, x: Nodes) -> bool:
        """Whether all are constants."""
        return all(constant_of(node) is not None for node in x.ravel())

    def integers(self, x: Nodes) -> NDArray[np.int64]:
        """The values of constants. NoKernel if one depends on data."""
        values = [constant_of(node) for node in x.ravel()]
        if any(value is None for value in values):
            raise NoKernel("an index depends on data")
        found = np.array([int(value) for value in values if value is not None], dtype=np.int64)
        return found.reshape(x.shape)

    def gather(self, x: Nodes, axis: int, index: Nodes) -> Nodes:
        """x[index] along an axis, chosen by comparisons if the index depends on data."""
        cut = tuple(
            slice(None) if a == axis % x.ndim else slice(n) for a, n in enumerate(index.shape)
        )
        if self.known(index):
            return np.take_along_axis(x[cut], self.integers(index), axis)
        rows = [np.take(x[cut], [i], axis) for i in range(x.shape[axis])]
        chosen = np.broadcast_to(rows[0], index.shape)
        for i in range(1, len(rows)):
            chosen = self.where(self.ge(index, float(i)), rows[i], chosen)
        return chosen

    def count_below(self, sorted_values: Nodes, x: Nodes, right: bool) -> Nodes:
        """torch.searchsorted: how many values are less than x, or not greater if `right`.

        NaN is behind all of them.
        """
        if sorted_values.ndim == 1:
            table = sorted_values.reshape((1,) * x.ndim + (-1,))
        else:
            table = sorted_values[..., None, :]
        x = x[..., None]
        below = self.not_(self.gt(table, x) if right else self.ge(table, x))
        return self.sum(self.number(below), -1)


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _of_one(node: Node) -> Nodes:
    result = np.empty((), dtype=object)
    result[()] = node
    return result
