"""Files of states, of safetensors, as neml2_call_state_save() writes them: capi/checkpoint."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.outside import written
from neml2_capi._ffi.refusals import NO_FILE, is_stream, reason_of
from neml2_capi._ffi.strings import require_path

_FORMAT = "neml2_state 1"
_WORD = 8
_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4"}
_NAMES = {dtype[1:]: name for name, dtype in _DTYPES.items()}
_CHECKSUM = "checksum"


class Damage(ValueError):
    """Why a file is not one that write_state() wrote."""


def write_state(
    path: str | os.PathLike[str], arrays: Mapping[str, Array], told: Mapping[str, str]
) -> None:
    """Write arrays and texts to a file that replaces the one before when it is whole.

    Parameters
    ----------
    path
        The file.
    arrays
        By name, of floating-point numbers or of integers of 32 and 64 bits.
    told
        What is known of them: "artifact", "views" if there are any, "npoints", "step", "time".

    Raises
    ------
    FatalError
        The file cannot be written, or the path leads to a device, a pipe or a socket.
    """
    if is_stream(path):
        raise FatalError(
            f"the state cannot be written to {os.fspath(path)}: {NO_FILE}",
            lib.NEML2_ERROR_FILE,
            "path",
        )
    header: dict[str, Any] = {"__metadata__": {"format": _FORMAT, **told}}
    parts, end = [], 0
    for name, array in arrays.items():
        kind = _NAMES[f"{array.dtype.kind}{array.dtype.itemsize}"]
        part = np.ascontiguousarray(array, _DTYPES[kind]).tobytes()
        offsets = [end, end + len(part)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}
        parts.append(part.ljust(-(-len(part) // _WORD) * _WORD, b"\0"))
        end += len(parts[-1])
    header[_CHECKSUM] = {"dtype": "I64", "shape": [1], "data_offsets": [end, end + _WORD]}
    text = json.dumps(header).encode()
    text = text.ljust(-(-len(text) // _WORD) * _WORD)
    content = b"".join([len(text).to_bytes(_WORD, "little"), text, *parts])
    with written(path, "the state") as stream:
        stream.write(content)
        stream.write(zlib.crc32(content).to_bytes(_WORD, "little"))


def read_state(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """Read what write_state() or neml2_call_state_save() wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    tuple
        The arrays and the texts, by name.

    Raises
    ------
    FatalError
        The file cannot be read, is damaged, or is another one.
    """
    require_path(path)
    try:
        if is_stream(path):
            raise Damage(NO_FILE)
        content = Path(path).read_bytes()
        return _parsed(content)
    except (OSError, Damage) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise FatalError(
            f"{os.fspath(path)} is not a state that can be read: {reason}. Continue from another "
            "file, or begin anew",
            lib.NEML2_ERROR_FILE,
            "path",
        ) from error


def _parsed(content: bytes) -> tuple[dict[str, Array], dict[str, str]]:
    if (
        len(content) < 3 * _WORD
        or zlib.crc32(content[:-_WORD]) != int.from_bytes(content[-_WORD:], "little")
        or (length := int.from_bytes(content[:_WORD], "little")) > len(content) - 2 * _WORD
    ):
        raise Damage("its checksum differs, so that it is damaged, truncated or no such file")
    numbers = content[_WORD + length :]
    try:
        header = json.loads(content[_WORD : _WORD + length])
        told = {str(key): str(value) for key, value in header.pop("__metadata__").items()}
        del header[_CHECKSUM]
        arrays = {}
        for name, entry in header.items():
            shape, kind = tuple(entry["shape"]), np.dtype(_DTYPES[entry["dtype"]])
            begin, count = entry["data_offsets"][0], math.prod(shape)
            if begin < 0 or min(shape, default=0) < 0:
                raise ValueError(f"{name} begins at {begin}, with the shape {shape}")
            arrays[name] = np.frombuffer(numbers, kind, count, begin).reshape(shape).copy()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Damage(f"its header is none ({error})") from error
    if told.get("format") != _FORMAT:
        raise Damage(f"it is of the format {told.get('format')!r}, not {_FORMAT!r}")
    return arrays, told


def require_same(
    path: str | os.PathLike[str], told: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    """Refuse a state of another artifact, or of one that was opened otherwise.

    Parameters
    ----------
    path
        The file.
    told
        What is known of it.
    expected
        What write_state() is told of the model that is open: "artifact", and "views" if it has any.

    Raises
    ------
    FatalError
        It was written with another one.
    """
    if told.get("artifact") != expected["artifact"]:
        problem = (
            f"another artifact, whose checksum is {told.get('artifact')}; this one has "
            f"{expected['artifact']}. Open the artifact of then"
        )
    elif told.get("views", "") != expected.get("views", ""):
        then, now = (each.get("views", "") or "the law as it is" for each in (told, expected))
        problem = f"{then}; the model has {now}. Open the artifact as it was then"
    else:
        return
    raise FatalError(
        f"{os.fspath(path)} was written with {problem}", lib.NEML2_ERROR_ARTIFACT, "path"
    )
