"""A file that drives a model through time: TOML in, the arguments of neml2_capi.drive() out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import FatalError, Model, Results, drive
from neml2_capi._document import Node
from neml2_capi._ffi.components import column as column_name
from neml2_capi._ffi.components import components
from neml2_capi._ffi.inspection import HYPOTHESES, STRAIN_MEASURES, STRESS_MEASURES
from neml2_capi.artifact.files import DTYPES
from neml2_capi.cli import prescription
from neml2_capi.cli.signals import increasing
from neml2_capi.cli.toml_file import read
from neml2_capi.driver.record import REPORTED
from neml2_capi.model.scheduler import scheduler_of

Array = NDArray[np.float64]

FORMATS = ("npz", "csv")
#: How the law is seen, as Model takes it.
VIEWS = {
    "hypothesis": HYPOTHESES,
    "strain_measure": STRAIN_MEASURES,
    "stress_measure": STRESS_MEASURES,
}
#: What says how a model is driven.
LOADING = (
    *("artifact", "dtype", "scheduler", *VIEWS, "times", "forces"),
    *("control", "initial", "parameters", "options", "step"),
)


@dataclass
class Run:
    """A model, what drives it, and what becomes of the results."""

    file: Path
    artifact: Path
    model: Model
    times: Array
    forces: dict[str, Any]
    initial: dict[str, Array]
    parameters: dict[str, Array]
    control: dict[str, Any] | None = None
    #: The other arguments of drive().
    settings: dict[str, Any] = field(default_factory=dict)
    output: Path | None = None
    format: str = "npz"
    #: Outputs and forces that are written.
    variables: list[str] = field(default_factory=list)
    #: Curves, "x:y".
    curves: list[str] = field(default_factory=list)
    plot: Path | None = None
    #: What stands beside the names on their axes.
    units: dict[str, str] = field(default_factory=dict)

    def drive(self, also: Iterable[str] = (), *, progress: bool | None = None) -> Results:
        """Return the results, with other outputs and forces `also`; FatalError with the file."""
        with Node(self.file, "", None).blamed(FatalError):
            return drive(
                self.model,
                self.times,
                self.forces,
                self.initial,
                control=self.control,
                parameters=self.parameters,
                record=dict.fromkeys([*self.variables, *also]),
                progress=progress,
                **self.settings,
            )

    @property
    def known(self) -> list[str]:
        """All that can be written."""
        outputs = self.model.outputs.names
        return [*(name for name in self.forces if name not in outputs), *outputs]

    def columns(self) -> dict[str, str]:
        """All that can be plotted, and the variable that it belongs to."""
        variables = {v.name: v for v in (*self.model.inputs, *self.model.outputs)}
        of_variables = {
            column_name(name, component): name
            for name in self.known
            for component in components(variables[name])
        }
        report = [f"report.{name}" for name in REPORTED] if self.settings.get("report") else []
        return {"t": "", **of_variables, **dict.fromkeys([*report, "substeps"], "")}


def load(file: Path, changes: Iterable[str] = ()) -> Run:
    """Read the file, and load its artifact.

    FatalError names the key whose value does not fit. `changes` are such as "times.steps=20".
    Paths in the file are relative to its folder.
    """
    document = read(file, changes)
    document.table((*LOADING, "checkpoint", "output", "plot"))
    run = loading(document)
    _checkpoint(_section(document, "checkpoint"), run)
    _output(_section(document, "output"), run)
    _plot(_section(document, "plot"), run)
    return run


def loading(document: Node) -> Run:
    """Read LOADING, and load the artifact."""
    file, folder = document.file, document.file.parent
    artifact = folder / document.required("artifact", "the folder that neml2-compile wrote").path(
        "the path of an artifact, relative to this file"
    )
    dtype = document["dtype"].text() if "dtype" in document else None
    if dtype is not None:
        document["dtype"].must_be_in(DTYPES, dtype, "element type")
    scheduler = scheduler_of(document["scheduler"]) if "scheduler" in document else None
    views: dict[str, Any] = {name: document[name].text() for name in VIEWS if name in document}
    for name, view in views.items():
        document[name].must_be_in(VIEWS[name], view, name.replace("_", " "))
    with document["artifact"].blamed():
        model = Model(artifact, dtype=dtype, scheduler=scheduler, **views)
    times, time = _times(document.required("times", "the table [times]"), model)
    control = prescription.control(_section(document, "control"), model, times)
    found = prescription.found(model, control)
    forces = prescription.forces(_section(document, "forces"), model, times, time, found)
    run = Run(
        file,
        artifact,
        model,
        times,
        {**{name: {} for name in found}, **forces},
        prescription.initial_values(_section(document, "initial"), model),
        prescription.parameters(_section(document, "parameters"), model),
        control,
        {"time": time},
    )
    for name, entry in _section(document, "options").table().items():
        path = name == "capsule" and entry.value != ""
        with entry.blamed():
            model.options[name] = folder / entry.path("a folder") if path else entry.value
    _step(_section(document, "step"), run)
    return run


def format_of(output: Path) -> str | None:
    """What a file is by its name."""
    return next((name for name in FORMATS if output.suffix == f".{name}"), None)


def _section(document: Node, name: str) -> Node:
    return document.find(name) or Node(document.file, name, {})


# ------------------------------------------------------------------------------------------------
# Times
# ------------------------------------------------------------------------------------------------


def _times(node: Node, model: Model) -> tuple[Array, str]:
    """The times, and the input that is the time."""
    node.table(("start", "end", "steps", "list", "input"))
    name = node["input"].choice(model.inputs.names, "input") if "input" in node else "t"
    if "list" in node:
        for other in ("start", "end", "steps"):
            if other in node:
                raise node.refuse(f"has 'list' and {other!r}; expected a list, or end and steps")
        times = node["list"].numbers("a list of increasing times")
        if not increasing(times) or len(times) < 2:
            raise node["list"].expected("a list of increasing times, two at least")
        return times, name
    end = node.required("end", "the last time; or give a 'list' of times").number("a time")
    what = "a number of steps, 1 at least"
    steps = node.required("steps", what).count(what)
    start = node["start"].number("a time") if "start" in node else 0.0
    if not start < end or end - start == np.inf:
        raise node["end"].expected(f"a time after the start, {start:g}, at a finite distance")
    try:
        return np.linspace(start, end, steps + 1), name
    except (MemoryError, ValueError) as error:
        raise node["steps"].expected(f"{what}, for which there is memory") from error


# ------------------------------------------------------------------------------------------------
# Steps and results
# ------------------------------------------------------------------------------------------------


def _step(node: Node, run: Run) -> None:
    node.table(("least",))
    if "least" in node:
        what = "a fraction of a step, above 0 and at most 1, which never cuts"
        least = node["least"].number(what)
        if not 0.0 < least <= 1.0:
            raise node["least"].expected(what)
        run.settings["least_step"] = least


def _checkpoint(node: Node, run: Run) -> None:
    node.table(("file", "steps"))
    if "file" in node:
        run.settings["checkpoint"] = run.file.parent / node["file"].path("the path of a file")
    if "steps" in node:
        run.settings["checkpoint_steps"] = node["steps"].count("a number of steps, 1 at least")


def _output(node: Node, run: Run) -> None:
    node.table(("file", "format", "variables", "derivatives", "report"))
    found = prescription.found(run.model, run.control)
    run.variables = [
        name
        for name in run.known
        if name in found or not isinstance(run.forces.get(name), np.ndarray)
    ]
    if "file" in node:
        run.output = run.file.parent / node["file"].path("the path of a file")
        run.format = format_of(run.output) or "npz"
    if "format" in node:
        run.format = node["format"].choice(FORMATS, "format")
    if "variables" in node:
        run.variables = node["variables"].texts("a list of outputs and forces")
        for name in run.variables:
            node["variables"].must_be_in(run.known, name, "variable")
    if "derivatives" in node:
        run.settings["derivatives"] = _derivatives(node["derivatives"], run)
    if "report" in node:
        run.settings["report"] = node["report"].flag()


def _derivatives(node: Node, run: Run) -> dict[str, dict[str, bool]]:
    pairs = node.texts('a list such as ["stress:strain"]')
    compiled = [
        f"{d.output}:{d.variable}"
        for d in (*run.model.derivatives, *run.model.parameter_derivatives)
    ]
    wanted: dict[str, dict[str, bool]] = {}
    for pair in pairs:
        node.must_be_in(compiled, pair, "compiled derivative")
        output, _, variable = pair.partition(":")
        wanted.setdefault(output, {})[variable] = True
    return wanted


def _plot(node: Node, run: Run) -> None:
    node.table(("curves", "file", "units"))
    if "curves" in node:
        run.curves = node["curves"].texts('a list such as ["strain.xx:stress.xx"]')
    if "file" in node:
        run.plot = run.file.parent / node["file"].path("the path of an image")
    if "units" in node:
        known = [*run.columns(), *run.known]
        units = node["units"].table(known, "column or variable")
        run.units = {name: unit.text('a unit such as "MPa"') for name, unit in units.items()}
