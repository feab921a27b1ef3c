"""Where results are kept: in memory, or in files of numpy."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.refusals import NO_FILE, is_stream, reason_of
from neml2_capi.driver.npz import Damage, Npz, write_npz
from neml2_capi.sweeps.work import ITEMS, Arrays

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

    KEY = ITEMS

    def __init__(self, folder: Path, count: int, *, mend: bool) -> None:
        """What there is of `count` items.

        To `mend` is to put aside what is damaged, so that its items are made again; else it is left
        where it is, and told.
        """
        self._folder, self._count = folder, count
        #: The file of an item, and its row there.
        self._places: dict[int, tuple[Path, int]] = {}
        self._names: dict[str, None] = {}
        if mend:
            if os.path.lexists(folder) and not folder.is_dir():
                put_aside(folder, "it is no folder")
            folder.mkdir(exist_ok=True)
        for file in sorted(folder.glob("*.npz")):
            try:
                items, names = self._checked(file)
            except (OSError, Damage) as error:
                if mend:
                    put_aside(file, error)
                else:
                    _log.warning("%s is damaged: %s; the same sweep mends it", file, error)
            else:
                self._add(file, items, names)

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
            file = self._folder / _file_of(items)
            write(file, {self.KEY: np.array(items), **columns})
            self._add(file, items, columns)

    def at(self, item: int) -> Arrays:
        file, row = self._places[item]
        with self._opened(file) as npz:
            return {name: np.asarray(npz[name][row]) for name in npz.forms if name != self.KEY}

    def blocks(self, name: str) -> Iterator[tuple[list[int], Array]]:
        for file in dict.fromkeys(file for file, _ in self._places.values()):
            with self._opened(file) as npz:
                block = (npz[self.KEY].tolist(), npz[name]) if name in npz.forms else None
            if block:
                yield block

    def _checked(self, file: Path) -> tuple[list[int], list[str]]:
        """What a file holds; Damage if it is not as put() wrote it."""
        with Npz(file, compressed=False) as npz:
            npz.check()
            items = self._items(npz)
            if file.name != _file_of(items):
                raise Damage(f"it holds the items {items}, whose file is {_file_of(items)}")
            if twice := self._places.keys() & set(items):
                raise Damage(f"its item {min(twice)} is in {self._places[min(twice)][0].name}, too")
            return items, [name for name in npz.forms if name != self.KEY]

    def _items(self, npz: Npz) -> list[int]:
        """The items of the rows."""
        form = npz.forms.get(self.KEY)
        if form is None or len(form.shape) != 1 or form.dtype.kind not in "iu" or not form.shape[0]:
            raise Damage(f"it has no {self.KEY}, the numbers of its items")
        items: list[int] = npz[self.KEY].tolist()
        if len(set(items)) < len(items) or not 0 <= min(items) <= max(items) < self._count:
            raise Damage(f"its items are {items}, of {self._count} from 0")
        for name, found in npz.forms.items():
            if found.shape[:1] != form.shape:
                raise Damage(f"{name} has the shape {found.shape}, for {len(items)} items")
        return items

    @contextlib.contextmanager
    def _opened(self, file: Path) -> Iterator[Npz]:
        """A file of results; FatalError if it has come to harm since it was checked."""
        expected = [item for item, (place, _) in self._places.items() if place == file]
        try:
            with Npz(file, compressed=False) as npz:
                if self._items(npz) != expected:
                    raise Damage(f"it holds other items than {expected}")
                yield npz
        except (OSError, Damage) as error:
            raise FatalError(
                f"{file} is damaged: {error}. Make the sweep again: only the sets in it are run",
                lib.NEML2_ERROR_FILE,
                str(file),
            ) from error

    def _add(self, file: Path, items: list[int], names: Collection[str]) -> None:
        self._places.update((item, (file, row)) for row, item in enumerate(items))
        self._names.update(dict.fromkeys(names))


def _file_of(items: list[int]) -> str:
    return f"{items[0]:08d}.npz"


def put_aside(file: Path, why: object) -> None:
    """Rename what is damaged; nothing is deleted."""
    aside, number = file.with_suffix(".damaged"), 1
    while os.path.lexists(aside):
        number += 1
        aside = file.with_suffix(f".damaged-{number}")
    _log.warning("%s is damaged, and now %s: %s", file, aside.name, why)
    with told_of(file, "be put aside"):
        file.rename(aside)


@contextlib.contextmanager
def told_of(file: Path, what: str) -> Iterator[None]:
    """An error of the file system is a FatalError, and says what is to be done."""
    try:
        yield
    except OSError as error:
        raise FatalError(
            f"{file} cannot {what}: {reason_of(error)}. What is done is kept: mend that, "
            "and make the same sweep again to go on",
            lib.NEML2_ERROR_FILE,
            str(file),
        ) from error


def require_no_stream(file: Path, what: str) -> None:
    """FatalError if a path leads to a device or a pipe, which might wait for ever."""
    with told_of(file, what):
        if is_stream(file):
            raise OSError(errno.EINVAL, NO_FILE)


def write(file: Path, arrays: Mapping[str, Array]) -> None:
    """Write a file of numpy as a whole or not at all."""
    part = file.with_suffix(".part")
    with told_of(file, "be written"):
        if part.exists() and not part.is_file():
            part.rename(file.with_suffix(".damaged-part"))
        with part.open("wb") as stream:
            write_npz(stream, arrays)
        part.replace(file)


def absent(dtype: np.dtype[Any]) -> Any:
    """What stands in an array where there is no result."""
    return {"f": np.nan, "c": np.nan, "i": -1}.get(dtype.kind, np.zeros((), dtype)[()])
