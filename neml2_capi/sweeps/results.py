"""What a sweep gives."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.driver import Results
from neml2_capi.driver.arguments import wrong
from neml2_capi.sweeps.folder import Folder
from neml2_capi.sweeps.store import Store, absent
from neml2_capi.sweeps.work import Failure


class SweepResults(Mapping[str, Any]):
    """The results of a sweep, a mapping of names to arrays; the first axis is the parameter set.

        stress = results["stress"]  # (sets, *shape of one), of drive (sets, times, *B, 6)
        results.parameters["E"]     # (sets,)

    If a set failed or was not made yet (see `done`) there is NaN, -1 in arrays of signed
    integers, and zero in others. An array is read when it is asked for; at() reads one set.
    """

    #: The parameter sets, arrays (sets, *shape of a value) by name.
    parameters: Mapping[str, Array]
    #: Why sets have no results, by their numbers; sets that were not made yet are not among them.
    failures: Mapping[int, Failure]
    #: Which sets have results, (sets,) of bool.
    done: Array

    def __init__(
        self, parameters: Mapping[str, Array], store: Store, failures: Mapping[int, Failure]
    ) -> None:
        self._store = store
        self.parameters = parameters
        self.done = np.zeros(len(next(iter(parameters.values()))), bool)
        self.done[list(store.items())] = True
        self.failures = {
            item: failure for item, failure in sorted(failures.items()) if not self.done[item]
        }

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> SweepResults:
        """Read the directory of a sweep, as far as it is made; nothing is evaluated.

        Parameters
        ----------
        directory
            What sweep() was given.

        Returns
        -------
        SweepResults
            The results, which are read from the directory when they are asked for.

        Raises
        ------
        FatalError
            The directory does not hold a sweep, or a file in it is damaged without which nothing
            can be read. Sets whose files are damaged count as not done, with a warning in the log.
        """
        folder = Folder(directory)
        parameters = folder.parameters()
        count = len(next(iter(parameters.values())))
        return cls(parameters, folder.store(count, mend=False), folder.failures(count))

    def __getitem__(self, name: str) -> Any:
        if name not in self._store.names():
            raise unknown_name("result", name, self._store.names())
        array, filled = np.empty(0), np.zeros(len(self.done), bool)
        for items, values in self._store.blocks(name):
            if not filled.any():
                array = _absent(len(filled), values)
            if values.shape[1:] != array.shape[1:]:
                raise FatalError(
                    f"result {name!r} has the shape {values.shape[1:]} of set {items[0]}, and "
                    f"{array.shape[1:]} of others; read each with at()",
                    lib.NEML2_ERROR_SHAPE,
                    name,
                )
            if values.dtype != array.dtype:
                array = self._widened(name, array, filled, values, items[0])
            array[items], filled[items] = values, True
        return array

    @staticmethod
    def _widened(name: str, array: Array, filled: Array, values: Array, item: int) -> Array:
        """The array in a type that holds `values`, too."""
        try:
            common = np.result_type(array, values)
        except TypeError:
            raise FatalError(
                f"result {name!r} is of {values.dtype} in set {item}, and of {array.dtype} in "
                "others; read each with at()",
                lib.NEML2_ERROR_DTYPE,
                name,
            ) from None
        wider = _absent(len(array), array[:0].astype(common))
        wider[filled] = array[filled]
        return wider

    def at(self, item: int) -> Results:
        """Read what the run gave for one set.

        Parameters
        ----------
        item
            The number of the set, from 0.

        Returns
        -------
        Results
            The arrays of this set, without the axis of sets.

        Raises
        ------
        FatalError
            There is no such set, it failed, or it was not made yet.
        """
        try:
            item = operator.index(item)
        except TypeError:
            raise wrong("item", f"must be the number of a set; got {item!r}") from None
        if not 0 <= item < len(self.done):
            raise FatalError(
                f"there is no set {item}; there are {len(self.done)}, from 0",
                lib.NEML2_ERROR_ARGUMENT,
            )
        if not self.done[item]:
            failure = self.failures.get(item)
            why = f"failed: {failure.type}: {failure.message}" if failure else "was not made yet"
            raise FatalError(f"set {item} {why}", lib.NEML2_ERROR_MISSING)
        return Results(self._store.at(item))

    def __iter__(self) -> Iterator[str]:
        return iter(self._store.names())

    def __len__(self) -> int:
        return len(self._store.names())

    def __repr__(self) -> str:
        names = ", ".join(self)
        return (
            f"<SweepResults of {len(self.done)} sets, {int(self.done.sum())} done and "
            f"{len(self.failures)} failed: {names}>"
        )


def _absent(count: int, like: Array) -> Array:
    """An array for so many sets, none of which has a result."""
    array: Array = np.full((count, *like.shape[1:]), absent(like.dtype), like.dtype)
    return array
