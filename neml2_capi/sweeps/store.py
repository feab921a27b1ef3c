"""Where results are kept: in memory, or in files of numpy."""

from __future__ import annotations

import contextlib
import logging
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.sweeps.work import Arrays

#: What is raised of a file that is not as it was written.
_DAMAGES = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
_log = logging.getLogger("neml2_capi.sweep")


class Store(Protocol):
    """The arrays of items, by their numbers."""

    def items(self) -> Collection[int]:
        """Those that are there."""

    def names(self) -> list[str]:
        """Of their arrays."""

    def put(self, results: Mapping[int, Arrays]) -> None:
        """Keep some; when it returns, they are there whatever happens."""

    def at(self, item: int) -> Arrays:
        """The arrays of one item."""

    def blocks(self, name: str) -> Iterator[tuple[list[int], Array]]:
        """An array of all items, some at a time: their numbers, and (items, *shape)."""


class Memory:
    """Results in memory."""

    def __init__(self) -> None:
        self._arrays: dict[int, Arrays] = {}

    def items(self) -> Collection[int]:
        return self._arrays.keys()

    def names(self) -> list[str]:
        return list(dict.fromkeys(name for arrays in self._arrays.values() for name in arrays))

    def put(self, results: Mapping[int, Arrays]) -> None:
        self._arrays.update(results)

    def at(self, item: int) -> Arrays:
        return self._arrays[item]

    def blocks(self, name: str) -> Iterator[tuple[list[int], Array]]:
        for item, arrays in self._arrays.items():
            if name in arrays:
                yield [item], arrays[name][np.newaxis]


class Files:
    """Results in files of numpy, each of one item or of several that were evaluated together.

    A file is named by its first item. It holds the numbers of its items as `__items__`, (k,), and
    arrays (k, *shape).
    """

    KEY = "__items__"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: The file of an item, and its row there.
        self._places: dict[int, tuple[Path, int]] = {}
        self._names: dict[str, None] = {}
        folder.mkdir(exist_ok=True)
        for file in sorted(folder.glob("*.npz")):
            self._read(file)

    def items(self) -> Collection[int]:
        return self._places.keys()

    def names(self) -> list[str]:
        return list(self._names)

    def put(self, results: Mapping[int, Arrays]) -> None:
        alike: dict[object, list[int]] = {}
        for item, arrays in results.items():
            shape = tuple((name, array.shape, array.dtype) for name, array in arrays.items())
            alike.setdefault(shape, []).append(item)
        for items in alike.values():
            columns = {
                name: np.stack([results[item][name] for item in items])
                for name in results[items[0]]
            }
            file = self._folder / f"{items[0]:08d}.npz"
            write(file, {self.KEY: np.array(items), **columns})
            self._add(file, items, columns)

    def at(self, item: int) -> Arrays:
        file, row = self._places[item]
        with _opened(file) as loaded:
            names = [name for name in loaded.files if name != self.KEY]
            return {name: np.asarray(loaded[name][row]) for name in names}

    def blocks(self, name: str) -> Iterator[tuple[list[int], Array]]:
        for file in dict.fromkeys(file for file, _ in self._places.values()):
            with _opened(file) as loaded:
                if name in loaded:
                    yield loaded[self.KEY].tolist(), loaded[name]

    def _read(self, file: Path) -> None:
        """Find what a file holds; one that cannot be read whole is put aside."""
        try:
            with zipfile.ZipFile(file) as archive:
                damaged = archive.testzip()
            if damaged is not None:
                raise ValueError(f"{damaged} has another checksum")
            with np.load(file) as loaded:
                items = loaded[self.KEY].tolist()
                names = [name for name in loaded.files if name != self.KEY]
        except _DAMAGES as error:
            aside = file.with_suffix(".damaged")
            _log.warning("%s is damaged, and now %s: %s", file, aside.name, error)
            file.replace(aside)
            return
        self._add(file, items, names)

    def _add(self, file: Path, items: list[int], names: Collection[str]) -> None:
        self._places.update((item, (file, row)) for row, item in enumerate(items))
        self._names.update(dict.fromkeys(names))


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """A file of results; FatalError where it has come to harm since it was checked."""
    try:
        with np.load(file) as loaded:
            yield loaded
    except _DAMAGES as error:
        raise FatalError(
            f"{file} is damaged: {error}. Make the sweep again: only the sets in it are run",
            lib.NEML2_ERROR_FILE,
            str(file),
        ) from error


def write(file: Path, arrays: Mapping[str, Array]) -> None:
    """Write a file of numpy as a whole or not at all."""
    part = file.with_suffix(".part")
    with part.open("wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]  # a name may be allow_pickle
    part.replace(file)


def absent(dtype: np.dtype[Any]) -> Any:
    """What stands in an array where there is no result."""
    return {"f": np.nan, "c": np.nan, "i": -1}.get(dtype.kind, np.zeros((), dtype)[()])
