"""Numbers over time, as a file prescribes them: a ramp, a cycle, points, a column of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._document import Node
from neml2_capi._ffi.variables import Variable
from neml2_capi.cli.columns import read_columns

Array = NDArray[np.float64]
#: Of a time, a number or one for each point, (*B).
Signal = Callable[[float], Array]

KINDS = ("constant", "ramp", "cycle", "points", "file")
#: The keys of a table with a file.
WITH_FILE = ("file", "column", "time", "scale")
_SHAPES: dict[str, Callable[[Array], Array]] = {
    "sine": lambda phase: np.sin(2.0 * np.pi * phase),
    # Up, down and up again, from 0.
    "triangle": lambda phase: 1.0 - 4.0 * np.abs((phase + 0.25) % 1.0 - 0.5),
}
_PER_POINT = "a number, or a list with one for each material point"


def kind_of(node: Node) -> str:
    """Return which of KINDS a table is; "" if it is no signal."""
    found = [kind for kind in KINDS if kind in node]
    if len(found) > 1:
        raise node.refuse(f"has {found[0]!r} and {found[1]!r}; expected one of them")
    return found[0] if found else ""


def signal(node: Node, times: Array, *others: str) -> tuple[Signal, bool]:
    """A number over time, and whether it is constant.

    `times` are the times of the run; `others` are keys of the table that are not read here.
    """
    with equally_long(node):
        made, constant = _signal(node, times, *others)
        made(float(times[0]))
    return made, constant


@contextmanager
def equally_long(node: Node) -> Iterator[None]:
    """Lists with a value for each point that are put together must have one length."""
    try:
        yield
    except ValueError:
        raise node.refuse(
            "holds lists of different lengths; expected one value for each material point"
        ) from None


def _signal(node: Node, times: Array, *others: str) -> tuple[Signal, bool]:
    if not node.is_table:
        return _constant(node), True
    kind = kind_of(node)
    if not kind:
        raise node.expected(f"a number, or a table with one of {', '.join(KINDS)}")
    node.table((*others, *(WITH_FILE if kind == "file" else (kind,))))
    value = node[kind]
    if kind == "constant":
        return _constant(value), True
    if kind == "ramp":
        return _ramp(value, times), False
    if kind == "cycle":
        return _cycle(value, times), False
    if kind == "points":
        return _covering(value, *points_of(value), times), False
    return column(node, times), False


def column(node: Node, times: Array, variable: Variable | None = None) -> Signal:
    """A number, or a whole variable, from a csv or npz file; linear in between its rows."""
    at, values = rows_of(node, times, variable)
    blame = node.find("column") or node["file"]
    good = np.isfinite(values)
    if not good.all():
        row = int(np.argwhere(~good)[0, 0])
        raise blame.refuse(f"has {values[~good][0]} in row {row + 1}; expected finite numbers")
    return _covering(blame, at, values, times)


def rows_of(node: Node, times: Array, variable: Variable | None = None) -> tuple[Array, Array]:
    """The times of the rows of a csv or npz file, and a number or a whole variable for each."""
    name = node.find("column")
    wanted = name.text("the name of a column") if name else variable.name if variable else ""
    if not wanted:
        raise node.refuse("'column' is missing: the name of a column of the file")
    path = node.file.parent / node["file"].path("the path of a csv or npz file")
    blame = name or node["file"]
    with blame.blamed():
        columns = read_columns(path)
        rows = columns.variable(wanted, variable) if variable else columns[wanted]
    clock = node.find("time")
    scale = node["scale"].number() if "scale" in node else 1.0
    if clock is None and "t" not in columns:
        if len(rows) != len(times):
            raise blame.refuse(
                f"{wanted!r} of {path} has {len(rows)} rows; expected {len(times)}, one for each "
                "time, or 'time', the name of the column with the times of the rows"
            )
        at = times
    else:
        with (clock or blame).blamed():
            at = columns[clock.text("the name of a column") if clock else "t"]
    if len(at) != len(rows) or not increasing(at):
        raise blame.refuse(
            f"the times of {path} are not finite and increasing, with one for each row"
        )
    with np.errstate(over="ignore"):
        return at, scale * rows


def increasing(times: Array) -> bool:
    """Whether times are a list, one at least, that increases over a finite distance."""
    if times.ndim != 1 or not times.size:
        return False
    with np.errstate(all="ignore"):
        return bool((np.diff(times) > 0).all() and np.isfinite(times[-1] - times[0]))


def _constant(node: Node) -> Signal:
    value = node.numbers(_PER_POINT)
    if value.ndim > 1:
        raise node.expected(_PER_POINT)
    return lambda time: value


def _ramp(node: Node, times: Array) -> Signal:
    """From one value to another, and constant then."""
    if not node.is_table:
        return line(times[[0, -1]], _stacked(np.zeros(()), node.numbers(_PER_POINT)))
    node.table(("from", "to", "until"))
    begin = node["from"].numbers(_PER_POINT) if "from" in node else np.zeros(())
    end = node.required("to", "the value at the end").numbers(_PER_POINT)
    until = node["until"].number("a time") if "until" in node else times[-1]
    if until <= times[0]:
        raise node["until"].expected(f"a time after the first one, {times[0]:g}")
    return line(np.array([times[0], until]), _stacked(begin, end))


def _cycle(node: Node, times: Array) -> Signal:
    node.table(("amplitude", "period", "mean", "shape"))
    amplitude = node.required("amplitude", "how far it goes from the mean").numbers(_PER_POINT)
    period = node.required("period", "the time of one cycle").number("a time")
    if period <= 0:
        raise node["period"].expected("a time above 0")
    mean = node["mean"].numbers(_PER_POINT) if "mean" in node else np.zeros(())
    name = node["shape"].choice(_SHAPES, "shape") if "shape" in node else "sine"
    step = np.diff(times).min()
    if step > period / 4 * (1 + 1e-9):
        raise node["period"].refuse(
            f"is {period:g}, and no step of [times] is smaller than {step:g}: the cycle would miss "
            f"its peaks. Make steps of {period / 4:g} at most"
        )
    begin = times[0]

    def cycle(time: float) -> Array:
        return mean + amplitude * _SHAPES[name](np.asarray((time - begin) / period))

    return cycle


def points_of(node: Node, least: int = 2) -> tuple[Array, Array]:
    """The times and the values of a list of [time, value]."""
    what = f"a list of [time, value], {('one', 'two')[least - 1]} at least"
    if not isinstance(node.value, list) or len(node.value) < least:
        raise node.expected(what)
    pairs: list[Any] = node.value
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise node.expected(what)
    at = Node(node.file, node.key, [pair[0] for pair in pairs]).numbers(what)
    values = Node(node.file, node.key, [pair[1] for pair in pairs]).numbers(what)
    if at.ndim != 1 or values.ndim > 2:
        raise node.expected(what)
    if not increasing(at):
        raise node.refuse("the times of the points do not increase over a finite distance")
    return at, values


def _covering(node: Node, at: Array, values: Array, times: Array) -> Signal:
    """A line through points, which must reach over all times."""
    if at[0] > times[0] or at[-1] < times[-1]:
        raise node.refuse(
            f"is prescribed from time {at[0]:g} to {at[-1]:g}, but [times] goes from "
            f"{times[0]:g} to {times[-1]:g}"
        )
    return line(at, values)


def line(at: Array, values: Array) -> Signal:
    """Linear between the points, constant outside."""

    def value(time: float) -> Array:
        last = min(int(np.searchsorted(at, time)), len(at) - 1)
        if time >= at[last] or last == 0:
            return np.asarray(values[last])
        begin = values[last - 1]
        fraction = (time - at[last - 1]) / (at[last] - at[last - 1])
        return np.asarray(begin + fraction * (values[last] - begin))

    return value


def _stacked(*values: Array) -> Array:
    return np.stack(np.broadcast_arrays(*values))
