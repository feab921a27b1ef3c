"""A file of experiments and parameters: TOML in, a Problem of neml2_capi.fit out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neml2_capi import Model, fit
from neml2_capi._document import Node, read_toml
from neml2_capi._ffi.errors import Error

_SECTIONS = ("artifact", "parameters", "experiments", "fit", "output", "names")
_PARAMETER = ("value", "lower", "upper", "log", "prior", "per")
_EXPERIMENT = (
    *("file", "name", "columns", "units", "decimal", "separator", "rate", "control", "loss"),
    *("weight", "deviation", "forces", "labels", "repeats"),
)
_SEARCH = ("method", "starts", "jobs", "seed", "ordered")
_OUTPUT = ("parameters", "report", "artifact")


@dataclass
class Task:
    """A problem, how it is searched, and what is written."""

    problem: fit.Problem
    method: str
    starts: int
    jobs: int
    seed: int
    parameters: Path | None
    report: Path | None
    artifact: Path | None


def load(file: Path) -> Task:
    """Read a file; FatalError names the key. Paths in it are relative to its folder."""
    node = read_toml(file)
    node.table(_SECTIONS, "section")
    folder = file.parent
    artifact = node.required("artifact", "the path of an artifact")
    with artifact.blamed():
        model = Model(folder / artifact.path())
    parameters = {
        name: _parameter(entry)
        for name, entry in node.required(
            "parameters", "a table of parameters that are fitted, with their first values"
        )
        .table()
        .items()
    }
    listed = node.required("experiments", "a list of tables, [[experiments]]")
    experiments = _repeated(
        [_experiment(folder, entry) for entry in listed.tables("[[experiments]], one at least")]
    )
    search = _section(node, "fit", _SEARCH)
    output = _section(node, "output", _OUTPUT)
    names = node.find("names")
    options: dict[str, Any] = {}
    if names is not None:
        pair = names.texts('the names of strain and stress, ["strain", "stress"]')
        if len(pair) != 2:
            raise names.expected('two names, ["strain", "stress"]')
        options["names"] = (pair[0], pair[1])
    if "ordered" in search:
        ordered = search["ordered"]
        ordered.require([[str]])
        options["ordered"] = ordered.value
    with Node(file, "", None).blamed():
        problem = fit.Problem(model, experiments, parameters, **options)

    def written(key: str) -> Path | None:
        return folder / output[key].path() if key in output else None

    def whole(key: str, otherwise: int, least: int = 1) -> int:
        if key not in search:
            return otherwise
        return search[key].whole(f"a whole number, {least} at least", least)

    return Task(
        problem,
        search["method"].text() if "method" in search else "least_squares",
        whole("starts", 1),
        whole("jobs", 1),
        whole("seed", 0, 0),
        written("parameters"),
        written("report"),
        written("artifact"),
    )


def _section(node: Node, name: str, known: tuple[str, ...]) -> dict[str, Node]:
    found = node.find(name)
    return {} if found is None else found.table(known)


def _parameter(node: Node) -> fit.Parameter:
    if not node.is_table:
        return fit.Parameter(node.number("a number, or a table with its value"))
    node.table(_PARAMETER)
    options: dict[str, Any] = {"value": node.required("value", "where the search begins").number()}
    for name in ("lower", "upper"):
        if name in node:
            options[name] = node[name].number()
    if "log" in node:
        options["log"] = node["log"].flag()
    if "per" in node:
        options["per"] = node["per"].text("the name of a label of experiments")
    if "prior" in node:
        prior = node["prior"].numbers("[mean, standard deviation]")
        if prior.shape != (2,):
            raise node["prior"].expected("[mean, standard deviation]")
        options["prior"] = tuple(prior.tolist())
    return fit.Parameter(**options)


def _experiment(folder: Path, node: Node) -> tuple[str, fit.Experiment]:
    """An experiment, and the name of the test that it repeats; "" if there is none."""
    node.table(_EXPERIMENT)
    file = folder / node.required("file", "a text file of measurements").path()
    options: dict[str, Any] = {}
    for name in ("columns", "units"):
        if name in node:
            node[name].require({str: str})
            options[name] = node[name].value
    for name in ("name", "decimal", "separator", "control"):
        if name in node:
            options[name] = node[name].text()
    for name in ("rate", "weight", "deviation"):
        if name in node:
            options[name] = node[name].number()
    if "loss" in node:
        node["loss"].require((str, list))
        options["loss"] = node["loss"].value
    if "forces" in node:
        node["forces"].require({str: float})
        options["forces"] = node["forces"].value
    if "labels" in node:
        node["labels"].require({str: (str, float, bool)})
        options["labels"] = node["labels"].value
    with node.blamed(Error):
        test = fit.Experiment.from_csv(file, **options)
    return node["repeats"].text() if "repeats" in node else "", test


def _repeated(tests: list[tuple[str, fit.Experiment]]) -> list[fit.Experiment]:
    """The experiments, where ones that repeat one test are their mean."""
    found: dict[str, list[fit.Experiment]] = {}
    for number, (repeats, test) in enumerate(tests):
        found.setdefault(repeats or f"\0{number}", []).append(test)
    return [each[0] if len(each) == 1 else fit.averaged(each, name) for name, each in found.items()]
