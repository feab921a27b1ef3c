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
from neml2_capi._ffi.variables import Variable
from neml2_capi.artifact.files import DTYPES
from neml2_capi.cli.signals import KINDS, WITH_FILE, column, equally_long, kind_of, signal
from neml2_capi.cli.toml_file import read
from neml2_capi.driver.control import NAMED, UNIAXIAL, conjugates
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
    control = _control(_section(document, "control"), model, times)
    found = _found(model, control)
    run = Run(
        file,
        artifact,
        model,
        times,
        {**{name: {} for name in found}, **_forces(document, model, times, time, found)},
        _initial(_section(document, "initial"), model),
        _parameters(_section(document, "parameters"), model),
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
        if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0).all():
            raise node["list"].expected("a list of increasing times, two at least")
        return times, name
    end = node.required("end", "the last time; or give a 'list' of times").number("a time")
    what = "a number of steps, 1 at least"
    steps = node.required("steps", what).count(what)
    start = node["start"].number("a time") if "start" in node else 0.0
    if not start < end < np.inf:
        raise node["end"].expected(f"a time after the start, {start:g}")
    try:
        return np.linspace(start, end, steps + 1), name
    except (MemoryError, ValueError) as error:
        raise node["steps"].expected(f"{what}, for which there is memory") from error


# ------------------------------------------------------------------------------------------------
# Forces
# ------------------------------------------------------------------------------------------------


def prescribed(model: Model, time: str) -> list[Variable]:
    """The inputs that a file must prescribe."""
    histories = {history.input for history in model.histories if history.output or history.current}
    optional = {time, *histories, *model.outputs.names}
    return [variable for variable in model.inputs if variable.name not in optional]


def _found(model: Model, control: dict[str, Any] | None) -> list[str]:
    """The inputs whose components are found."""
    return [conjugates(model, key)[1].name for key in control or ()]


def _control(node: Node, model: Model, times: Array) -> dict[str, Any] | None:
    """Read the table [control], as drive() takes it."""
    entries = node.table()
    if not entries:
        return None
    if len(entries) > 1:
        raise node.refuse(f"has {len(entries)} outputs; expected one, such as 'stress'")
    ((key, entry),) = entries.items()
    with entry.blamed():
        output, _ = conjugates(model, key)
    if not entry.is_table:
        name = entry.text(f"components over time, or one of {', '.join(NAMED)}")
        entry.must_be_in(NAMED, name, "control")
        return {key: name}
    known = [*(component.name for component in components(output)), UNIAXIAL]
    parts: dict[str, Any] = {}
    for name, part in entry.table(known, "component").items():
        made, _ = signal(part, times)
        parts[name] = made
    if not parts:
        raise entry.expected(f"components over time, or one of {', '.join(NAMED)}")
    return {key: parts}


def _forces(
    document: Node, model: Model, times: Array, time: str, found: list[str]
) -> dict[str, Any]:
    node = _section(document, "forces")
    histories = {history.input for history in model.histories if history.output or history.current}
    known = {v.name: v for v in model.inputs if v.name not in {time, *histories}}
    for name, entry in node.table().items():
        if name == time:
            raise entry.refuse("is the time: prescribe it by [times]")
        if name in histories:
            raise entry.refuse("is history, which is carried: give values in [initial]")
        entry.must_be_in(known, name, "force")
    for variable in prescribed(model, time):
        if variable.name in found:
            continue
        node.required(variable.name, f"prescribe it, {_described(variable)}")
    return {name: _force(node[name], known[name], times) for name in node.value}


