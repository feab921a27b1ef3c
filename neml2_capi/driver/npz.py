"""Files of numpy, .npz, whose entries are checked before memory is made for them."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.refusals import NO_FILE, is_stream, reason_of

_SUFFIX = ".npy"
#: What a compressed file may become: numpy's own zeros shrink a thousandfold.
_LARGE, _RATIO = 1 << 30, 200
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Damage(ValueError):
    """Why a file is not one that numpy.savez() wrote."""


class Form(NamedTuple):
    """What an array is, by its header."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


class Npz:
    """An open file: the forms of its arrays by name, and the arrays when they are asked for.

    Damage tells whatever is wrong: an entry that is no array, one of Python's objects, one that is
    longer or shorter than its header says.
    """

    def __init__(
        self, file: str | os.PathLike[str], *, compressed: bool = True, beside: str = ""
    ) -> None:
        """Read the headers, and the text of the entry `beside` the arrays, if there is one.

        `compressed` says whether the entries may be.
        """
        self.forms: dict[str, Form] = {}
        self.text: bytes | None = None
        self._archive: zipfile.ZipFile | None = None
        if is_stream(file):
            raise Damage(NO_FILE)
        with _blamed():
            self._archive = zipfile.ZipFile(file)
            entries = self._archive.infolist()
            if (
                sum(entry.compress_size for entry in entries)
                > Path(os.fsdecode(file)).stat().st_size
            ):
                raise Damage("its entries share bytes: they are longer than the file")
            for entry in entries:
                name = entry.filename.removesuffix(_SUFFIX)
                self._check_size(entry, compressed)
                if entry.filename == beside and self.text is None:
                    self.text = self._archive.read(entry)
                    continue
                if name == entry.filename or name in self.forms:
                    raise Damage(f"its entry {entry.filename!r} is not one array of its name")
                with self._archive.open(entry) as stream:
                    self.forms[name] = _form(entry.filename, stream, entry.file_size)

    def __getitem__(self, name: str) -> Array:
        assert self._archive is not None
        with _blamed(), self._archive.open(name + _SUFFIX) as stream:
            array: Array = np.lib.format.read_array(stream, allow_pickle=False)
            stream.read(1)  # the end, where the checksum is compared
            return array

    def check(self) -> None:
        """Damage if an entry has another checksum than it was written with."""
        assert self._archive is not None
        with _blamed():
            if damaged := self._archive.testzip():
                raise Damage(f"{damaged} has another checksum")

    def __enter__(self) -> Npz:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._archive is not None:
            self._archive.close()

    @staticmethod
    def _check_size(entry: zipfile.ZipInfo, compressed: bool) -> None:
        if entry.compress_type != zipfile.ZIP_STORED:
            if not compressed:
                raise Damage(f"{entry.filename} is compressed, which numpy.savez() does not")
            if entry.file_size > max(_LARGE, _RATIO * entry.compress_size):
                raise Damage(
                    f"{entry.filename} would be {entry.file_size} bytes, of {entry.compress_size}"
                )


def write_npz(stream: IO[bytes], arrays: Mapping[str, Array]) -> None:
    """Write arrays as numpy.savez() does, under any name."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(name + _SUFFIX, "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def read_npz(file: str | os.PathLike[str], argument: str = "path") -> dict[str, Array]:
    """All arrays of a file; FatalError, with the file, if it cannot be read."""
    try:
        with Npz(file) as npz:
            return {name: npz[name] for name in npz.forms}
    except (OSError, Damage) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise FatalError(
            f"{Path(os.fsdecode(file))} cannot be read: {reason}; expected a file of "
            "numpy.savez(), .npz",
            lib.NEML2_ERROR_FILE,
            argument,
        ) from error


@contextmanager
def _blamed() -> Iterator[None]:
    """Turn errors about damaged bytes into Damage; errors of the file system stay as they are."""
    try:
        yield
    except (OSError, Damage):
        raise
    except Exception as error:
        raise Damage(str(error) or type(error).__name__) from error


def _form(name: str, stream: IO[bytes], size: int) -> Form:
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise Damage(f"{name} is of the version {version} of numpy's format")
    shape, _, dtype = _HEADERS[version](stream)
    if dtype.hasobject:
        raise Damage(f"{name} holds objects of Python, which would be run; expected numbers")
    if any(axis < 0 for axis in shape):
        raise Damage(f"{name} has the shape {shape}")
    wanted, found = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if wanted != found:
        raise Damage(f"{name} has {found} bytes, and {wanted} by its shape {shape} of {dtype}")
    return Form(shape, dtype)
