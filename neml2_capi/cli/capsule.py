"""A capsule: what the library wrote of a call that failed."""

from __future__ import annotations

import json
import math
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import __version__
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.cli.capsule_checks import require_complete

Arrays = dict[str, NDArray[Any]]
_FORMAT = 1
_DOCUMENT = "capsule.json"
_LONGEST = 1 << 24  # bytes of the document
_AXES = 32
#: What readers of zip files, headers of arrays and JSON raise of damaged ones.
_MALFORMED = (
    zipfile.BadZipFile,
    tokenize.TokenError,
    EOFError,
    OSError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    ValueError,
)


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
    """FatalError if it is no capsule, or one of a later library.

    Nothing in it is trusted: sizes are compared before an array is read, and no more is read than
    the file holds.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _require_own_bytes(archive, file.stat().st_size)
            document = _document(archive)
            arrays = {
                entry.filename.removesuffix(".npy"): _array(archive, entry)
                for entry in archive.infolist()
                if entry.filename != _DOCUMENT
            }
        require_complete(document, arrays)
    except _MALFORMED as error:
        raise FatalError(
            f"{file} is not a capsule, which the option capsule writes of a failed call: {error}",
            lib.NEML2_ERROR_ARTIFACT,
            str(file),
        ) from error
    if document.get("format") != _FORMAT:
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


def _require_own_bytes(archive: zipfile.ZipFile, size: int) -> None:
    """ValueError if entries share bytes, so that they are longer than the file."""
    if sum(entry.compress_size for entry in archive.infolist()) > size:
        raise ValueError("its entries are longer than the file")


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    """Open an entry. ValueError for one that is compressed: a short one could fill memory."""
    if entry.flag_bits & 1:
        raise ValueError(f"{entry.filename} is encrypted")
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise ValueError(f"{entry.filename} is compressed, and capsules are stored")
    return archive.open(entry)


def _document(archive: zipfile.ZipFile) -> dict[str, Any]:
    names = [entry.filename for entry in archive.infolist()]
    if len(set(names)) < len(names):
        raise ValueError("it has two entries of one name")
    if _DOCUMENT not in names:
        raise ValueError(f"it has no {_DOCUMENT}")
    entry = archive.getinfo(_DOCUMENT)
    if entry.file_size > _LONGEST:
        raise ValueError(f"{_DOCUMENT} has {entry.file_size} bytes, expected at most {_LONGEST}")
    with _content(archive, entry) as content:
        try:
            document = json.loads(content.read())
        except RecursionError:
            raise ValueError(f"{_DOCUMENT} is nested too deep") from None
    if not isinstance(document, dict):
        raise ValueError(f"{_DOCUMENT} is not an object")
    return document


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Read an array of numbers, whose header must tell as many as there are."""
    with _content(archive, entry) as content:
        version = np.lib.format.read_magic(content)
        if version != (1, 0):
            raise ValueError(f"{entry.filename} is of version {version}, expected (1, 0)")
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(content)
        if dtype.kind not in "biuf" or by_columns:
            raise ValueError(f"{entry.filename} is not an array of numbers in C's order")
        data = content.read()
    if len(data) != math.prod(shape) * dtype.itemsize or len(shape) > _AXES:
        raise ValueError(f"{entry.filename} holds {len(data)} bytes; its shape is {shape}")
    return np.frombuffer(data, dtype).reshape(shape)


def _folder(arrays: Arrays, name: str) -> Arrays:
    prefix = f"{name}/"
    return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}


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