def _force(node: Node, variable: Variable, times: Array) -> Any:
    """An array if it is constant, else a function of time."""
    if not node.is_table:
        return _over_time(_values(node, variable), variable)
    kind = kind_of(node)
    if kind == "constant" and "direction" not in node:
        node.table(("constant",))
        return _over_time(_values(node["constant"], variable), variable)
    if kind == "file" and "direction" not in node:
        node.table(WITH_FILE)
        return column(node, times, variable)
    if kind:
        made, constant = signal(node, times, "direction")
        direction = _direction(node, variable)

        def force(time: float) -> Array:
            return np.multiply.outer(made(time), direction)

        return _over_time(force(times[0]), variable) if constant else force
    return _of_components(node, variable, times)


def _of_components(node: Node, variable: Variable, times: Array) -> Any:
    """A signal for each component; those that are not named are zero."""
    known = {component.name: component for component in components(variable)}
    parts, constants = [], []
    for name, entry in node.table().items():
        entry.must_be_in([*filter(None, known), *KINDS], name, "key")
        unit = np.zeros(variable.point_shape)
        unit[known[name].place] = known[name].factor
        made, constant = signal(entry, times)
        parts.append((unit, made))
        constants.append(constant)

    def force(time: float) -> Array:
        zeros = np.zeros(variable.point_shape)
        return sum((np.multiply.outer(made(time), unit) for unit, made in parts), start=zeros)

    with equally_long(node):
        first = force(float(times[0]))
    return _over_time(first, variable) if all(constants) else force


def _direction(node: Node, variable: Variable) -> Array:
    """What a signal of a whole variable is times."""
    shape = variable.point_shape
    if "direction" not in node:
        if shape:
            raise node.refuse(
                f"'direction' is missing: the components of {variable.name} that one signal "
                f"drives, for example direction = {{ {components(variable)[0].name} = 1.0 }}"
            )
        return np.ones(())
    if not shape:
        raise node["direction"].refuse(f"{variable.name} is a scalar, and has no direction")
    return _values(node["direction"], variable, batched=False)


def _over_time(value: Array, variable: Variable) -> Array:
    """A constant as drive() takes it: with an axis of times, if there is one value per point."""
    return value if value.shape == variable.point_shape else value[np.newaxis]


# ------------------------------------------------------------------------------------------------
# Values
# ------------------------------------------------------------------------------------------------


def _values(node: Node, variable: Variable, *, batched: bool = True) -> Array:
    """An array as it is stored, or a table of components; one, or one for each point."""
    shape = variable.point_shape
    if node.is_table:
        known = {component.name: component for component in components(variable)}
        value = np.zeros(shape)
        for name, entry in node.table(known, "component").items():
            value[known[name].place] = known[name].factor * entry.number()
        return value
    value = node.numbers(_described(variable))
    split = value.ndim - len(shape)
    if value.shape[max(split, 0) :] != shape or split < 0 or split > int(batched):
        raise node.expected(_described(variable) + (", or a list of them" if batched else ""))
    return value


def _described(variable: Variable) -> str:
    """What a value of it looks like."""
    names = [component.name for component in components(variable)]
    if names == [""]:
        return "a number"
    size = " x ".join(map(str, variable.point_shape))
    shown = ", ".join(names[:9]) + (", ..." if len(names) > 9 else "")
    mandel = " in Mandel notation" if variable.type == "SR2" else ""
    return f"{size} numbers{mandel}, or a table of the components {shown}"


def _initial(node: Node, model: Model) -> dict[str, Array]:
    histories = {history.input for history in model.histories}
    older = {f"{h.output or h.current}~{h.age - 1}" for h in model.histories if h.age > 1}
    known = {v.name: v for v in model.outputs}
    known |= {v.name: v for v in model.inputs if v.name in older & histories}
    entries = node.table(known, "initial value")
    return {name: _values(entry, known[name]) for name, entry in entries.items()}


def _parameters(node: Node, model: Model) -> dict[str, Array]:
    values = {}
    for name, entry in node.table().items():
        with entry.blamed():
            index = model.parameters.resolve(name)
        variable = model.parameters[index]
        values[variable.name] = _values(entry, variable)
    return values


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
    found = _found(run.model, run.control)
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
