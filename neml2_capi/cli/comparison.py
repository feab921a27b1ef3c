"""The results of a test beside what is expected, and what to say of both."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Error, Results, StepError
from neml2_capi._ffi.outside import written
from neml2_capi.cli.verify_file import Expected, Test, interpolated, with_axes

Array = NDArray[np.float64]
#: What XML cannot hold.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Comparison:
    """A column of results, and what was expected of it, at times (m,)."""

    expected: Expected
    steps: Array
    #: Over all steps, (n, *B).
    column: Array
    #: (m, *B) each.
    found: Array
    wanted: Array

    @cached_property
    def allowed(self) -> Array:
        """Largest differences that are allowed."""
        return self.expected.atol + self.expected.rtol * np.abs(self.wanted)

    @cached_property
    def missed(self) -> NDArray[np.bool_]:
        """Marks of the values that differ more than allowed, or of which one is not finite."""
        with np.errstate(invalid="ignore"):
            close = np.abs(self.found - self.wanted) <= self.allowed
        return ~(close & np.isfinite(self.wanted))

    @cached_property
    def worst(self) -> tuple[int, ...]:
        """Index of the largest difference, as a multiple of the allowed one."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.abs(self.found - self.wanted) / self.allowed
        share = np.where(np.isnan(share), np.where(self.missed, np.inf, 0.0), share)
        return tuple(map(int, np.unravel_index(share.argmax(), share.shape)))

    def told(self) -> dict[str, Any]:
        """The worst value, for programs."""
        at = self.expected.times[self.worst[0]]
        return {
            "column": self.expected.column,
            "passed": not self.missed.any(),
            "compared": self.missed.size,
            "missed": int(self.missed.sum()),
            "step": _step(self.steps, at),
            "time": float(at),
            "point": list(self.worst[1:]),
            "value": float(self.found[self.worst]),
            "expected": float(self.wanted[self.worst]),
            "tolerance": float(self.allowed[self.worst]),
        }

    def __str__(self) -> str:
        """One line about the worst value."""
        told, point = self.told(), ", ".join(map(str, self.worst[1:]))
        first = self.expected.times[np.argwhere(self.missed)[0][0]]
        return (
            f"{told['column']} in {_named(told['step'])} (t = {told['time']:.6g})"
            f"{f' at point {point}' if point else ''} is {told['value']:.10g}; expected "
            f"{told['expected']:.10g}, +- {told['tolerance']:.3g} (rtol {self.expected.rtol:g}, "
            f"atol {self.expected.atol:g}); {told['missed']} of {told['compared']} values differ, "
            f"first in {_named(_step(self.steps, first))}"
        )


@dataclass
class Outcome:
    """Outcome of a test."""

    name: str
    artifact: str = ""
    seconds: float = 0.0
    comparisons: list[Comparison] = field(default_factory=list)
    #: Why it could not be made, or did not come to its end.
    error: str = ""

    @property
    def missed(self) -> list[Comparison]:
        return [each for each in self.comparisons if each.missed.any()]

    @property
    def passed(self) -> bool:
        return not (self.error or self.missed)

    def lines(self) -> list[str]:
        """Return what failed, one line for each column."""
        errors = [self.error] if self.error else []
        return [f"{self.name}: {each}" for each in (*errors, *map(str, self.missed))]


def compare(test: Test) -> list[Comparison]:
    """Drive the model, and compare; Error if that is not possible."""
    owners = test.run.columns()
    names = [name for each in test.expected for name in (each.column, *each.needs)]
    results = test.run.drive(filter(None, (owners[name] for name in names)), progress=False)
    return [_compared(each, results) for each in test.expected]


def _compared(expected: Expected, results: Results) -> Comparison:
    columns, times = results.columns(), expected.times
    steps = columns["t"]
    there = {name: interpolated(steps, values, times) for name, values in columns.items()}
    curve, wanted = columns[expected.column], expected.curve(times, there)
    axes = max(curve.ndim, wanted.ndim)
    found = with_axes(there[expected.column], axes)
    try:
        found, wanted = np.broadcast_arrays(found, with_axes(wanted, axes))
    except ValueError:
        raise expected.node.refuse(
            f"gives values for the points {wanted.shape[1:]}, but results are of {curve.shape[1:]}"
        ) from None
    return Comparison(expected, steps, with_axes(curve, axes), found, wanted)


