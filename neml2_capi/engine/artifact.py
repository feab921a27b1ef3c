"""Content of an artifact, as neml2_source_describe() says it; capi/artifact/metadata.h explains.

Names are those inside the model, except in `Aliases`, which has those at its boundary.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from neml2_capi._ffi.errors import read_text
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.source import NativeSource


@dataclass(frozen=True)
class Variable:
    """A value with sub-batch axes and base axes at each point."""

    name: str
    type: str
    sub_batch_shape: tuple[int, ...]
    base_shape: tuple[int, ...]

    @property
    def point_shape(self) -> tuple[int, ...]:
        return self.sub_batch_shape + self.base_shape


@dataclass(frozen=True)
class Group:
    """Variables side by side along the last axis; a "block" keeps their sub-batch axes."""

    structure: str
    sub_batch_shape: tuple[int, ...]
    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class Pair:
    """A block of a Jacobian: of `output` with respect to `input`."""

    output: str
    input: str
    output_base_shape: tuple[int, ...]
    input_base_shape: tuple[int, ...]
    batch_independent: bool
    row: int
    column: int
    matrix: int | None


@dataclass(frozen=True)
class NamedGraph:
    """A package that takes values and then parameters."""

    package: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Feedback:
    """The predictor runs again and again; `output` becomes `input` of the next pass."""

    input: str
    output: str
    iterations: int
    sub_batch_shape: tuple[int, ...]
    base_shape: tuple[int, ...]


@dataclass(frozen=True)
class Krylov:
    """An iterative linear solver."""

    method: str
    cache: str
    restart: int
    max_its: int
    abs_tol: float
    rel_tol: float
    cache_max_its: int


@dataclass(frozen=True)
class Sensitivity:
    """Packages that find the derivatives of the unknowns at a solution."""

    operator_package: str
    solve_package: str
    krylov: Krylov | None
    block_package: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Substep:
    """Role of a given when the increment is divided."""

    name: str
    role: str
    partner: str


@dataclass(frozen=True)
class ForwardSegment:
    """Segment of one graph."""

    package: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    jacobian_package: str
    pairs: tuple[Pair, ...]
    parameter_jacobian_package: str
    parameter_pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class ImplicitSegment:
    """The unknowns that make a residual vanish."""

    residual_package: str
    jacobian_package: str
    solve_package: str
    step_package: str
    step_is_taken: bool
    matvec_package: str
    krylov: Krylov | None
    preconditioner_setup_package: str
    preconditioner_apply_package: str
    parameters: tuple[str, ...]
    unknowns: tuple[Group, ...]
    givens: tuple[Group, ...]
    residuals: tuple[Group, ...]
    predictor: NamedGraph | None
    feedback: Feedback | None
    given_sensitivity: Sensitivity | None
    parameter_sensitivity: Sensitivity | None
    max_substepping_level: int
    substeps: tuple[Substep, ...]


@dataclass(frozen=True)
class Parameter:
    """A promoted parameter and its stored value."""

    name: str
    shape: tuple[int, ...]
    base_shape: tuple[int, ...]
    dtype: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Aliases:
    """Names at the boundary, by the names inside; what is not listed keeps its name."""

    inputs: dict[str, str]
    outputs: dict[str, str]
    parameters: dict[str, str]


@dataclass(frozen=True)
class Artifact:
    """An artifact, for one device and element type."""

    leaf: Path
    dtype: str
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    parameters: tuple[Parameter, ...]
    segments: tuple[ForwardSegment | ImplicitSegment, ...]
    derivatives: tuple[Pair, ...]
    parameter_derivatives: tuple[Pair, ...]
    solver: dict[str, Any]
    aliases: Aliases


def describe(path: str | os.PathLike[str], device: str | None, dtype: str | None) -> str:
    """The artifact at `path` as a JSON document; FatalError where there is none to read."""
    source = NativeSource(path, device=device, dtype=dtype)
    return read_text(lib.neml2_source_describe, source.pointer)


def parse(document: str) -> Artifact:
    """Parse what describe() says."""
    artifact: Artifact = _build(Artifact, json.loads(document))
    return artifact


def _build(kind: Any, document: Any) -> Any:
    """`document`, parsed JSON, as a `kind`: a dataclass, a tuple, a union or a plain type."""
    arguments = get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{f.name: _build(hints[f.name], document[f.name]) for f in fields(kind)})  # type: ignore[operator]
    if get_origin(kind) is tuple:
        return tuple(_build(arguments[0], item) for item in document)
    if ForwardSegment in arguments:
        return _build(
            ForwardSegment if document["kind"] == "forward" else ImplicitSegment, document
        )
    if NoneType in arguments:
        return None if document is None else _build(arguments[0], document)
    return Path(document) if kind is Path else document
