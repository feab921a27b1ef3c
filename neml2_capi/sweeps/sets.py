"""Parameter sets: a table with a row for each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, overload

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import is_torch
from neml2_capi.driver.forces import as_array


class Columns(Protocol):
    """Arrays by name: a mapping, or a table as pandas has it."""

    def keys(self) -> Iterable[Any]: ...

    def __getitem__(self, name: Any, /) -> Any: ...


class Sets(Sequence[dict[str, Any]]):
    """Parameter sets by their number; as columns, arrays (sets, *shape of a value) by name."""

    def __init__(self, given: Columns | Iterable[Mapping[str, Any]]) -> None:
        """Of columns, or of mappings, one for each set.

        FatalError names what does not fit the others.
        """
        # A table of pandas has keys(), too, but is no Mapping.
        if not hasattr(given, "keys") and not isinstance(given, Iterable):
            raise _refused(
                f"are columns by name, or a list of mappings; got a {type(given).__name__}"
            )
        table: Any = given if hasattr(given, "keys") else _columns(list(given))
        columns = {str(name): _column(str(name), table[name]) for name in table.keys()}  # noqa: SIM118
        self.columns: dict[str, Array] = columns
        lengths = {name: len(column) for name, column in columns.items()}
        if not lengths or not all(lengths.values()):
            raise _refused("are empty; expected a column for each parameter, with a value per set")
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
            raise _refused(f"must have one length, the sweep's; {told}")
        self._length = next(iter(lengths.values()))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, item: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, item: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, item: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(item, slice):
            return [self[number] for number in range(*item.indices(len(self)))]
        return {name: column[item] for name, column in self.columns.items()}


def _columns(rows: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    first = rows[0] if rows else {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise _refused(
                f"are columns by name, or a list of mappings; set {number} is a "
                f"{type(row).__name__}"
            )
        if set(row) != set(first):
            raise _refused(
                f"must have the same names in each set; set 0 has {', '.join(map(str, first))}, "
                f"and set {number} {', '.join(map(str, row)) or 'none'}"
            )
        for name, value in row.items():
            if np.shape(value) != np.shape(first[name]):
                raise _refused(
                    f"must have one shape for each name; {name!r} has {np.shape(first[name])} in "
                    f"set 0, and {np.shape(value)} in set {number}",
                    name,
                )
    return {name: [row[name] for row in rows] for name in first}


def _column(name: str, given: Any) -> Array:
    if np.ma.is_masked(given):
        raise _refused(f"{name!r} is masked: leave these sets out, or fill it first", name)
    try:
        column: Array = np.array(
            as_array(given, Label("parameter", name)) if is_torch(given) else given
        )
    except ValueError as error:
        raise _refused(f"{name!r} has rows of different shapes: {error}", name) from None
    if column.ndim == 0:
        raise _refused(
            f"{name!r} is one value; expected an array (sets, *shape of a value), one for each set",
            name,
        )
    if column.dtype.hasobject:
        raise _refused(f"{name!r} is of objects; expected numbers, or texts", name)
    return column


def _refused(what: str, name: str = "") -> FatalError:
    return FatalError(f"the parameter sets: {what}", lib.NEML2_ERROR_ARGUMENT, name or "parameters")
