"""What a capsule must hold to be replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TEXTS: Any = [str]
#: Types of what is read of capsule.json; a list has one for all of its entries.
_DOCUMENT: Any = {
    "format": int,
    "time": str,
    "library": {"version": str, "abi": int},
    "host": {"name": str, "processor": str},
    "artifact": {"path": str, "dtype": str, "files": dict},
    "options": dict,
    "operation": {
        "outputs": _TEXTS,
        "derivatives": _TEXTS,
        "parameter_derivatives": _TEXTS,
        "jvps": _TEXTS,
        "adjoints": _TEXTS,
        "parameter_adjoints": _TEXTS,
    },
    "status": int,
    "message": str,
    "batch": int,
    "kept": str,
}
_FILE = {"bytes": int, "crc32": str}
_REPORTS = {"status": "i", "iterations": "i", "residual_norm": "f", "suggested_cut": "f"}


def require_complete(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """ValueError if something is missing or of another kind, with its name."""
    if isinstance(document.get("format"), int) and document["format"] != 1:
        return  # reported on its own
    _require(document, _DOCUMENT, "capsule.json")
    for name, file in document["artifact"]["files"].items():
        if file is not None:
            _require(file, _FILE, f"capsule.json: artifact.files.{name}")
    for name, value in document["options"].items():
        if not isinstance(value, (int, float, str)):
            raise ValueError(f"capsule.json: the option {name} is neither a number nor a text")
    points = arrays.get("points")
    if points is None or points.ndim != 1 or points.dtype != np.int64:
        raise ValueError("it has no list of the points, 'points'")
    reports = {name for name in arrays if name.startswith("report/")}
    if reports and reports != {f"report/{name}" for name in _REPORTS}:
        raise ValueError("its report is not complete")
    for name in reports:
        kind = _REPORTS[name.removeprefix("report/")]
        if arrays[name].shape != points.shape or arrays[name].dtype.kind != kind:
            raise ValueError(f"{name} does not have a value for each of the points")


def _require(value: Any, expected: Any, path: str) -> None:
    if isinstance(expected, dict):
        _require(value, dict, path)
        for key, kind in expected.items():
            if key not in value:
                raise ValueError(f"{path} has no field '{key}'")
            _require(value[key], kind, f"{path}: {key}")
    elif isinstance(expected, list):
        _require(value, list, path)
        for item in value:
            _require(item, expected[0], path)
    elif not isinstance(value, expected) or isinstance(value, bool):
        raise ValueError(f"{path} is not of the type {expected.__name__}")
