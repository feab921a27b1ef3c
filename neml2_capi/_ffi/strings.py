"""Texts for the library, and numbers in texts."""

from __future__ import annotations

import os
from typing import Any

from neml2_capi._ffi.errors import FatalError, ZeroByteError
from neml2_capi._ffi.library import ffi, lib


def c_string(value: str | os.PathLike[str] | None) -> Any:
    """Return what a `const char *` argument takes; None becomes NULL."""
    if value is None:
        return ffi.NULL
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ZeroByteError(
            f"{value!r} holds a zero character; expected a text without", lib.NEML2_ERROR_ARGUMENT
        )
    return encoded


def require_path(path: str | os.PathLike[str]) -> None:
    """FatalError if a path is empty, which Path takes for the folder where the process is."""
    if not os.fspath(path):
        raise FatalError("the path is empty", lib.NEML2_ERROR_ARGUMENT, "path")


def number(text: str) -> float:
    """The number that a text is; ValueError if it is none. Python's 1_0 is none."""
    if "_" in text:
        raise ValueError(text)
    return float(text)
