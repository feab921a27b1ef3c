"""Arrays of a caller where a call of the library reads and writes them: in place, never copied."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.dtypes import CODES
from neml2_capi._ffi.errors import FatalError, check
from neml2_capi._ffi.handle import owned
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.tensor import Tensor, is_torch, require_host, wrap
from neml2_capi._ffi.views import taken

_VOID = ffi.typeof("void *")

Shape = tuple[int, ...]
#: The kinds of arrays that a call reads, and those that it writes.
READ = ("inputs", "parameters", "tangents", "cotangents")
WRITTEN = ("outputs", "jvps", "adjoints", "derivatives", "report")

#: Types of a single number, which is copied.
NUMBERS = (int, float, np.integer, np.floating)

#: What makes a dense copy of an array, by its library.
_COPIES = {
    "numpy": "np.ascontiguousarray(array)",
    "torch": "tensor.contiguous()",
    "cupy": "cupy.ascontiguousarray(array)",
    "pyopencl": "array.copy()",
}

#: Name of a place in a call: ("inputs", "strain"), ("derivatives", "stress", "strain").
Key = tuple[str, ...]


class Bound(NamedTuple):
    """An array as a call has it."""

    #: Array that was given, or made if none was.
    value: Any
    #: View of the same memory.
    array: Array
    #: Elements from one point to the next; 0 is one value for all points.
    stride: int


class Place(NamedTuple):
    """Place where an array can be bound, and what it must be."""

    key: Key
    label: Label
    #: The shape of one point.
    shape: Shape
    dtype: np.dtype[Any]
    #: The function that binds, and its arguments between the call and the array.
    function: Any
    leading: tuple[Any, ...]

    @property
    def written(self) -> bool:
        """Whether the call writes the array."""
        return self.key[0] in WRITTEN

    @property
    def repeats(self) -> bool:
        """Whether one value may serve all points, or be the sum over them."""
        return self.key[0] in READ or self.key[0] == "adjoints"

    def view(self, value: Any) -> Array:
        """A numpy array over the memory of `value`, of the right type and shape of a point."""
        array = self._in_place(value)
        if array.dtype != self.dtype:
            raise self.label.refuse(
                f"must be {self.dtype}; got {array.dtype}. A call converts nothing: bind an array "
                f"of {self.dtype}",
                lib.NEML2_ERROR_DTYPE,
            )
        self.label.batch_of(array.shape, self.shape)
        if self.written and not array.flags.writeable:
            raise self.label.refuse(
                "is read-only, and the call would write it: bind an array that can be written",
                lib.NEML2_ERROR_ARGUMENT,
            )
        return array

    def batch_of(self, array: Array) -> Shape:
        """The batch axes of a view."""
        return array.shape[: array.ndim - len(self.shape)]

    def bound(self, value: Any, array: Array, batch: Shape, across: int = 1) -> Bound:
        """`value`, of which `array` is a view, for a call of the batch `batch`.

        `across` is the distance of the values of a point, in elements.
        """
        own, size = self.batch_of(array), math.prod(self.shape)
        if isinstance(value, NUMBERS):
            value = array  # by which it can be changed
        if math.prod(batch) == 0:
            return Bound(value, array, size)
        if own != batch and not (self.repeats and math.prod(own) == 1):
            raise self._refuse(
                f"has the batch {own}; expected the call's, {batch}"
                if self.written
                else f"has the batch {own}, which would have to be repeated to {batch}, the "
                f"call's: bind np.ascontiguousarray(np.broadcast_to(array, {batch + self.shape}))"
            )
        stride = self._stride(value, array, 1 if math.prod(own) == 1 else across)
        if stride is None:  # one value
            return Bound(value, array, 0 if math.prod(batch) > 1 else size)
        if across == 1 and stride < size and (stride != 0 or self.written):
            raise self._not_in_place(value, array, "has points that overlap or run backwards")
        return Bound(value, array, stride)

    def new(self, batch: Shape) -> Array:
        """A new array: NaN, or 0 if that is no number of the type."""
        return np.full(batch + self.shape, math.nan if self.dtype.kind == "f" else 0, self.dtype)

    def attach(self, call: Any, bound: Bound | None) -> None:
        """Tell the library; None takes the binding back."""
        check(self.function(call, *self.arguments(bound)))

    def arguments(self, bound: Bound | None) -> tuple[Any, ...]:
        """Return what `function` takes after the call."""
        data, stride = ffi.NULL, 1
        if bound is not None:
            array, stride = bound.array, bound.stride
            data = (
                ffi.from_buffer(array)
                if array.flags.c_contiguous
                else ffi.cast(_VOID, array.__array_interface__["data"][0])
            )
        # The arrays of a report have types of their own.
        code = [] if self.key[0] == "report" else [CODES[self.dtype]]
        return *self.leading, data, *code, stride

    def _in_place(self, value: Any) -> Array:
        if isinstance(value, np.ndarray):
            if type(value) is not np.ndarray and np.ma.is_masked(value):
                raise self.label.refuse(
                    "is masked: bind what is behind the mask, array.data", lib.NEML2_ERROR_DTYPE
                )
            return np.asarray(value)
        if isinstance(value, Tensor):
            return value.numpy()
        if is_torch(value):
            require_host(value, self.label)
            owner = owned("tensor")
            if wrap(owner, value, self.label, self.dtype.name) is value:
                return taken(owner, value, self.label, self.dtype.name)
            raise self._no_memory(value, "it is negated lazily")
        if isinstance(value, NUMBERS) and not self.written:
            return np.array(value, self.dtype)
        try:
            return np.from_dlpack(value)
        except (AttributeError, TypeError, ValueError, BufferError, RuntimeError) as error:
            raise self._no_memory(value, str(error)) from error

    def _stride(self, value: Any, array: Array, across: int) -> int | None:
        """Elements from one point to the next; None if there is one point only."""
        if not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
            raise self._not_in_place(
                value, array, f"is not aligned to its element type {array.dtype}"
            )
        axes = [
            (size, stride // array.itemsize)
            for size, stride in zip(array.shape, array.strides, strict=True)
        ]
        split = len(axes) - len(self.shape)
        dense = across
        for size, stride in reversed(axes[split:]):
            if size != 1 and stride != dense:
                if across != 1:
                    raise self._refuse(
                        f"has values {stride} elements apart; in the call's first array they lie "
                        f"{across} apart: bind all arrays in rows, or all in columns as array.T of "
                        "a (values, points) array"
                    )
                raise self._not_in_place(
                    value, array, "has points that are not row-major and dense"
                )
            dense *= size
        first = following = None
        for size, stride in reversed(axes[:split]):
            if size == 1:
                continue
            if following is not None and stride != following:
                raise self._not_in_place(
                    value, array, "has no constant distance from point to point"
                )
            first = stride if first is None else first
            following = stride * size
        return first

    def _refuse(self, reason: str) -> FatalError:
        return self.label.refuse(reason, lib.NEML2_ERROR_SHAPE)

    def _not_in_place(self, value: Any, array: Array, reason: str) -> FatalError:
        library = "torch" if is_torch(value) else type(value).__module__.partition(".")[0]
        copy = _COPIES.get(library, _COPIES["numpy"])
        remedy = f"a new one of the shape {array.shape}" if self.written else f"a copy, {copy}"
        return self._refuse(f"{reason} (strides {array.strides} in bytes): bind {remedy}")

    def _no_memory(self, value: Any, why: str) -> FatalError:
        return self.label.refuse(
            f"cannot be used in place, a {type(value).__name__}: {why}. Bind an array of "
            f"{self.dtype}, and change its values",
            lib.NEML2_ERROR_DTYPE,
        )


#: What is to be bound, by key: a place with an array, True for a new one, or None.
Requested = dict[Key, tuple[Place, Any]]
