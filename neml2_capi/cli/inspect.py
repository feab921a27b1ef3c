"""neml2-capi inspect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from neml2_capi.cli import options
from neml2_capi.cli.screen import console, print_json, shape, table
from neml2_capi.cli.summary import summary

_MOST_VALUES = 4


@click.command("inspect")
@options.artifact
@options.dtype
@options.as_json
def inspect_command(path: Path, dtype: str | None, as_json: bool) -> None:
    """What an artifact takes, gives and was compiled for.

    Variables with their types and their shapes at one material point, history, parameters that can
    change at run time, derivatives, the solver's settings, packages and the processors that they
    are for. No compiled code is loaded.
    """
    document = summary(path, dtype)
    if as_json:
        print_json(document)
        return
    screen = console()
    for part in _parts(document):
        screen.print(part)


def _parts(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield Text(
        f"{document['artifact']}: schema {document['schema']}, compiled for "
        f"{', '.join(document['compiled_for'])}\n"
    )
    history = {pair["input"]: pair for pair in document["histories"]}
    yield table(
        "Inputs",
        ("name", "type", "shape", "sub-batch", "at the next step"),
        ((*_row(v), _becomes(history.get(v["name"]))) for v in document["inputs"]),
    )
    columns = ("name", "type", "shape", "sub-batch")
    yield table("Outputs", columns, map(_row, document["outputs"]))
    if document["parameters"]:
        rows = (
            (p["name"], p["dtype"], shape(p["shape"]), _values(p["values"]))
            for p in document["parameters"]
        )
        yield table("Parameters", ("name", "type", "shape", "value"), rows)
    if document["unknowns"]:
        size = sum(_size(variable) for variable in document["unknowns"])
        title = f"Unknowns of the nonlinear system, {size} per point"
        yield table(title, ("name", "shape", "sub-batch"), map(_untyped, document["unknowns"]))
    yield table("Derivatives", ("output", "with respect to"), _derivatives(document))
    rows = (
        (
            segment["kind"],
            ", ".join(segment["inputs"]),
            ", ".join(segment["outputs"]),
            "\n".join(segment["packages"]),
        )
        for segment in document["segments"]
    )
    yield table("Segments", ("kind", "takes", "gives", "packages"), rows)
    if document["solver"]:
        settings = ((name, str(value)) for name, value in document["solver"].items())
        yield table("Solver", ("option", "value"), settings)
    if document["kernels"]:
        yield table("Kernels, without packages", ("of", "kernel"), document["kernels"].items())
        return
    packages = (
        (
            package["file"],
            f"{package['bytes'] / 1024:.0f}",
            _target(package),
            _runtime(package),
            package["kernel"],
        )
        for package in document["packages"]
    )
    names = ("file", "KiB", "compiled for", "runs here on", "kernel")
    yield table("Packages", names, packages, right=("KiB",))
    for package in document["packages"]:
        if package["runtime"] != "builtin":
            yield Text(f"{package['file']}, {_runtime(package)}: {package['why']}\n")


def _row(variable: Mapping[str, Any]) -> tuple[str, ...]:
    name, *rest = _untyped(variable)
    return (name, variable["type"], *rest)


def _untyped(variable: Mapping[str, Any]) -> tuple[str, ...]:
    sites = variable["sub_batch_shape"]
    return variable["name"], shape(variable["base_shape"]), shape(sites) if sites else ""


def _becomes(history: Mapping[str, Any] | None) -> str:
    """Of a history: what it takes its value from."""
    if history is None:
        return ""
    source = history["output"] or history["current"]
    if source is None:
        return "neither an output nor an input of its name"
    # x~2 takes what x~1 was.
    return f"{source}~{history['age'] - 1}" if history["age"] > 1 else source


def _values(values: list[float]) -> str:
    shown = ", ".join(f"{value:.6g}" for value in values[:_MOST_VALUES])
    return shown + (", ..." if len(values) > _MOST_VALUES else "")


def _size(variable: Mapping[str, Any]) -> int:
    return math.prod((*variable["sub_batch_shape"], *variable["base_shape"]))


def _derivatives(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = [*document["derivatives"], *document["parameter_derivatives"]]
    known = [(pair["output"], pair["variable"]) for pair in pairs]
    return known or [("none was compiled", "neml2-compile -d OUTPUT:INPUT compiles one")]


def _runtime(package: Mapping[str, Any]) -> str:
    return package["runtime"] or "nothing"


def _target(package: Mapping[str, Any]) -> str:
    march = package["march"]
    words = (package["machine"], package["instruction_sets"], march and f"-march={march}")
    return " ".join(filter(None, words)) or "it does not say"