def outcome(name: str, load: Any) -> Outcome:
    """Make a test; an error is one of its outcome."""
    begin, made = time.perf_counter(), Outcome(name)
    try:
        test = load()
        made.artifact = str(test.run.artifact)
        with test.run.model:
            made.comparisons = compare(test)
    except StepError as error:
        made.error = str(error)
    except (Error, OSError) as error:
        made.error = "; ".join(str(error).splitlines())
    made.seconds = time.perf_counter() - begin
    return made


def write_junit(file: Path, suite: str, outcomes: Iterable[Outcome]) -> None:
    """Write a file of JUnit's form, with a case for each test."""
    outcomes = list(outcomes)
    errors = sum(bool(each.error) for each in outcomes)
    failures = sum(not each.passed for each in outcomes) - errors
    counts = {"tests": len(outcomes), "failures": failures, "errors": errors, "skipped": 0}
    told = {name: str(count) for name, count in counts.items()}
    top = ElementTree.Element("testsuites")
    seconds = f"{sum(each.seconds for each in outcomes):.6f}"
    told |= {"name": _xml(suite), "time": seconds}
    inner = ElementTree.SubElement(top, "testsuite", told)
    for each in outcomes:
        case = ElementTree.SubElement(inner, "testcase", name=_xml(each.name))
        case.set("classname", _xml(suite))
        case.set("time", f"{each.seconds:.6f}")
        if not each.passed:
            kind = "error" if each.error else "failure"
            lines = [_xml(line) for line in each.lines()]
            ElementTree.SubElement(case, kind, message=lines[0]).text = "\n".join(lines)
    ElementTree.indent(top)
    with written(file, "the JUnit file") as stream:
        ElementTree.ElementTree(top).write(stream, encoding="utf-8", xml_declaration=True)


def draw_missed(folder: Path, outcomes: Iterable[Outcome]) -> list[Path]:
    """Draw both curves of each column that differs, into a folder; the files."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for each in outcomes:
        for comparison in each.missed:
            figure = Figure(figsize=(6.0, 4.0), layout="constrained")
            _draw(figure.subplots(), comparison)
            figure.suptitle(each.name)
            stem = re.sub(r"[^\w.-]+", "-", f"{each.name}-{comparison.expected.column}")
            files.append(folder / f"{len(files) + 1}-{stem[:80]}.png")
            with written(files[-1], "the figure") as stream:
                figure.savefig(stream, dpi=150)
    return files


def _draw(axes: Any, comparison: Comparison) -> None:
    """Both curves of the point that differs most, with what is allowed."""
    times, steps = comparison.expected.times, comparison.steps
    where: tuple[Any, ...] = (..., *comparison.worst[1:])
    wanted, allowed = comparison.wanted[where], comparison.allowed[where]
    column = np.broadcast_to(comparison.column, (len(steps), *comparison.found.shape[1:]))[where]
    axes.fill_between(times, wanted - allowed, wanted + allowed, color="tab:gray", alpha=0.3)
    axes.plot(times, wanted, "o--", color="black", markersize=3, label="expected")
    axes.plot(steps, column, color="tab:blue", label="found")
    worst = comparison.found[comparison.worst]
    axes.plot(times[comparison.worst[0]], worst, "x", color="tab:red", label="differs most")
    axes.set_xlabel("t")
    axes.set_ylabel(comparison.expected.column)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


def _step(steps: Array, time: float) -> float:
    """The number of the step that ends at a time, with a fraction if it is between two."""
    return float(np.interp(time, steps, np.arange(len(steps))))


def _named(step: float) -> str:
    whole = round(step)
    if abs(step - whole) < 1e-6:
        return f"step {whole}"
    return f"the middle of step {int(step) + 1}"


def _xml(text: str) -> str:
    return _NO_XML.sub("?", text)
