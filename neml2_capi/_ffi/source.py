"""Structure that says what to open, with numbers for the names that users give."""

from __future__ import annotations

import os
from typing import Any

from neml2_capi._ffi.inspection import device_code, runtime_code, sized
from neml2_capi._ffi.library import ffi
from neml2_capi._ffi.strings import c_string
from neml2_capi._ffi.tensor import dtype_code


class NativeSource:
    """A neml2_source, and the texts and bytes that it points to."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        content: bytes | None = None,
        name: str | None = None,
        dtype: str | None = None,
        device: str | None = None,
        runtime: str = "auto",
        scheduler: Any = ffi.NULL,
    ) -> None:
        self._path, self._name = _text(path), _text(name)
        self._content = ffi.NULL if content is None else ffi.from_buffer(content)
        kind, index = (0, 0) if device is None else device_code(device)
        self.pointer = sized(
            "neml2_source",
            path=self._path,
            name=self._name,
            content=self._content,
            content_size=0 if content is None else len(content),
            scheduler=scheduler,
            dtype=0 if dtype is None else dtype_code(dtype),
            device=kind,
            device_index=index,
            runtime=runtime_code(runtime),
        )


def _text(value: str | os.PathLike[str] | None) -> Any:
    """A text that a structure can point to."""
    return ffi.NULL if value is None else ffi.new("char[]", c_string(value))
