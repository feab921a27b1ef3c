"""The kernels of an artifact, from the graphs of its packages: Jacobians, Newton steps, loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from neml2_capi.kernels.elimination import newton_step
from neml2_capi.kernels.emit import source
from neml2_capi.kernels.labels import Origin, labelled, of_plain
from neml2_capi.kernels.latency import ready_first
from neml2_capi.kernels.layout import OF_THE_SYSTEM, named, values_of
from neml2_capi.kernels.loops import source_with_loops
from neml2_capi.kernels.program import NoKernel, Program, with_sparse_outputs
from neml2_capi.kernels.rolling import rolled
from neml2_capi.kernels.schedule import run_operations, unchanging_first
from neml2_capi.kernels.simplify import simplified
from neml2_capi.kernels.systems import (
    has_many_of_one_kind,
    inputs_of,
    joined_systems_of,
    system_of,
)
from neml2_capi.kernels.verify import are_alike

_Json = dict[str, Any]

#: Fewer operations are a straight line, which is as quick and as short.
LEAST_IN_LOOPS = 2000
#: Residuals that are longer, or have more unknowns, are not tried with auxiliary unknowns.
_MOST_JOINED, _MOST_UNKNOWNS = 4000, 100


@dataclass(frozen=True)
class Prepared:
    """The operations of a kernel, and what the components of its inputs are, if that is known."""

    program: Program
    origins: list[list[Origin]] | None = None
    #: What another kernel computes: the first outputs of this one alone, with the same bits.
    values: Program | None = None
    #: Its first inputs that are groups of unknowns, which Newton's method changes.
    unknowns: int = 0
    #: Whether no other kernel computes the same, so that terms may be added in any order.
    is_alone: bool = False

    def written(
        self, package: str, metadata: _Json, name: str, origin: str
    ) -> tuple[Program, str, int]:
        """The program with the names of the metadata, its source in C, and its operations."""
        program = named(self.program, package, metadata)
        long = program.operations > LEAST_IN_LOOPS
        prepares = any(array.changes for array in program.inputs)
        loops = rolled(program, self.origins) if self.origins and long and not prepares else None
        if loops:
            return program, *source_with_loops(loops, program, name, origin)
        program = simplified(program, self.values)
        first = self.unknowns
        inputs = [replace(array, changes=True) for array in program.inputs[:first]]
        program = replace(program, inputs=[*inputs, *program.inputs[first:]])
        program = unchanging_first(program) if first else program
        ready = ready_first(program, self.unknowns) if self.is_alone else None
        return program, source(program, name, origin, ready), program.operations


def prepared_kernels(
    programs: Mapping[str, Program | str], metadata: _Json
) -> dict[str, Prepared | str]:
    """The kernels of all packages, or why there is none.

    Parameters
    ----------
    programs : Mapping[str, Program | str]
        By the file names of packages: what was read from their graphs, or why there is no kernel.
    metadata : dict
        The metadata of the artifact.
    """
    sites = max(_site_counts(metadata), default=0)
    found: dict[str, Prepared | str] = {}
    for package, program in programs.items():
        if isinstance(program, str):
            found[package] = program
            continue
        values = programs.get(values_of(package, metadata))
        plain = _plain(program, sites)
        found[package] = replace(plain, values=values if isinstance(values, Program) else None)
    for segment in metadata.get("segments", ()):
        if groups := segment.get("unknown_group_infos"):
            _prepare_system(found, segment)
            for key in ("residual_package", "jacobian_package"):
                kernel = found.get(segment.get(key) or "")
                if isinstance(kernel, Prepared):
                    found[segment[key]] = replace(kernel, unknowns=len(groups))
    return found


def _plain(program: Program, sites: int) -> Prepared:
    origins = [of_plain(array, sites) for array in program.inputs]
    return _labelled(program, origins) if sites else Prepared(program)


def _labelled(program: Program, origins: list[list[Origin]]) -> Prepared:
    return Prepared(replace(program, sites=labelled(program, origins)), origins)


def _site_counts(entry: Any) -> Iterator[int]:
    """The numbers of sites that metadata tells of."""
    if isinstance(entry, list):
        for inner in entry:
            yield from _site_counts(inner)
    elif isinstance(entry, dict):
        for key, inner in entry.items():
            if key == "sub_batch_shape":
                yield math.prod(inner) if inner else 0
            else:
                yield from _site_counts(inner)


def _prepare_system(found: dict[str, Prepared | str], segment: _Json) -> None:
    """Jacobians of an implicit segment, and a Newton step instead of a package that solves.

    A Jacobian that was read from a graph is NEML2's own. It is derived if there is none, since it
    is too long or was left out, for many unknowns of one kind, as X1, X2, ..., and if it is the
    same by fewer operations.
    """
    jacobian, step = segment.get("jacobian_package"), segment.get("solve_package")
    residual = found.get(segment.get("residual_package") or "")
    traced = found.get(jacobian or "")
    if isinstance(traced, str) or has_many_of_one_kind(segment):
        for key in OF_THE_SYSTEM:
            kernel = found.get(segment.get(key) or "")
            if isinstance(kernel, Prepared):
                origins = inputs_of(kernel.program, segment)
                found[segment[key]] = _labelled(kernel.program, origins)
        if jacobian and step and isinstance(residual, Prepared):
            try:
                system = system_of(residual.program, segment)
            except NoKernel as reason:
                found[jacobian] = reason.without_folders()
                return
            found[jacobian] = Prepared(system.jacobian, system.givens)
            found[step] = Prepared(system.step, system.entries)
    else:
        groups = [len(segment.get(f"{kind}_group_infos", ())) for kind in ("unknown", "given")]
        operators = ("jacobian_package", "jacobian_given_package")
        for key, columns in zip(operators, groups, strict=True):
            kernel = found.get(segment.get(key) or "")
            if isinstance(kernel, Prepared):
                sparse = with_sparse_outputs(kernel.program, groups[0] * columns)
                found[segment[key]] = replace(kernel, program=sparse)
        kernel = found.get(jacobian or "")
        if step and isinstance(kernel, Prepared):
            made = newton_step(kernel.program, _sizes(segment["unknown_group_infos"]))
            if made:
                found[step] = Prepared(made)
    if jacobian and step and isinstance(traced, Prepared) and isinstance(residual, Prepared):
        _join(found, segment, residual.program, traced.program)


def _join(
    found: dict[str, Prepared | str], segment: _Json, residual: Program, traced: Program
) -> None:
    """Take the Jacobian with auxiliary unknowns, and its step, if it has fewer operations."""
    jacobian, step = segment["jacobian_package"], segment["solve_package"]
    if not _is_plain(segment) or residual.operations > _MOST_JOINED:
        return
    (unknowns,) = _sizes(segment["unknown_group_infos"])
    if unknowns > _MOST_UNKNOWNS:
        return
    try:
        systems = list(joined_systems_of(residual, segment))
    except NoKernel:
        return
    pairs = [(s.jacobian, s.step) for s in systems if are_alike(traced, s.jacobian, unknowns)]
    kernels = found.get(jacobian), found.get(step)
    known = [kernel.program for kernel in kernels if isinstance(kernel, Prepared)]
    if len(known) == 2:
        pairs.append((known[0], known[1]))
    least = min(pairs, key=lambda pair: _work(*pair), default=None)
    if least and list(least) != known:
        found[jacobian], found[step] = (Prepared(kernel, is_alone=True) for kernel in least)


def _is_plain(segment: _Json) -> bool:
    """Whether all unknowns and givens stand in one dense group each, without sites."""
    kinds = [segment[f"{kind}_group_infos"] for kind in ("unknown", "residual", "given")]
    return all(len(kind) == 1 for kind in kinds[:2]) and not any(
        group.get("structure") == "block" or group["sub_batch_shape"]
        for kind in kinds
        for group in kind
    )


def _work(jacobian: Program, step: Program) -> int:
    """The operations of an iteration."""
    first, *others = simplified(jacobian).inputs
    repeated = replace(simplified(jacobian), inputs=[replace(first, changes=True), *others])
    return run_operations(unchanging_first(repeated)) + simplified(step).operations


def _sizes(groups: Sequence[_Json]) -> list[int]:
    return [
        sum(
            math.prod([*variable["sub_batch_shape"], *variable["base_shape"]])
            for variable in group["per_var_info"]
        )
        for group in groups
    ]
