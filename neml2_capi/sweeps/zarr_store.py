"""Results in arrays of Zarr: one for each name, (sets, *shape), with a chunk for each set."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.sweeps.store import absent
from neml2_capi.sweeps.work import Arrays

#: Sets that are read at once.
_BLOCK = 256
_log = logging.getLogger("neml2_capi.sweep")


class Zarr:
    """A group with an array for each name in `results`, and `done`, (sets,) of bool.

    Each chunk has a checksum.
    """

    def __init__(self, folder: Path, count: int) -> None:
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
        self._count, self._codecs = count, [ZstdCodec(), Crc32cCodec()]
        self._root: Any = zarr.open_group(folder, mode="a")
        self._results: Any = self._root.require_group("results")
        self._names: list[str] = list(self._root.attrs.get("names", []))
        self._done = self._array(self._root, "done", np.zeros((), bool), count)
        self._made = set(self._readable(np.flatnonzero(self._done[:]).tolist()))

    def items(self) -> Collection[int]:
        return self._made

    def names(self) -> list[str]:
        return self._names

    def put(self, results: Mapping[int, Arrays]) -> None:
        for item, arrays in results.items():
            for name, value in arrays.items():
                array = self._array(self._results, name, value, 1)
                if array.shape[1:] != value.shape or array.dtype != value.dtype:
                    raise FatalError(
                        f"result {name!r} of set {item} has the shape {value.shape} and "
                        f"{value.dtype}, and {array.shape[1:]} and {array.dtype} of others; keep "
                        "such results in files of numpy, with store='npz'",
                        lib.NEML2_ERROR_SHAPE,
                        name,
                    )
                array[item] = value
                if name not in self._names:
                    self._names.append(name)
                    self._root.attrs["names"] = self._names
        if results:
            self._done[np.array(list(results))] = True
            self._made.update(results)

    def at(self, item: int) -> Arrays:
        return {name: np.asarray(self._results[name][item]) for name in self._names}

    def blocks(self, name: str) -> Iterator[tuple[list[int], Array]]:
        made = sorted(self._made)
        for begin in range(0, len(made), _BLOCK):
            items = made[begin : begin + _BLOCK]
            yield items, np.asarray(self._results[name].oindex[np.array(items)])

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
            )
        return group[name]

    def _readable(self, items: list[int]) -> Iterator[int]:
        """Those of which all chunks are whole."""
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
            for name in self._names:
                self._results[name].oindex[np.array(items)]
        except Exception as error:  # of whatever codec
            return error
        return None
