"""A file of tests of a law: how it is driven, and the curves that it must give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._document import Node
from neml2_capi._ffi.components import column, components
from neml2_capi._ffi.errors import unknown_name
from neml2_capi.cli.driver_file import LOADING, Run, loading
from neml2_capi.cli.expressions import CONSTANTS, Expression
from neml2_capi.cli.signals import (
    KINDS,
    WITH_FILE,
    equally_long,
    increasing,
    points_of,
    rows_of,
    signal,
)
from neml2_capi.cli.toml_file import changed, read

Array = NDArray[np.float64]
#: Columns of results at times, (times, *B).
Columns = Mapping[str, Array]
#: The expected values at times, (times, *B), by the results at these times.
Curve = Callable[[Array, Columns], Array]

TOLERANCES = ("rtol", "atol")
_COMPARED = (*TOLERANCES, "at", "between")
_WAYS = (*KINDS, "expression", "artifact")


@dataclass(frozen=True)
class Expected:
    """A column of the results, and what it should be."""

    node: Node
    #: "stress.xx".
    column: str
    curve: Curve
    #: Where it is compared.
    times: Array
    rtol: float
    atol: float
    #: Other columns that it needs.
    needs: tuple[str, ...] = ()


@dataclass
class Test:
    """A model, what drives it, and what is expected."""

    name: str
    run: Run
    expected: list[Expected] = field(default_factory=list)


def tests_of(
    file: Path, artifact: Path | None = None, changes: Iterable[str] = ()
) -> list[tuple[str, Callable[[], Test]]]:
    """The names of the tests of a file, and functions that load each with its artifact.

    `artifact` replaces what the file names; `changes` are keys of all tests, "times.steps=20".
    What stands above the tests holds for each that does not say it.
    """
    document = read(file)
    common = document.table((*LOADING, *TOLERANCES, "constants", "test"))
    nodes = document.required("test", "a table [[test]] for each").tables("a list of [[test]]")
    tests: list[tuple[str, Callable[[], Test]]] = []
    for number, node in enumerate(nodes):
        node.table((*LOADING, *TOLERANCES, "constants", "name", "expect"))
        name = node["name"].text("a name") if "name" in node else f"test {number + 1}"
        if name in dict(tests):
            raise node["name"].refuse(f"two tests have the name {name!r}")
        inherited = {key: entry.value for key, entry in common.items() if key != "test"}
        whole = Node(file, node.key, {**inherited, **node.value})
        tests.append((name, partial(_test, whole, name, artifact, changes)))
    return tests


def _test(node: Node, name: str, artifact: Path | None, changes: Iterable[str]) -> Test:
    if artifact is not None:
        node.value["artifact"] = str(artifact.resolve())
    node = changed(node, changes)
    test = Test(name, loading(node))
    what = "a table of outputs or forces, such as [test.expect.stress]"
    entries = node.required("expect", what).table()
    if not entries:
        raise node["expect"].expected(what)
    variables = {v.name: v for v in (*test.run.model.inputs, *test.run.model.outputs)}
    for variable, entry in entries.items():
        entry.must_be_in(test.run.known, variable, "variable")
        parts = {part.name: part for part in components(variables[variable])}
        if not any(key in entry for key in _WAYS):
            for key, inner in entry.table(parts, "component").items():
                named = column(variable, parts[key])
                test.expected.append(_expected(node, inner, named, test.run))
            continue
        whole = "expression" not in entry and ("file" in entry or "artifact" in entry)
        if "" not in parts and not whole:
            raise entry.refuse(f"has no component; expected one of {', '.join(parts)}")
        names = [column(variable, part) for part in parts.values()]
        test.expected += [_expected(node, entry, each, test.run) for each in names]
    return test


# ------------------------------------------------------------------------------------------------
# Expected values of a column
# ------------------------------------------------------------------------------------------------


def _expected(test: Node, node: Node, name: str, run: Run) -> Expected:
    if not node.is_table:
        raise node.expected(f"a table with one of {', '.join(_WAYS)}")
    ways = [way for way in _WAYS if way in node]
    if len(ways) != 1:
        raise node.expected(f"a table with exactly one of {', '.join(_WAYS)}")
    (way,) = ways
    keys = {"file": WITH_FILE, "artifact": ("artifact", "parameters")}.get(way, (way,))
    node.table((*keys, *_COMPARED))
    given: Array = run.times
    needs: tuple[str, ...] = ()
    if way == "expression":
        curve, needs = _closed_form(test, node[way], run)
    elif way == "artifact":
        curve = _of_artifact(test, node, name, run)
    elif way in ("points", "file"):
        given, values = points_of(node[way], 1) if way == "points" else _rows(node, name, run)
        curve = _between(given, values)
    else:
        made, _ = signal(node, run.times, *_COMPARED)
        curve = _over(made)
    times = _compared(node, run.times, given)
    rtol, atol = (_tolerance(test, node, key) for key in TOLERANCES)
    if rtol == atol == 0.0 and not any(key in each for key in TOLERANCES for each in (test, node)):
        raise node.refuse("'rtol' or 'atol' is missing: how far a value may be from the expected")
    return Expected(node, name, curve, times, rtol, atol, needs)


def _tolerance(test: Node, node: Node, key: str) -> float:
    found = node.find(key) or test.find(key)
    tolerance = found.number("a number, 0 at least") if found else 0.0
    if found and tolerance < 0.0:
        raise found.expected("a number, 0 at least")
    return tolerance


def _compared(node: Node, steps: Array, given: Array) -> Array:
    """The times at which it is compared, inside the steps and what is given."""
    times = given
    if "at" in node:
        at = node["at"]
        times = steps if at.value == "steps" else np.atleast_1d(at.numbers('times, or "steps"'))
        if not increasing(times):
            raise at.expected('a list of increasing times, or "steps"')
    if "between" in node:
        ends = node["between"].numbers("two times")
        if ends.shape != (2,):
            raise node["between"].expected("two times, [first, last]")
        times = times[(times >= ends[0]) & (times <= ends[1])]
    if not times.size:
        raise node.refuse("no time is left at which it is compared")
    for known, what in ((steps, "[times] goes"), (given, "its values go")):
        slack = 1e-9 * (known[-1] - known[0])
        if times[0] < known[0] - slack or times[-1] > known[-1] + slack:
            raise node.refuse(
                f"is compared from time {times[0]:g} to {times[-1]:g}, but {what} from "
                f"{known[0]:g} to {known[-1]:g}; say 'at' or 'between' which times"
            )
    return times


def _rows(node: Node, name: str, run: Run) -> tuple[Array, Array]:
    """A column of a file, which has the name of the column of the results unless it says one."""
    named = node if "column" in node else Node(node.file, node.key, {**node.value, "column": name})
    return rows_of(named, run.times)


def interpolated(at: Array, values: Array, times: Array) -> Array:
    """Values (len(at), *B) at times, linear in between and exact at times of `at`."""
    if len(at) == 1:
        return np.repeat(values, len(times), 0)
    last = np.clip(np.searchsorted(at, times), 1, len(at) - 1)
    fraction = np.clip((times - at[last - 1]) / (at[last] - at[last - 1]), 0.0, 1.0)
    fraction = fraction.reshape(-1, *(1,) * (values.ndim - 1))
    begin, end = values[last - 1], values[last]
    with np.errstate(all="ignore"):  # what is not finite shows in the comparison
        inside = begin + fraction * (end - begin)
    return np.where(fraction == 0.0, begin, np.where(fraction == 1.0, end, inside))


def with_axes(values: Array, axes: int) -> Array:
    """Values over times with so many axes: a number for all points has axes of length 1."""
    return values.reshape(len(values), *(1,) * (axes - values.ndim), *values.shape[1:])


def _between(at: Array, values: Array) -> Curve:
    return lambda times, columns: interpolated(at, values, times)


def _over(made: Callable[[float], Array]) -> Curve:
    return lambda times, columns: np.stack([made(float(time)) for time in times])


def _of_artifact(test: Node, node: Node, name: str, run: Run) -> Curve:
    """Return the same column of another artifact, driven in the same way."""
    document = {key: value for key, value in test.value.items() if key in LOADING}
    document["artifact"] = node["artifact"].value
    if "parameters" in node:
        document["parameters"] = node["parameters"].value
    other = loading(changed(Node(node.file, node.key, document), ()))
    known = other.columns()
    if name not in known:
        raise node["artifact"].refuse(str(unknown_name("column", name, known)))

    def curve(times: Array, columns: Columns) -> Array:
        results = other.drive([known[name]], progress=False).columns()
        return interpolated(run.times, results[name], times)

    return curve


def _closed_form(test: Node, node: Node, run: Run) -> tuple[Curve, tuple[str, ...]]:
    """An expression of columns, of constants of the file, and of parameters of the model."""
    try:
        expression = Expression(node.text('a closed form, such as "E * strain.xx"'))
    except ValueError as error:
        raise node.refuse(str(error)) from error
    columns = run.columns()
    short = {name.rpartition(".")[2] for name in run.model.parameters.names}
    constants: dict[str, Any] = {
        name: value for name, value in CONSTANTS.items() if name not in (*columns, *short)
    }
    for name, each in (test["constants"].table() if "constants" in test else {}).items():
        if name in columns:
            raise each.refuse("is a column of the results, too: call it otherwise")
        constants[name] = each.numbers()
    stored = {**run.model.named_parameters(), **run.parameters}
    values: dict[str, Array] = {}
    for name in expression.names:
        if name in constants:
            values[name] = constants[name]
        elif name not in columns:
            parameters = run.model.parameters.names
            if not any(f".{full}".endswith(f".{name}") for full in parameters):
                known = (*columns, *constants, *parameters)
                node.must_be_in(known, name, "column, constant or parameter")
            with node.blamed():
                parameter = run.model.parameters[run.model.parameters.resolve(name)]
            values[name] = stored[parameter.name]
    needs = tuple(name for name in expression.names if name not in values)

    def curve(times: Array, found: Columns) -> Array:
        points = (*(np.ndim(value) for value in values.values()), 0)
        axes = max(max(points) + 1, *(value.ndim for value in found.values()))
        aligned = {name: with_axes(value, axes) for name, value in found.items()}
        with equally_long(node):
            value = expression({**values, **aligned})
        return value if value.ndim == axes else np.broadcast_to(value, (len(times), *value.shape))

    return curve, needs
