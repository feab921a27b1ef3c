"""The arguments and the results of one call, as handles."""

from __future__ import annotations

from typing import Any

import numpy as np

from neml2_capi._ffi.handle import owned
from neml2_capi._ffi.kinds import Kinds
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.tensor import Label, wrap

_HANDLES = ffi.typeof("neml2_tensor *[]")


class Arguments:
    """Handles over a caller's arrays, for the length of one call; NULL where nothing was given."""

    __slots__ = ("_kinds", "_size", "_sources", "handles")

    def __init__(self, size: int, kinds: Kinds) -> None:
        """Room for `size` handles; `kinds` gets to know the kinds of their arrays."""
        self.handles = ffi.new(_HANDLES, size)
        self._kinds = kinds
        self._size = size
        self._sources: list[Any] = []

    def fill(self, index: int, value: Any, label: Label, dtype: str) -> None:
        """Put `value` at `index`; numbers and lists become `dtype`."""
        self._sources.append(wrap(self.handles + index, value, label, dtype))
        if type(value) is not np.ndarray:
            self._kinds.add(value, label)

    def __enter__(self) -> Arguments:
        return self

    def __exit__(self, *_: object) -> None:
        free(self.handles, self._size)


def results(size: int) -> Any:
    """Room for the handles that a call returns."""
    return ffi.new(_HANDLES, size)


def take(handles: Any, index: int) -> Any:
    """The handle at `index` as an owner of its own."""
    owner = owned("tensor")
    owner[0] = handles[index]
    handles[index] = ffi.NULL
    return owner


def free(handles: Any, size: int) -> None:
    """Free the handles that are still there."""
    for index in range(size):
        lib.neml2_tensor_free(handles + index)
