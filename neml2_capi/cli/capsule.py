"""A capsule: what the library wrote of a call that failed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import __version__
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib

Arrays = dict[str, NDArray[Any]]
_FORMAT = 1


@dataclass(frozen=True)
class Capsule:
    """A call that failed. Arrays are (points, *point shape), or one value for all points."""

    file: Path
    #: What capsule.json says.
    document: Mapping[str, Any]
    inputs: Arrays
    parameters: Arrays
    tangents: Arrays
    cotangents: Arrays
    #: Of each point; empty after a fatal error.
    report: Arrays
    #: The numbers of the points in the batch of the call.
    points: NDArray[np.int64]

    @property
    def artifact(self) -> Path:
        """The metadata that the model was loaded from."""
        return Path(self.document["artifact"]["path"])

    def differences(self, metadata: Path) -> list[str]:
        """What is not as it was: the library, and the files of the artifact at `metadata`."""
        library = self.document["library"]
        found = []
        if library["version"] != __version__:
            found.append(f"the library was version {library['version']}, and is {__version__}")
        if library["abi"] != lib.neml2_abi_version():
            found.append(f"the ABI was {library['abi']}, and is {lib.neml2_abi_version()}")
        for name, before in self.document["artifact"]["files"].items():
            now = _fingerprint(metadata, name, self.document["artifact"]["dtype"])
            if before is not None and now != before:
                found.append(
                    f"the file {name} of the artifact is not the same: {_change(before, now)}"
                )
        return found


def read_capsule(file: Path) -> Capsule:
    """FatalError where it is no capsule, or one of a later library."""
    try:
        with np.load(file, allow_pickle=False) as entries:
            document = json.loads(entries["capsule.json"])
            arrays = {name: entries[name] for name in entries.files if name != "capsule.json"}
    except (ValueError, KeyError, AttributeError) as error:
        raise FatalError(
            f"{file} is not a capsule, which the option capsule writes of a failed call: {error}",
            lib.NEML2_ERROR_ARTIFACT,
            str(file),
        ) from error
    if document["format"] != _FORMAT:
        raise FatalError(
            f"{file} has the format {document['format']}; this version reads {_FORMAT}",
            lib.NEML2_ERROR_UNSUPPORTED,
            str(file),
        )
    return Capsule(
        file,
        document,
        _folder(arrays, "inputs"),
        _folder(arrays, "parameters"),
        _folder(arrays, "tangents"),
        _folder(arrays, "cotangents"),
        _folder(arrays, "report"),
        arrays["points"],
    )


def _folder(arrays: Arrays, name: str) -> Arrays:
    prefix = f"{name}/"
    return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}


def _fingerprint(metadata: Path, name: str, dtype: str) -> dict[str, Any] | None:
    """Of a file of an artifact, whatever the schema: packages lie beside the metadata, or below."""
    root = metadata.parent
    for path in (metadata if name == metadata.name else root / name, root / "cpu" / dtype / name):
        if path.is_file():
            content = path.read_bytes()
            return {"bytes": len(content), "crc32": f"{zlib.crc32(content):08x}"}
    return None


def _change(before: Mapping[str, Any], now: Mapping[str, Any] | None) -> str:
    if now is None:
        return "it is missing"
    return f"{_size(before)}, now {_size(now)}"


def _size(file: Mapping[str, Any]) -> str:
    return f"{file['bytes']} bytes with the CRC-32 {file['crc32']}"
