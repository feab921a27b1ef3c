"""What a user wants to know of an artifact, as a document of stable form: inspect --json."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from neml2_capi._document import read_json
from neml2_capi.artifact.files import (
    Description,
    describe_any,
    leaves,
    metadata_of_leaf,
    packages_named,
    packages_of,
    read_package,
)
from neml2_capi.cli.consistency import inputs_of, outputs_of
from neml2_capi.cli.kernel_summary import kernels_of, stand_in
from neml2_capi.cli.runtimes import choose

#: Of each, the names at the boundary by the names inside.
_KINDS = ("inputs", "outputs", "parameters")
_HISTORY = re.compile(r"(.+)~([1-9]\d*)")


def summary(path: Path, dtype: str | None = None) -> dict[str, Any]:
    """Names are the names at the boundary; a shape is for one point.

    Sub-batch axes of outputs are known only if the metadata says them: older schemas do not.
    """
    description = describe_any(path, dtype)
    leaf = Path(description["leaf"])
    kernels = kernels_of(leaf)
    packages = packages_of(description)
    runtimes = [choose(leaf / name) for name in packages]
    if stand_in(description, leaf) and not all(choice.runtime for choice in runtimes):
        runtimes = [replace(choice, runtime="its kernel") for choice in runtimes]
    metadata = metadata_of_leaf(leaf)
    of_inputs, of_outputs, of_parameters = map(description["aliases"].get, _KINDS)
    inputs = [_variable(variable, of_inputs) for variable in description["inputs"]]
    outputs = [_variable(variable, of_outputs) for variable in description["outputs"]]
    return {
        "artifact": str(path),
        "schema": _schema(metadata),
        "compiled_for": (metadata and leaves(metadata)) or [f"cpu/{description['dtype']}"],
        "dtype": description["dtype"],
        "inputs": inputs,
        "outputs": outputs,
        "parameters": [
            {
                "name": of_parameters.get(parameter["name"], parameter["name"]),
                "shape": parameter["shape"],
                "dtype": parameter["dtype"],
                "values": parameter["values"],
            }
            for parameter in description["parameters"]
        ],
        "histories": list(
            _histories([v["name"] for v in inputs], {v["name"] for v in outputs}),
        ),
        "unknowns": [
            _variable(variable, {})
            for segment in description["segments"]
            for group in segment.get("unknowns", ())
            for variable in group["variables"]
        ],
        "derivatives": _pairs(description["derivatives"], of_outputs, of_inputs),
        "parameter_derivatives": _pairs(
            description["parameter_derivatives"], of_outputs, of_parameters
        ),
        "segments": [_segment(segment) for segment in description["segments"]],
        "solver": description["solver"] if _is_implicit(description) else None,
        "packages": [
            asdict(read_package(leaf / name))
            | {"runtime": choice.runtime, "why": choice.why, "kernel": kernels.get(name, "none")}
            for name, choice in zip(packages, runtimes, strict=True)
        ],
        "kernels": kernels if description["kernels_only"] else {},
    }


def _schema(metadata: Path | None) -> int | None:
    if metadata is None:
        return None
    return read_json(metadata).required("schema_version", "a whole number").whole("a version")


def _variable(variable: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": names.get(variable["name"], variable["name"]),
        "type": variable["type"],
        "sub_batch_shape": variable["sub_batch_shape"],
        "base_shape": variable["base_shape"],
    }


def _histories(inputs: list[str], outputs: set[str]) -> Iterator[dict[str, Any]]:
    for name in inputs:
        match = _HISTORY.fullmatch(name)
        if match:
            current = match[1]
            yield {
                "input": name,
                "age": int(match[2]),
                "output": current if current in outputs else None,
                "current": current if current in inputs and current not in outputs else None,
            }


def _pairs(
    pairs: list[Mapping[str, Any]], outputs: Mapping[str, str], variables: Mapping[str, str]
) -> list[dict[str, str]]:
    return [
        {
            "output": outputs.get(pair["output"], pair["output"]),
            "variable": variables.get(pair["input"], pair["input"]),
        }
        for pair in pairs
    ]


def _is_implicit(description: Description) -> bool:
    return any(segment["kind"] == "implicit" for segment in description["segments"])


def _segment(segment: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": segment["kind"],
        "inputs": inputs_of(segment),
        "outputs": outputs_of(segment),
        "parameters": segment["parameters"],
        "linear_solver": segment["krylov"]["method"] if segment.get("krylov") else None,
        "substepping_levels": segment.get("max_substepping_level", 0),
        "packages": list(dict.fromkeys(packages_named(segment))),
    }
