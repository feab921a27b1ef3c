"""Columns of numbers: results for a csv file, a data frame or a plot, and lines of such files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.components import column, components
from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.variables import Variable

Columns = dict[str, NDArray[Any]]
#: The most points that a diagram names.
_MOST_NAMED = 8


def fields(line: str, mark: str = ",", file: object = "the file") -> list[str]:
    """The fields of a line of a csv file; FatalError if it cannot be split.

    A quote that is not closed ends with the line: it takes no other line in.
    """
    try:
        row = next(csv.reader([line.strip("\r\n ")], delimiter=mark, skipinitialspace=True), [])
    except csv.Error as error:
        raise FatalError(
            f"{file} has a line {line[:40]!r}... that cannot be read: {error}",
            lib.NEML2_ERROR_ARGUMENT,
            "file",
        ) from error
    return [field.strip() for field in row]


def columns_of(arrays: Mapping[str, NDArray[Any]], variables: Mapping[str, Variable]) -> Columns:
    """A column (times, *B) for each component of what was recorded: t, strain.xx, stress.xy.

    They are components of the tensors: Mandel's factors are divided out. What has no batch B has
    (times,). Derivatives have no columns.
    """
    found: Columns = {}
    for name, values in arrays.items():
        if name in variables and name != "t":
            for component in components(variables[name]):
                where: tuple[Any, ...] = (..., *component.place)
                stored = values[where]
                exact = component.factor == 1
                found[column(name, component)] = stored if exact else stored / component.factor
        elif ":" not in name:
            found[name] = values
    return found


def table_of(columns: Columns) -> dict[str, Any]:
    """Rows for each time and material point, by column; `point` counts from 0."""
    batch = np.broadcast_shapes(*(values.shape[1:] for values in columns.values()))
    rows, points = len(columns["t"]), int(np.prod(batch))
    table: dict[str, Any] = {}
    for name, values in columns.items():
        own = values.reshape(rows, *(1,) * (len(batch) + 1 - values.ndim), *values.shape[1:])
        table[name] = np.broadcast_to(own, (rows, *batch)).ravel()
    if batch:
        table = {"t": table.pop("t"), "point": np.tile(np.arange(points), rows), **table}
    return table


def write_csv(stream: IO[bytes], columns: Columns) -> None:
    """One row for each time and material point, with all digits."""
    table = {name: values.tolist() for name, values in table_of(columns).items()}
    lines = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(lines)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    lines.detach()


def axes_of(curve: str, names: list[str]) -> tuple[str, str]:
    """The columns of a curve such as "strain.xx:stress.xx"."""
    x, separator, y = str(curve).partition(":")
    if not (separator and x and y):
        raise FatalError(
            f"plot {curve!r}: expected X:Y, for example t:{names[-1]}", lib.NEML2_ERROR_ARGUMENT
        )
    for name in (x, y):
        if name not in names:
            raise unknown_name("column", name, names)
    return x, y


def draw(axes: Any, columns: Columns, curve: str, units: Mapping[str, str]) -> None:
    """One line for each material point."""
    x, y = axes_of(curve, list(columns))
    rows = len(columns["t"])
    across, up = (columns[name].reshape(rows, -1) for name in (x, y))
    if across.shape[1] > up.shape[1]:
        up = up.repeat(across.shape[1], axis=1)
    lines = axes.plot(across, up)
    if 1 < len(lines) <= _MOST_NAMED:
        axes.legend(lines, [f"point {point}" for point in range(len(lines))])
    axes.set_xlabel(_with_unit(x, units))
    axes.set_ylabel(_with_unit(y, units))
    axes.locator_params(nbins=6)
    axes.ticklabel_format(scilimits=(-2, 4))
    axes.grid(visible=True, alpha=0.3)


def _with_unit(column: str, units: Mapping[str, str]) -> str:
    unit = units.get(column) or units.get(column.rpartition(".")[0], "")
    return f"{column} ({unit})" if unit else column
