"""The file bounds.json of an artifact: where its law is valid, and which values have a meaning."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._document import Node, read_json, read_toml
from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.outside import require_outside
from neml2_capi._ffi.strings import number

#: The name of the file, beside metadata.json.
FILE = "bounds.json"
_KINDS = ("validity", "physical")


class Interval(NamedTuple):
    """The bounds of one variable: numbers, one for each component, or one for all."""

    variable: str
    kind: str
    lower: list[float]
    upper: list[float]


def _refused(variable: str, problem: str, status: int | None = None) -> FatalError:
    code = lib.NEML2_ERROR_ARGUMENT if status is None else status
    return FatalError(f"the bounds of {variable!r} {problem}", code, variable)


def _side(variable: str, value: Any, open_: float) -> list[float]:
    """One side: a number, or one for each component; `open_` for None."""
    if value is None:
        return [open_]
    try:
        array = np.asarray(value, dtype=object).ravel()
        numbers = [open_ if each is None else float(each) for each in array]
    except (TypeError, ValueError):
        raise _refused(variable, f"must be numbers; got {value!r}") from None
    if not numbers:
        raise _refused(variable, "are an empty list: give one number, or one for each component")
    if any(math.isnan(number) for number in numbers):
        raise _refused(variable, f"must not be NaN; got {value!r}")
    return numbers


def interval(variable: str, kind: str, lower: Any, upper: Any) -> Interval:
    """Bounds of a variable.

    Parameters
    ----------
    variable : str
        The name of an input or a parameter.
    kind : str
        "validity" or "physical".
    lower : float or array, optional
        The least value, or one for each component; None for no bound.
    upper : float or array, optional
        The greatest.

    Returns
    -------
    Interval
        The same, as lists.

    Raises
    ------
    FatalError
        A bound is no number, or NaN, or the lower is above the upper, or there is none.
    """
    sides = _side(variable, lower, -math.inf), _side(variable, upper, math.inf)
    if 1 != len(sides[0]) != len(sides[1]) != 1:
        raise _refused(
            variable, f"are {len(sides[0])} lower and {len(sides[1])} upper ones: give as many"
        )
    for component, (least, greatest) in enumerate(np.broadcast(*sides)):
        if not least <= greatest:
            where = f" (component {component})" if max(map(len, sides)) > 1 else ""
            raise _refused(variable, f"are {least:g} to {greatest:g}{where}: give the lower first")
    if all(math.isinf(number) for side in sides for number in side):
        raise _refused(variable, "are open on both sides: give a lower or an upper one, or both")
    return Interval(variable, kind, *sides)


def parsed(text: str, kind: str = "validity") -> Interval:
    """Bounds in a word, "temperature=20:600".

    Parameters
    ----------
    text : str
        NAME=LOWER:UPPER, either of which may be left out.
    kind : str
        "validity" or "physical".

    Returns
    -------
    Interval
        What it says, for all components.

    Raises
    ------
    FatalError
        It says nothing like that.
    """
    name, _, sides = text.rpartition("=")
    lower, colon, upper = sides.partition(":")
    try:
        numbers = [number(side) if side.strip() else None for side in (lower, upper)]
    except ValueError:
        numbers = []
    if not name.strip() or not colon or not numbers:
        raise FatalError(
            f"{text!r} is no bound: expected NAME=LOWER:UPPER, for example temperature=20:600, "
            "or a file of TOML",
            lib.NEML2_ERROR_ARGUMENT,
            text,
        )
    return interval(name.strip(), kind, *numbers)


def from_toml(path: str | os.PathLike[str]) -> list[Interval]:
    """Bounds of a file of TOML, a table for each variable.

    Parameters
    ----------
    path
        The file. A table has `lower`, `upper` or both, a number or one for each component, and
        `physical`, a table with the same.

    Returns
    -------
    list of Interval
        What it says.

    Raises
    ------
    FatalError
        The file is not TOML, or says something else; the message has the key.
    """
    found = []
    for name, entry in read_toml(Path(path)).table().items():
        table = entry.table(("lower", "upper", "physical"))
        if "lower" in table or "upper" in table:
            found.append(_of_table(name, entry, "validity"))
        if "physical" in table:
            entry["physical"].table(("lower", "upper"))
            found.append(_of_table(name, entry["physical"], "physical"))
        elif len(table) == 0:
            raise entry.expected("lower, upper or both, and maybe a table physical")
    return found


def _of_table(name: str, node: Node, kind: str) -> Interval:
    given = [node[side].value if side in node else None for side in ("lower", "upper")]
    with node.blamed(FatalError):
        return interval(name, kind, *given)


def from_mappings(bounds: Any, physical: Any) -> list[Interval]:
    """Bounds of mappings, {"temperature": (20, 600)}.

    Parameters
    ----------
    bounds : mapping of str to pair, optional
        Of validity.
    physical : mapping of str to pair, optional
        Physical ones.

    Returns
    -------
    list of Interval
        What they say.

    Raises
    ------
    FatalError
        One is no pair of a lower and an upper bound.
    """
    found = []
    for kind, given in zip(_KINDS, (bounds, physical), strict=True):
        if given is not None and not isinstance(given, Mapping):
            raise FatalError(f"bounds must be a mapping of names to pairs; got {given!r}")
        for name, pair in (given or {}).items():
            try:
                lower, upper = pair
            except (TypeError, ValueError):
                raise _refused(str(name), f"must be a pair (lower, upper); got {pair!r}") from None
            found.append(interval(str(name), kind, lower, upper))
    return found


def require_fit(bounds: Iterable[Interval], sizes: Mapping[str, int]) -> None:
    """FatalError unless each is of a variable of that many components, and is there once.

    A value that is valid has a meaning: bounds of validity lie within the physical ones, or open.

    Parameters
    ----------
    bounds : iterable of Interval
        The bounds.
    sizes : mapping of str to int
        The inputs and parameters of the artifact, and their numbers of components.
    """
    known: dict[tuple[str, str], Interval] = {}
    for each in bounds:
        if each.variable not in sizes:
            near = unknown_name("input or parameter", each.variable, sizes)
            raise _refused(each.variable, f"fit no variable: {near}", lib.NEML2_ERROR_NAME)
        if (each.variable, each.kind) in known:
            raise _refused(each.variable, f"({each.kind}) are given twice")
        known[each.variable, each.kind] = each
        size = sizes[each.variable]
        for side in (each.lower, each.upper):
            if len(side) not in (1, size):
                raise _refused(
                    each.variable,
                    f"are {len(side)} numbers, and it has {size} components: give one for each, or "
                    "one for all",
                    lib.NEML2_ERROR_SHAPE,
                )
    for (name, kind), valid in known.items():
        if kind == "validity" and (name, "physical") in known:
            _require_within(name, valid, known[name, "physical"])


def _require_within(variable: str, valid: Interval, physical: Interval) -> None:
    sides = (("lower", 1, valid.lower, physical.lower), ("upper", -1, valid.upper, physical.upper))
    for side, inward, own, limits in sides:
        for bound, limit in np.broadcast(own, limits):
            if math.isfinite(bound) and inward * bound < inward * limit:
                raise _refused(
                    variable,
                    f"have the {side} one {bound:g}, beyond the physical one, {limit:g}: no value "
                    "there has a meaning",
                )


def sizes_of(description: Mapping[str, Any]) -> dict[str, int]:
    """The inputs and parameters of a described artifact, by the names of its boundary.

    Parameters
    ----------
    description : dict
        What neml2_source_describe() tells.

    Returns
    -------
    dict of str to int
        Their numbers of components.
    """
    sizes = {}
    for kind in ("inputs", "parameters"):
        aliases = description["aliases"][kind]
        for variable in description[kind]:
            shape = [*variable.get("sub_batch_shape", ()), *variable["base_shape"]]
            sizes[aliases.get(variable["name"], variable["name"])] = math.prod(shape)
    return sizes


def write(folder: Path, bounds: Iterable[Interval]) -> None:
    """Write the file of an artifact, or remove it if there are no bounds.

    Parameters
    ----------
    folder : Path
        The folder with its metadata.
    bounds : iterable of Interval
        What require_fit() takes.

    Raises
    ------
    FatalError
        The folder is inside the installed package.
    """
    require_outside(folder)
    entries = [
        {"variable": each.variable, "kind": each.kind, **_sides_in_json(each)} for each in bounds
    ]
    file = folder / FILE
    if not entries:
        file.unlink(missing_ok=True)
        return
    partial = folder / f"{FILE}.part"
    document = {"version": 1, "bounds": entries}
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(file)


def _sides_in_json(bounds: Interval) -> dict[str, list[float | None]]:
    """Both sides; JSON has no infinity."""
    sides = {"lower": bounds.lower, "upper": bounds.upper}
    return {
        name: [None if math.isinf(number) else number for number in side]
        for name, side in sides.items()
    }


def read(folder: Path) -> list[Interval]:
    """The bounds that a folder has.

    Parameters
    ----------
    folder : Path
        The folder of an artifact.

    Returns
    -------
    list of Interval
        None if it has no file of bounds.

    Raises
    ------
    FatalError
        The file is not as it is written.
    """
    if not (folder / FILE).is_file():
        return []
    node = read_json(folder / FILE)
    form = {
        "variable": str,
        "kind": str,
        "lower": [(float, int, None)],
        "upper": [(float, int, None)],
    }
    node.require({"version": int, "bounds": [form]})
    return [
        interval(each["variable"], each["kind"], each["lower"], each["upper"])
        for each in node.value["bounds"]
    ]
