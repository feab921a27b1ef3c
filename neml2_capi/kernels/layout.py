"""Names for the inputs and outputs of a graph, from the metadata of its artifact."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

from neml2_capi.kernels.program import Array, Part, Program

_Json = dict[str, Any]

#: Packages of an implicit segment whose first inputs are the unknowns and the givens.
OF_THE_SYSTEM = (
    "residual_package",
    "jacobian_package",
    "jacobian_given_package",
    "dr_dparam_package",
    "matvec_package",
)


def named(program: Program, package: str, metadata: _Json) -> Program:
    """The same program with the names that the metadata has for the arrays of a package.

    Arrays keep the names of the graph if the metadata says nothing. The input of a predictor
    that is fed back, and the direction of a product with the Jacobian, are marked as changing: half
    of the crystal's predictor is then computed once.
    """
    for segment in metadata.get("segments", ()):
        for key, value in segment.items():
            if key.endswith("package") and value == package:
                inputs, outputs = _arrays(key, segment)
                return dataclasses.replace(
                    program,
                    inputs=_renamed(program.inputs, inputs),
                    outputs=_renamed(program.outputs, outputs),
                )
    return program


def values_of(package: str, metadata: _Json) -> str:
    """The package that returns the first outputs of a package of derivatives alone, or ""."""
    for segment in metadata.get("segments", ()):
        if segment.get("kind") == "forward" and segment.get("jvp_package") == package:
            return str(segment["package"])
    return ""


def _arrays(key: str, segment: _Json) -> tuple[list[Array], list[Array]]:
    """Names, parts and changes; shapes are not told, they are the graph's."""
    parameters = [Array(name, ()) for name in segment.get("param_inputs", ())]
    if segment.get("kind") == "forward":
        inputs = [*_variables(segment["inputs"]), *parameters]
        outputs = [] if key == "param_jacobian_package" else _variables(segment["outputs"])
        if key == "jvp_package":
            outputs += _blocks(segment["jacobian_pairs"], "in_var")
        elif key == "param_jacobian_package":
            outputs = _blocks(segment["param_jacobian_pairs"], "param")
        return inputs, outputs
    if key == "predictor_package":
        return _predictor(segment)
    if key not in OF_THE_SYSTEM:
        return [], []
    unknowns = _groups(segment["unknown_group_infos"], "unknowns")
    givens = _groups(segment["given_group_infos"], "givens")
    residuals = _groups(segment["residual_group_infos"], "residual")
    operator = [Array("jacobian", ())] if len(unknowns) == 1 else []
    outputs = {
        "residual_package": residuals,
        "jacobian_package": [*operator, *residuals] if operator else [],
        "jacobian_given_package": [Array("by_givens", ())] if operator else [],
        "dr_dparam_package": [*operator, Array("by_parameters", ())] if operator else [],
        "matvec_package": [Array("product", ())] if operator else [],
    }[key]
    direction = [Array("direction", (), changes=True)] if key == "matvec_package" else []
    return [*unknowns, *givens, *parameters, *direction], outputs


def _variables(entries: Iterable[_Json]) -> list[Array]:
    return [Array(entry["name"], ()) for entry in entries]


def _blocks(pairs: Iterable[_Json], given: str) -> list[Array]:
    return [Array(f"d_{pair['out_var']}_d_{pair[given]}", ()) for pair in pairs]


def _predictor(segment: _Json) -> tuple[list[Array], list[Array]]:
    feedback = segment.get("predictor_feedback") or {}
    inputs = _variables(segment.get("predictor_inputs", ()))
    inputs = [dataclasses.replace(a, changes=a.name == feedback.get("input")) for a in inputs]
    return inputs, _variables(segment.get("predictor_outputs", ()))


def _groups(groups: Sequence[_Json], name: str) -> list[Array]:
    """An array for each group, in which the variables lie side by side if it is dense."""
    found = []
    for number, group in enumerate(groups):
        offset, parts = 0, []
        for entry in group["per_var_info"]:
            size = math.prod(group["sub_batch_shape"]) * entry["var_size"]
            parts.append(Part(entry["name"], offset, size))
            offset += size
        suffix = f"_{number}" if len(groups) > 1 else ""
        dense = not group["sub_batch_shape"]
        found.append(Array(name + suffix, (), parts=tuple(parts) if dense else ()))
    return found


def _renamed(arrays: Sequence[Array], wanted: Sequence[Array]) -> list[Array]:
    """The arrays by other names, if there are as many; repeated names are numbered."""
    if len(arrays) != len(wanted):
        return list(arrays)
    names: set[str] = set()
    found = []
    for array, other in zip(arrays, wanted, strict=True):
        name = other.name
        while name in names:
            name += "_again"
        names.add(name)
        fits = sum(part.components for part in other.parts) == array.components
        parts = other.parts if fits else ()
        found.append(dataclasses.replace(array, name=name, parts=parts, changes=other.changes))
    return found
