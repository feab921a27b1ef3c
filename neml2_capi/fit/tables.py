"""Measurements as columns: text files, as machines and spreadsheets write them, and data frames."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.refusals import reason_of
from neml2_capi.driver.arguments import file_name
from neml2_capi.fit.units import factor, in_brackets

Array = NDArray[np.float64]

_MISSING = {"", "nan", "na", "n/a", "-", "none", "null"}
_QUANTITIES = ("t", "strain", "stress")


def read_csv(
    file: str | os.PathLike[str],
    columns: Mapping[str, str],
    units: Mapping[str, str],
    decimal: str,
    separator: str | None,
) -> dict[str, Any]:
    """Arguments of Experiment.of(), of a file; FatalError has the line."""
    path = file_name("file", file)
    if decimal not in (".", ","):
        raise _refused(path, f"decimal must be '.' or ','; got {decimal!r}")
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:  # noqa: PTH123
            lines = [(n, line) for n, line in enumerate(stream, 1) if _counts(line)]
    except OSError as error:
        raise FatalError(f"{path}: {reason_of(error)}", lib.NEML2_ERROR_FILE, "file") from error
    except UnicodeDecodeError as error:
        raise _refused(path, f"is no text in UTF-8: {error}") from error
    if len(lines) < 2:
        raise _refused(path, "expected a line with names of columns, and rows of numbers")
    mark = separator or _separator(lines[0][1])
    rows = list(csv.reader((line for _, line in lines), delimiter=mark, skipinitialspace=True))
    names = [name.strip() for name in rows[0]]
    chosen = _chosen(names, columns, path)
    numbers: dict[str, list[float]] = {quantity: [] for quantity in chosen}
    for (line, _), row in zip(lines[1:], rows[1:], strict=True):
        if len(row) > len(names) and any(field.strip() for field in row[len(names) :]):
            comma = (
                ": decimal commas look like separators. Save the file with ';' between columns, "
                'and say decimal = ","'
                if mark == ","
                else ""
            )
            raise _refused(
                path, f"line {line} has {len(row)} fields, and the first one {len(names)}{comma}"
            )
        for quantity, place in chosen.items():
            field = row[place].strip() if place < len(row) else ""
            numbers[quantity].append(_number(path, line, names[place], field, decimal))
    return _scaled(
        {q: np.array(v) for q, v in numbers.items()},
        {q: names[place] for q, place in chosen.items()},
        units,
    )


def read_frame(frame: Any, columns: Mapping[str, str], units: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of Experiment.of(), of a data frame or a mapping."""
    names = [str(name) for name in (frame.columns if hasattr(frame, "columns") else frame)]
    chosen = _chosen(names, columns, "the data frame")
    values = {}
    for quantity, place in chosen.items():
        try:
            values[quantity] = np.array(frame[names[place]], float)
        except (TypeError, ValueError) as error:
            raise FatalError(
                f"the column {names[place]!r} has what is no number: {error}",
                lib.NEML2_ERROR_DTYPE,
                names[place],
            ) from None
    return _scaled(values, {q: names[place] for q, place in chosen.items()}, units)


def _counts(line: str) -> bool:
    return bool(line.strip(" \t\r\n,;")) and not line.lstrip().startswith("#")


def _separator(line: str) -> str:
    return next((mark for mark in "\t;,|" if mark in line), ",")


def _bare(name: str) -> str:
    """The name of a column without its unit, in small letters."""
    for opening in "[(":
        name = name.partition(opening)[0] or name
    return name.strip().lower()


_ALSO = {
    "t": ("time", "seconds"),
    "strain": ("eps", "epsilon", "strain.xx"),
    "stress": ("sigma", "sig", "stress.xx"),
}


def _chosen(names: list[str], columns: Mapping[str, str], where: str) -> dict[str, int]:
    """By quantity, the place of its column."""
    chosen = {}
    for quantity, name in columns.items():
        if quantity.partition(".")[0] not in _QUANTITIES:
            raise unknown_name("quantity", quantity, (*_QUANTITIES, "strain.xy", "stress.xy"))
        fitting = [place for place, each in enumerate(names) if name in (each, _plain(each))]
        if not fitting:
            raise FatalError(
                f"{where}: {unknown_name('column', name, names)}", lib.NEML2_ERROR_NAME, name
            )
        chosen[quantity] = fitting[0]
    if columns:
        return chosen
    for quantity in _QUANTITIES:
        for place, name in enumerate(names):
            bare = _bare(name)
            if bare == quantity or bare in _ALSO[quantity]:
                chosen.setdefault(quantity, place)
            elif bare.startswith(f"{quantity}."):
                chosen[bare] = place
    missing = [q for q in ("strain", "stress") if not any(c.partition(".")[0] == q for c in chosen)]
    if missing:
        raise FatalError(
            f"{where}: there is no column {missing[0]!r}. The columns are: {', '.join(names)}. Say "
            f'which it is: columns = {{{missing[0]} = "{names[-1]}"}}',
            lib.NEML2_ERROR_NAME,
            missing[0],
        )
    return chosen


def _plain(name: str) -> str:
    return name.partition("[")[0].partition("(")[0].strip()


def _number(path: str, line: int, column: str, field: str, decimal: str) -> float:
    if field.lower() in _MISSING:
        return float("nan")
    if decimal == "," and "." in field:
        raise _refused(
            path, f"line {line}, column {column!r}: {field!r} has a point, and decimal is ','"
        )
    try:
        return float(field.replace(",", ".") if decimal == "," else field)
    except ValueError:
        hint = ': it has a decimal comma; say decimal = ","' if _has_comma(field) else ""
        raise _refused(
            path, f"line {line}, column {column!r}: {field!r} is no number{hint}"
        ) from None


def _has_comma(field: str) -> bool:
    try:
        float(field.replace(",", ".", 1))
    except ValueError:
        return False
    return "," in field


def _scaled(
    values: Mapping[str, Array], names: Mapping[str, str], units: Mapping[str, str]
) -> dict[str, Any]:
    """Quantities in MPa and s; components of strain and stress by name."""
    for quantity in units:
        if quantity.partition(".")[0] not in _QUANTITIES:
            raise unknown_name("quantity with a unit", quantity, _QUANTITIES)
    found: dict[str, Any] = {}
    for quantity, array in values.items():
        kind, _, part = quantity.partition(".")
        unit = units.get(quantity) or units.get(kind) or in_brackets(names[quantity], quantity)
        scaled = array * factor(quantity, unit) if unit else array
        if kind == "t":
            found["t"] = scaled
        else:
            found.setdefault(kind, {})[part or "xx"] = scaled
    return found


def _refused(path: str, problem: str) -> FatalError:
    return FatalError(f"{path}: {problem}", lib.NEML2_ERROR_ARGUMENT, "file")
