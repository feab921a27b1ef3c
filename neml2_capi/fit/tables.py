"""Measurements as columns: text files, as machines and spreadsheets write them, and data frames."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.refusals import reason_of
from neml2_capi._ffi.strings import number
from neml2_capi.driver.arguments import file_name, wrong
from neml2_capi.driver.tables import fields
from neml2_capi.fit.columns import column
from neml2_capi.fit.units import FACTORS, factor, unit_of, without_slash

Array = NDArray[np.float64]

_MISSING = {"", "nan", "na", "n/a", "#n/a", "-", "--", "none", "null"}
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
    _check_choices(columns, units)
    if decimal not in (".", ","):
        raise _refused(path, f"decimal must be '.' or ','; got {decimal!r}")
    if separator and not (isinstance(separator, str) and len(separator) == 1):
        raise _refused(path, f"separator must be one character; got {separator!r}")
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:  # noqa: PTH123
            lines = list(enumerate(stream, 1))
    except OSError as error:
        raise FatalError(f"{path}: {reason_of(error)}", lib.NEML2_ERROR_FILE, "file") from error
    except UnicodeDecodeError as error:
        raise _refused(path, f"is no text in UTF-8: {error}. Save it as UTF-8") from error
    names, mark, lines = _headed(lines, columns, decimal, separator, path)
    chosen = _chosen(names, columns, path)
    numbers: dict[str, list[float]] = {quantity: [] for quantity in chosen}
    for line, text in lines:
        row = fields(text, mark, path)
        if mark == " " and len(row) < len(names):
            raise _refused(
                path, f"line {line} has {len(row)} fields, and there are {len(names)} names"
            )
        if len(row) > len(names) and any(field.strip() for field in row[len(names) :]):
            comma = (
                ": decimal commas look like separators. Save the file with ';' between columns, "
                'and say decimal = ","'
                if mark == ","
                else ""
            )
            raise _refused(
                path, f"line {line} has {len(row)} fields, and there are {len(names)} names{comma}"
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
    _check_choices(columns, units)
    if not hasattr(frame, "columns") and not isinstance(frame, Mapping):
        raise wrong("frame", f"must be a data frame or a mapping; got a {type(frame).__name__}")
    keys = list(frame.columns if hasattr(frame, "columns") else frame)
    names = [str(key) for key in keys]
    chosen = _chosen(names, {q: str(name) for q, name in columns.items()}, "the data frame")
    values = {
        quantity: column("the column", repr(names[place]), frame[keys[place]])
        for quantity, place in chosen.items()
    }
    return _scaled(values, {q: names[place] for q, place in chosen.items()}, units)


def _check_choices(columns: Mapping[str, Any], units: Mapping[str, str]) -> None:
    """FatalError unless they say for quantities, by name, which column and which unit is theirs."""
    if not isinstance(columns, Mapping):
        raise wrong("columns", f"must be a mapping, {{'stress': 'sigma'}}; got {columns!r}")
    if not isinstance(units, Mapping) or not all(isinstance(u, str) for u in units.values()):
        raise wrong("units", f"must be a mapping to texts, {{'stress': 'MPa'}}; got {units!r}")


def _counts(line: str) -> bool:
    return bool(line.strip(" \t\r\n,;")) and not line.lstrip().startswith("#")


def _headed(
    lines: list[tuple[int, str]],
    columns: Mapping[str, str],
    decimal: str,
    separator: str | None,
    path: str,
) -> tuple[list[str], str, list[tuple[int, str]]]:
    """Names of columns, what separates them, and the rows of numbers.

    Lines about the machine may stand before the names, and a line of units after them. The names
    may stand behind a #, as numpy.savetxt() writes them.
    """
    rows = [(number, line) for number, line in lines if _counts(line)]
    if not rows:
        raise _refused(path, "expected a line with names of columns, and rows of numbers")
    place = next((i for i, (_, line) in enumerate(rows) if _names(line, columns, separator)), 0)
    number, first = rows[place]
    mark = separator or _separator(first)
    names, rest = fields(first, mark), rows[place + 1 :]
    if all(_is_number(name, decimal) for name in names):
        before = [line.strip(" \t\r\n#") for n, line in lines if n < number and line.strip()]
        behind = fields(before[-1], mark) if before else []
        if len(behind) != len(names):
            raise _refused(
                path,
                f"line {number} holds numbers; expected the names of its {len(names)} columns "
                "before them, for example t,strain,stress",
            )
        names, rest = behind, rows
    if rest:
        units = fields(rest[0][1], mark)
        if len(units) == len(names) and _are_units(units, decimal):
            bare = [unit.strip("[]() ") for unit in units]
            names = [f"{n} [{unit}]" if unit else n for n, unit in zip(names, bare, strict=True)]
            rest = rest[1:]
    if not rest:
        raise _refused(path, "expected rows of numbers after the names of columns")
    return names, mark, rest


def _names(line: str, columns: Mapping[str, str], separator: str | None) -> bool:
    """Whether the line names a strain and a stress, or all columns that were chosen."""
    names = fields(line, separator or _separator(line))
    if columns:
        return all(name in names or name in map(_plain, names) for name in columns.values())
    quantities = {_quantity(name).partition(".")[0] for name in names}
    return {"strain", "stress"} <= quantities


def _are_units(fields: list[str], decimal: str) -> bool:
    """Whether no field is a number, and at least one is a unit, or in brackets."""
    told = [field for field in fields if field.lower() not in _MISSING]
    known = {unit for quantity in FACTORS.values() for unit in quantity}
    return (
        bool(told)
        and not any(_is_number(field, decimal) for field in fields)
        and any(field in known or field[0] in "[(" for field in told)
    )


def _separator(line: str) -> str:
    return next((mark for mark in "\t;,|" if mark in line), " " if " " in line.strip() else ",")


def _bare(name: str) -> str:
    """The name of a column without its unit, in small letters."""
    for opening in "[(":
        name = name.partition(opening)[0] or name
    return without_slash(name)[0].strip().lower()


_ALSO = {
    "t": ("time", "seconds"),
    "strain": ("eps", "epsilon", "strain.xx"),
    "stress": ("sigma", "sig", "stress.xx"),
}


def _quantity(name: str) -> str:
    """The quantity that a column is by its name: "t", "strain", "stress.xy"; or ""."""
    bare = _bare(name)
    for quantity in _QUANTITIES:
        if bare == quantity or bare in _ALSO[quantity]:
            return quantity
        if bare.startswith(f"{quantity}."):
            return bare
    return ""


def _chosen(names: list[str], columns: Mapping[str, str], where: str) -> dict[str, int]:
    """By quantity, the place of its column."""
    chosen: dict[str, int] = {}
    for quantity, name in columns.items():
        if quantity.partition(".")[0] not in _QUANTITIES:
            raise unknown_name("quantity", quantity, (*_QUANTITIES, "strain.xy", "stress.xy"))
        fitting = [place for place, each in enumerate(names) if each == name]
        fitting = fitting or [place for place, each in enumerate(names) if _plain(each) == name]
        if not fitting:
            raise FatalError(
                f"{where}: {unknown_name('column', name, names)}", lib.NEML2_ERROR_NAME, name
            )
        _add(chosen, quantity, fitting, names, where)
    if columns:
        return chosen
    fitting_of: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if quantity := _quantity(name):
            fitting_of.setdefault(quantity, []).append(place)
    for quantity, fitting in fitting_of.items():
        _add(chosen, quantity, fitting, names, where)
    missing = [q for q in ("strain", "stress") if not any(c.partition(".")[0] == q for c in chosen)]
    if missing:
        likely = next((name for name in names if missing[0] in name.lower()), "...")
        raise FatalError(
            f"{where}: there is no column {missing[0]!r}. The columns are: {', '.join(names)}. Say "
            f'which it is: columns = {{{missing[0]} = "{likely}"}}',
            lib.NEML2_ERROR_NAME,
            missing[0],
        )
    return chosen


def _add(
    chosen: dict[str, int], quantity: str, fitting: list[int], names: list[str], where: str
) -> None:
    """Add the one column that a quantity has; FatalError if several could be it."""
    if len(fitting) > 1:
        listed = " and ".join(repr(names[place]) for place in fitting)
        raise FatalError(
            f"{where}: the columns {listed} could be the {quantity}: say which one it is, "
            f'columns = {{{quantity} = "..."}}, by a name that no other one has',
            lib.NEML2_ERROR_NAME,
            quantity,
        )
    chosen[quantity] = fitting[0]


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
        return _parsed(field, decimal)
    except ValueError:
        hint = ': it has a decimal comma; say decimal = ","' if _has_comma(field) else ""
        raise _refused(
            path, f"line {line}, column {column!r}: {field!r} is no number{hint}"
        ) from None


def _is_number(field: str, decimal: str) -> bool:
    try:
        _parsed(field, decimal)
    except ValueError:
        return _has_comma(field)
    return True


def _parsed(field: str, decimal: str) -> float:
    return number(field.replace(",", ".") if decimal == "," else field)


def _has_comma(field: str) -> bool:
    try:
        _parsed(field, ",")
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
        if not any(quantity in (each, each.partition(".")[0]) for each in values):
            raise wrong(
                "units",
                f"has one of {quantity!r}, and no column is that. Say which it is: columns = "
                f'{{{quantity} = "..."}}',
            )
    found: dict[str, Any] = {}
    for quantity, array in values.items():
        kind, _, part = quantity.partition(".")
        unit = units.get(quantity) or units.get(kind) or unit_of(names[quantity], quantity)
        scaled = array * factor(quantity, unit) if unit else array
        if kind == "t":
            found["t"] = scaled
        else:
            found.setdefault(kind, {})[part or "xx"] = scaled
    return found


def _refused(path: str, problem: str) -> FatalError:
    return FatalError(f"{path}: {problem}", lib.NEML2_ERROR_ARGUMENT, "file")
