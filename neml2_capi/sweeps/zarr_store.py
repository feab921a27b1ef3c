"""Results in arrays of Zarr: one for each name, (sets, *shape), with a chunk for each set."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.refusals import NO_FILE, is_stream
from neml2_capi.driver.npz import Damage
from neml2_capi.sweeps.store import absent, told_of
from neml2_capi.sweeps.work import Arrays

#: Sets that are read at once.
_BLOCK = 256
_REMEDY = "keep such results in files of numpy, with store='npz'"
_log = logging.getLogger("neml2_capi.sweep")


class Zarr:
    """A group with an array for each name in `results`, and `done`, (sets,) of bool.

    Each chunk has a checksum. All sets have the same names, and the attribute `forms` of the group
    has the shape and the element type of each.
    """

    def __init__(self, folder: Path, count: int, *, mend: bool) -> None:
        """What there is of `count` sets; to `mend` is to make what there is not."""
        try:
            import zarr
            from zarr.codecs import Crc32cCodec, ZstdCodec
        except ImportError:
            raise FatalError(
                "the store 'zarr' needs Zarr 3, and CPython 3.11 or later: install it with pip "
                "install 'neml2_capi[zarr]', or keep results in files of numpy with store='npz'",
                lib.NEML2_ERROR_MISSING,
                "store",
            ) from None
        self._folder, self._count, self._codecs = folder, count, [ZstdCodec(), Crc32cCodec()]
        self._arrays: dict[str, Any] = {}
        self._made: set[int] = set()
        if not mend and not os.path.lexists(folder):
            return
        with self._blamed(folder):
            if os.path.lexists(folder) and not (folder / "zarr.json").is_file():
                raise Damage("there is no zarr.json")
            _require_no_stream(folder)
            self._root: Any = zarr.open_group(folder, mode="a" if mend else "r")
        with self._blamed(folder / "results"):
            if mend:
                self._results: Any = self._root.require_group("results")
            else:
                self._results = self._root["results"]
        with self._blamed(folder / "done"):
            if mend or "done" in self._root:
                self._done = self._array(self._root, "done", np.zeros((), bool), count)
                made = np.flatnonzero(self._done[:]).tolist()
            else:
                made = []
        for name, form in self._forms().items():
            with self._blamed(folder / "results" / name):
                self._arrays[name] = self._known(name, form)
        with self._blamed(folder / "zarr.json"):
            if made and not self._arrays:
                raise Damage("it has no 'forms' of the results, and sets are done")
        self._made.update(self._readable(made))

    def items(self) -> Collection[int]:
        return self._made

    def names(self) -> list[str]:
        return list(self._arrays)

    def put(self, results: Mapping[int, Arrays]) -> None:
        for item, arrays in results.items():
            self._require_alike(item, arrays)
        with told_of(self._folder, "be written"):
            for item, arrays in results.items():
                for name, value in arrays.items():
                    self._arrays[name][item] = value
            if results:
                self._done[np.array(list(results))] = True
        self._made.update(results)

    def at(self, item: int) -> Arrays:
        with self._blamed(self._folder):
            return {name: np.asarray(array[item]) for name, array in self._arrays.items()}

    def blocks(self, name: str) -> Iterator[tuple[list[int], Array]]:
        made = sorted(self._made)
        for begin in range(0, len(made), _BLOCK):
            items = made[begin : begin + _BLOCK]
            with self._blamed(self._folder / "results" / name):
                block = np.asarray(self._arrays[name].oindex[np.array(items)])
            yield items, block

    def _require_alike(self, item: int, arrays: Arrays) -> None:
        """FatalError if a set gives other arrays than those before; the first makes them."""
        if not self._made and not self._arrays:
            for name, value in arrays.items():
                with self._blamed(self._folder / "results" / name):
                    self._arrays[name] = self._new(item, name, value)
            self._root.attrs["forms"] = {
                name: [list(value.shape), value.dtype.str] for name, value in arrays.items()
            }
        if arrays.keys() != self._arrays.keys():
            raise FatalError(
                f"set {item} has the results {', '.join(arrays) or 'none'}, and others "
                f"{', '.join(self._arrays) or 'none'}; {_REMEDY}",
                lib.NEML2_ERROR_NAME,
            )
        for name, value in arrays.items():
            array = self._arrays[name]
            if array.shape[1:] != value.shape or array.dtype != value.dtype:
                raise FatalError(
                    f"result {name!r} of set {item} has the shape {value.shape} and "
                    f"{value.dtype}, and {array.shape[1:]} and {array.dtype} of others; {_REMEDY}",
                    lib.NEML2_ERROR_SHAPE,
                    name,
                )

    def _new(self, item: int, name: str, like: Array) -> Any:
        """The array of a result; FatalError if Zarr cannot make one of its name and type."""
        try:
            if "\\" in name or not {"", ".", ".."}.isdisjoint(name.split("/")):
                raise ValueError("its name is no path in a folder")
            with told_of(self._folder / "results", "be written"):
                return self._array(self._results, name, like, 1)
        except (FatalError, Damage):
            raise
        except Exception as error:  # whatever Zarr raises
            raise FatalError(
                f"result {name!r} of set {item} cannot be an array of Zarr: {error}; name it "
                f"otherwise, or {_REMEDY}",
                lib.NEML2_ERROR_NAME,
                name,
            ) from error

    def _array(self, group: Any, name: str, like: Array, chunk: int) -> Any:
        """The array of a name, which is made for values like this one."""
        if name not in group:
            group.create_array(
                name,
                shape=(self._count, *like.shape),
                chunks=(chunk, *(max(size, 1) for size in like.shape)),
                dtype=like.dtype,
                fill_value=absent(like.dtype),
                compressors=self._codecs,
                config={"write_empty_chunks": True},  # one that is not there is damaged
            )
        return self._checked(group[name], (self._count, *like.shape), like.dtype, chunk)

    def _forms(self) -> dict[str, Any]:
        """The forms by name; for an earlier sweep, its arrays have them."""
        with self._blamed(self._folder):
            forms = self._root.attrs.get("forms")
            if forms is None:
                return dict.fromkeys(self._root.attrs.get("names", []))
            if not isinstance(forms, dict):
                raise Damage("the attribute 'forms' is no table")
            return forms

    def _known(self, name: str, form: Any) -> Any:
        array = self._results[name]
        if form is None:
            return self._checked(array, (self._count, *array.shape[1:]), array.dtype, 1)
        shape, dtype = form
        return self._checked(array, (self._count, *shape), np.dtype(dtype), 1)

    @staticmethod
    def _checked(array: Any, shape: tuple[int, ...], dtype: Any, chunk: int) -> Any:
        found = (tuple(array.shape), array.dtype, array.chunks[0])
        if found != (shape, dtype, chunk):
            raise Damage(f"it has the shape, type and chunks {found}; expected {shape}, {dtype}")
        return array

    def _readable(self, items: list[int]) -> Iterator[int]:
        """Yield the items of which all chunks are there, and whole."""
        for begin in range(0, len(items), _BLOCK):
            block = items[begin : begin + _BLOCK]
            if self._damage(block) is None:
                yield from block
                continue
            for item in block:
                damage = self._damage([item])
                if damage is None:
                    yield item
                else:
                    _log.warning("set %d is damaged, and is run again: %s", item, damage)

    def _damage(self, items: list[int]) -> Exception | None:
        try:
            for name, array in self._arrays.items():
                for item in items:
                    self._require_chunk(name, array, item)
                array.oindex[np.array(items)]
        except Exception as error:  # of whatever codec
            return error
        return None

    def _require_chunk(self, name: str, array: Any, item: int) -> None:
        """Damage if Zarr would read what is absent."""
        place = (item, *[0] * (array.ndim - 1))
        file = self._folder / "results" / name / array.metadata.encode_chunk_key(place)
        if not file.is_file() and array[item : item + 1].size:
            raise Damage(f"there is no {file}")

    @contextmanager
    def _blamed(self, part: Path) -> Iterator[None]:
        """Whatever Zarr raises of a damaged folder is a FatalError with what to do."""
        try:
            yield
        except FatalError:
            raise
        except Exception as error:
            raise FatalError(
                f"{part} is damaged: {type(error).__name__}: {error}. Restore it from a copy; or "
                f"rename {self._folder.name}, and make the same sweep again, which runs all sets",
                lib.NEML2_ERROR_FILE,
                str(part),
            ) from error


def _require_no_stream(folder: Path) -> None:
    """Damage if Zarr would wait for a pipe."""
    for place, _, files in os.walk(folder):
        for file in files:
            if is_stream(Path(place) / file):
                raise Damage(f"{Path(place) / file}: {NO_FILE}")
