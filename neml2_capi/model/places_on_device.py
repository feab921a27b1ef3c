"""Arrays of a call that are on a device: where, in which layout, and new ones like them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.on_device import Memory, memory_of, require_device, view
from neml2_capi.model.binding import Key, Place, Requested, Shape


def memory_in(groups: Mapping[str, Any]) -> Memory | None:
    """The memory of the arrays, if they are on a device."""
    for values in groups.values():
        for value in values.values() if isinstance(values, Mapping) else ():
            for array in value.values() if isinstance(value, Mapping) else (value,):
                if (memory := memory_of(array)) is not None:
                    return memory
    return None


def distance(requested: Requested, views: Mapping[Key, Array]) -> int:
    """The elements from one value of a point to the next, by the first array that tells."""
    for key, array in views.items():
        shape = requested[key][0].shape
        for size, stride in zip(reversed(shape), reversed(array.strides), strict=False):
            if size != 1 and array.size > math.prod(shape):
                return max(stride // array.itemsize, 1)
    return 1


def new_array(memory: Memory, place: Place, batch: Shape, across: int) -> Any:
    """A new array on the device, in rows or columns as the others are."""
    if across == 1 or math.prod(place.shape) == 1 or math.prod(batch) == 1:
        return memory.new(batch + place.shape, place.dtype)
    if across != math.prod(batch):
        raise place.label.refuse(
            f"has no array, and is to have values {across} elements apart: bind one",
            lib.NEML2_ERROR_SHAPE,
        )
    made = memory.new(place.shape + batch, place.dtype)
    rank = len(place.shape)
    axes = (*range(rank, rank + len(batch)), *range(rank))
    return memory.transposed(made, axes)


def view_on(own: Memory, device: Any, place: Place, value: Any) -> Array:
    """Return the view of an array; FatalError if it is not where the others of a call are."""
    memory = memory_of(value)
    if memory is None or memory[:4] != own[:4]:
        raise place.label.refuse(
            "is not where the other arrays are: bind arrays of one library, on one queue or "
            "stream of the device, or numbers",
            lib.NEML2_ERROR_UNSUPPORTED,
        )
    require_device(memory.device, place.label, device)
    return place.view(view(value, place.label))
