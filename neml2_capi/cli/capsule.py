"""A capsule: what the library wrote of a call that failed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import __version__
from neml2_capi._document import MAYBE, Node, parse_json
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.driver.npz import Damage, Npz

Arrays = dict[str, NDArray[Any]]
_FORMAT = 1
_DOCUMENT = "capsule.json"
#: What is read of capsule.json.
_FORM: Any = {
    "time": str,
    "library": {"version": str, "abi": int},
    "host": {"name": str, "processor": str},
    "artifact": {"path": str, "dtype": str, "files": dict},
    "views": (dict, MAYBE),
    "options": {str: (float, str)},
    "operation": {
        "outputs": [str],
        "derivatives": [str],
        "parameter_derivatives": [str],
        "jvps": [str],
        "adjoints": [str],
        "parameter_adjoints": [str],
    },
    "status": int,
    "message": str,
    "batch": int,
    "kept": str,
}
_FILE = {"bytes": int, "crc32": str}
_VIEW_WORDS = ("hypothesis", "strain_measure", "stress_measure", "strain", "stress")
_VIEWS = {"material_axes": bool, **dict.fromkeys(_VIEW_WORDS, str)}
_REPORTS = {"status": "i", "iterations": "i", "residual_norm": "f", "suggested_cut": "f"}


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

    @property
    def views(self) -> dict[str, Any]:
        """Arguments of Model(), by which it was more than the law of the artifact."""
        told = self.document.get("views", {})
        given: dict[str, Any] = {name: told[name] for name in _VIEW_WORDS if told.get(name)}
        return given | {"material_axes": told.get("material_axes", False)}

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
    """FatalError if it is no capsule, or one of a later library.

    Nothing in it is trusted: sizes are compared before an array is read, and no more is read than
    the file holds.
    """
    try:
        with Npz(file, compressed=False, beside=_DOCUMENT) as npz:
            if npz.text is None:
                raise Damage(f"it has no {_DOCUMENT}")
            document = parse_json(Path(_DOCUMENT), npz.text)
            version = document.required("format", f"{_FORMAT}").whole("the number of a format")
            arrays = {name: npz[name] for name in npz.forms}
        if version == _FORMAT:
            _require_complete(document, arrays)
    except (OSError, Damage, FatalError) as error:
        raise FatalError(
            f"{file} is not a capsule, which the option capsule writes of a failed call: {error}",
            lib.NEML2_ERROR_ARTIFACT,
            str(file),
        ) from error
    if version != _FORMAT:
        raise FatalError(
            f"{file} has the format {version}; this version reads {_FORMAT}",
            lib.NEML2_ERROR_UNSUPPORTED,
            str(file),
        )
    folders = ("inputs", "parameters", "tangents", "cotangents", "report")
    of_folder: dict[str, Arrays] = {
        folder: {
            name.removeprefix(f"{folder}/"): array
            for name, array in arrays.items()
            if name.startswith(f"{folder}/")
        }
        for folder in folders
    }
    return Capsule(file, document.value, **of_folder, points=arrays["points"])


def _require_complete(document: Node, arrays: Arrays) -> None:
    """FatalError or Damage if something is missing or of another kind, with its name."""
    document.require(_FORM)
    if "views" in document:
        document["views"].require(_VIEWS)
    for entry in document["artifact"]["files"].table().values():
        if entry.value is not None:
            entry.require(_FILE)
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise Damage(f"{name} is not an array of numbers")
    points = arrays.get("points")
    if points is None or points.ndim != 1 or points.dtype != np.int64:
        raise Damage("it has no list of the points, 'points'")
    reports = {name for name in arrays if name.startswith("report/")}
    if reports and reports != {f"report/{name}" for name in _REPORTS}:
        raise Damage("its report is not complete")
    for name in reports:
        kind = _REPORTS[name.removeprefix("report/")]
        if arrays[name].shape != points.shape or arrays[name].dtype.kind != kind:
            raise Damage(f"{name} does not have a value for each of the points")


def _fingerprint(metadata: Path, name: str, dtype: str) -> dict[str, Any] | None:
    """Of a file of an artifact, whatever the schema: packages lie beside the metadata, or below."""
    root = metadata.parent
    if Path(name).name != name:
        return None
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
