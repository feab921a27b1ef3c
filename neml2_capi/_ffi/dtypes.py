"""Element types: their codes in neml2_capi.h, and in numpy and torch."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib

#: Element types by the codes of neml2_capi.h.
DTYPE_NAMES: dict[int, str] = {
    lib.NEML2_FLOAT64: "float64",
    lib.NEML2_FLOAT32: "float32",
    lib.NEML2_INT64: "int64",
    lib.NEML2_INT32: "int32",
    lib.NEML2_INT16: "int16",
    lib.NEML2_INT8: "int8",
    lib.NEML2_UINT8: "uint8",
    lib.NEML2_BOOL: "bool",
    lib.NEML2_FLOAT16: "float16",
    lib.NEML2_BFLOAT16: "bfloat16",
}

# numpy has no bfloat16. Types of the other byte order are not equal to these, and so not found.
NUMPY_TYPES = {code: np.dtype(name) for code, name in DTYPE_NAMES.items() if name != "bfloat16"}
#: The codes of numpy types.
CODES = {dtype: code for code, dtype in NUMPY_TYPES.items()}


@cache
def _bfloat16() -> np.dtype[Any] | None:
    """Return the type that ml_dtypes adds to numpy, if it is installed."""
    try:
        dtype: np.dtype[Any] = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError:
        return None
    return dtype


def numpy_type(code: int) -> np.dtype[Any] | None:
    """Return numpy's type of a code; None for bfloat16 if ml_dtypes is not installed."""
    return NUMPY_TYPES.get(code) or _bfloat16()


@cache
def torch_codes(torch: Any) -> Mapping[Any, int]:
    """Return the codes of torch's types."""
    return {getattr(torch, name): code for code, name in DTYPE_NAMES.items()}


def dtype_code(name: str) -> int:
    """The code of an element type."""
    for code, known in DTYPE_NAMES.items():
        if known == name:
            return code
    raise FatalError(
        f"unknown element type {name!r}; there are: {', '.join(DTYPE_NAMES.values())}",
        lib.NEML2_ERROR_DTYPE,
        str(name),
    )


def lossless(value: Any, dtype: str) -> Any:
    """Integers, or one number of numpy, in the element type `dtype` if that keeps values."""
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype == dtype:
        return value
    if value.dtype.kind not in ("iuf" if value.ndim == 0 else "iu") or np.ma.is_masked(value):
        return value
    converted = np.asarray(value).astype(dtype)
    back = converted.astype(value.dtype)
    same = np.array_equal(back, value, equal_nan=value.dtype.kind == "f")
    return converted if same else value
