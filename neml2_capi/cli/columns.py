"""Named columns of numbers over time, from csv and npz files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.components import column, components
from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.strings import number
from neml2_capi._ffi.variables import Variable
from neml2_capi.driver.npz import read_npz
from neml2_capi.driver.tables import fields

Array = NDArray[np.float64]


class Columns(Mapping[str, Array]):
    """Arrays by name, whose first axis are the rows of a file."""

    def __init__(self, file: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.file, self._arrays = file, arrays

    def __getitem__(self, name: str) -> Array:
        try:
            values = self._arrays[name]
        except KeyError:
            raise unknown_name(f"column of {self.file}", name, self._arrays) from None
        if values.dtype.kind not in "iuf":
            raise FatalError(f"the column {name!r} of {self.file} does not hold numbers")
        if not values.ndim:
            raise FatalError(f"{name!r} of {self.file} is one number; expected rows over time")
        return values

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def variable(self, name: str, variable: Variable) -> Array:
        """(rows, *B, *point shape): one array, or a column for each component."""
        shape = variable.point_shape
        if name in self or not shape:
            array = self[name]
            if array.ndim <= len(shape) or array.shape[array.ndim - len(shape) :] != shape:
                raise FatalError(
                    f"{name!r} of {self.file} has the shape {array.shape}; expected the rows, a "
                    f"batch, and then {shape}",
                    lib.NEML2_ERROR_SHAPE,
                    name,
                )
            return array
        array = np.zeros((len(next(iter(self._arrays.values()), ())), *shape))
        for component in components(variable):
            where: tuple[Any, ...] = (slice(None), *component.place)
            array[where] = component.factor * self[column(name, component)]
        return array


def read_columns(file: Path) -> Columns:
    """Return the columns of an npz file, or of a csv file with names in its first line."""
    if file.suffix == ".npz":
        return Columns(file, read_npz(file))
    try:
        with file.open(encoding="utf-8-sig") as stream:
            lines = [(line, text) for line, text in enumerate(stream, 1) if text.strip()]
    except UnicodeDecodeError as error:
        raise FatalError(
            f"{file} is no text in UTF-8: {error}. Save it as csv in UTF-8, or as .npz"
        ) from error
    rows = [(line, fields(text, file=file)) for line, text in lines]
    if len(rows) < 2:
        raise FatalError(f"{file} is not a csv file with a line of names and lines of numbers")
    (_, names), *rows = rows
    for name in names:
        if names.count(name) > 1:
            raise FatalError(f"{file} has {names.count(name)} columns that are called {name!r}")
    for line, row in rows:
        if len(row) != len(names):
            raise FatalError(
                f"{file} has {len(row)} columns in line {line}, but {len(names)} names; expected "
                "commas between columns, and points in numbers"
            )
    columns = zip(*(row for _, row in rows), strict=True)
    return Columns(file, dict(zip(names, map(_numbers, columns), strict=True)))


def _numbers(texts: Sequence[str]) -> NDArray[Any]:
    """A column of a csv file, which may hold something else."""
    try:
        return np.array([number(text) for text in texts])
    except ValueError:
        return np.array(texts)
