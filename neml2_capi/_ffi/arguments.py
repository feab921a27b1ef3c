"""The arguments and the results of one call, as handles."""

from __future__ import annotations

from typing import Any

import numpy as np

from neml2_capi._ffi.dtypes import lossless
from neml2_capi._ffi.handle import owned
from neml2_capi._ffi.kinds import Kinds
from neml2_capi._ffi.labels import Label
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.tensor import wrap

_HANDLES = ffi.typeof("neml2_tensor *[]")


class Arguments:
    """Handles of arguments or results for the length of one call; NULL if there is none."""

    __slots__ = ("_kinds", "_size", "_sources", "handles")

    def __init__(self, size: int, kinds: Kinds | None = None) -> None:
        """Room for `size` handles; `kinds` gets to know the kinds of arrays that are filled in."""
        self.handles = ffi.new(_HANDLES, size)
        self._kinds = kinds
        self._size = size
        self._sources: list[Any] = []

    def fill(self, index: int, value: Any, label: Label, dtype: str) -> None:
        """Put `value` at `index`; numbers and lists become `dtype`."""
        self._sources.append(wrap(self.handles + index, lossless(value, dtype), label, dtype))
        if self._kinds is not None and type(value) is not np.ndarray:
            self._kinds.add(value, label)

    def take(self, index: int) -> Any:
        """The handle at `index` as an owner of its own."""
        owner = owned("tensor")
        owner[0] = self.handles[index]
        self.handles[index] = ffi.NULL
        return owner

    def __enter__(self) -> Arguments:
        return self

    def __exit__(self, *_: object) -> None:
        for index in range(self._size):
            lib.neml2_tensor_free(self.handles + index)
