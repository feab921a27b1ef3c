"""What metadata and packages must say of one another, so that they are of one compilation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from neml2_capi.artifact.files import Description, arity


def contradictions(description: Description, leaf: Path) -> Iterator[str]:
    """What does not fit together, in a sentence each."""
    yield from _dangling(description)
    if not description["kernels_only"]:
        yield from _other_arities(description, leaf)


def _dangling(description: Description) -> Iterator[str]:
    """Names that nothing gives."""
    inputs = {variable["name"] for variable in description["inputs"]}
    outputs = {variable["name"] for variable in description["outputs"]}
    parameters = {parameter["name"] for parameter in description["parameters"]}
    known = set(inputs)
    for index, segment in enumerate(description["segments"]):
        for name in inputs_of(segment):
            if name not in known:
                yield f"segments[{index}] takes {name!r}, which no input nor earlier segment gives"
        for name in segment["parameters"]:
            if name not in parameters:
                yield f"segments[{index}] takes the parameter {name!r}, which there is not"
        known.update(outputs_of(segment))
    for name in sorted(outputs - known):
        yield f"no segment gives the output {name!r}"
    for key, variables in (("derivatives", inputs), ("parameter_derivatives", parameters)):
        for pair in description[key]:
            if pair["output"] not in outputs or pair["input"] not in variables:
                yield f"{key} has the pair {pair['output']}:{pair['input']}, which there is not"


def inputs_of(segment: Mapping[str, Any]) -> list[str]:
    """The variables that a segment takes."""
    return list(segment["inputs"]) if segment["kind"] == "forward" else _members(segment["givens"])


def outputs_of(segment: Mapping[str, Any]) -> list[str]:
    """The variables that a segment gives."""
    return segment["outputs"] if segment["kind"] == "forward" else _members(segment["unknowns"])


def _members(groups: list[Mapping[str, Any]]) -> list[str]:
    return [variable["name"] for group in groups for variable in group["variables"]]


def _other_arities(description: Description, leaf: Path) -> Iterator[str]:
    """Packages that take or give another number of tensors than the metadata has."""
    for segment in description["segments"]:
        expected = _forward(segment) if segment["kind"] == "forward" else _implicit(segment)
        for package, takes, gives in expected:
            found = arity(leaf / package) if package else None
            if found and found != (takes, gives):
                yield (
                    f"{package} takes {found[0]} tensors and gives {found[1]}; the metadata has "
                    f"{takes} and {gives}"
                )


def _forward(graph: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """The package of a named graph, and how many tensors it takes and gives."""
    takes = len(graph["inputs"]) + len(graph["parameters"])
    yield graph["package"], takes, len(graph["outputs"])


def _implicit(segment: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Residual, Jacobian and step of Newton's method, and its first guess."""
    unknowns, residuals = len(segment["unknowns"]), len(segment["residuals"])
    takes = unknowns + len(segment["givens"]) + len(segment["parameters"])
    operator = residuals * unknowns + residuals
    yield segment["residual_package"], takes, residuals
    yield segment["jacobian_package"], takes, operator
    yield segment["solve_package"], operator, unknowns
    yield segment["step_package"], takes, unknowns + residuals
    if segment["predictor"]:
        yield from _forward(segment["predictor"])
