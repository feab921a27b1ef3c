"""Models of forward segments that were put together by hand, of any shapes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_setup import native_target

from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import write_sources
from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import Scalars

Shapes = Mapping[str, tuple[int, ...]]


def doubling(inputs: Shapes, outputs: Shapes) -> Program:
    """Each output is twice the components of the first input, over and over."""
    s = Scalars()
    components = math.prod(next(iter(inputs.values())))
    results = [
        [s.mul(s.constant(2), s.variable(0, i % components)) for i in range(math.prod(shape))]
        for shape in outputs.values()
    ]
    taken, made = ([Array(*item) for item in some.items()] for some in (inputs, outputs))
    return program_of(taken, made, results)


def scalar(name: str, sites: Sequence[int] | None = None) -> dict[str, Any]:
    """An input or output of the model; the metadata need not tell its sites."""
    told = {} if sites is None else {"sub_batch_shape": list(sites)}
    return {"name": name, "var_size": 1, "var_type": "Scalar", "base_shape": [], **told}


def described(
    segments: Sequence[tuple[Shapes, Shapes]],
    inputs: Sequence[dict[str, Any]],
    outputs: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """The metadata of a model of forward segments."""
    return {
        "schema_version": 14,
        "type": "composed",
        "inputs": inputs,
        "outputs": outputs,
        "segments": [
            {
                "kind": "forward",
                "package": f"seg{i}.pt2",
                "inputs": [{"name": name} for name in taken],
                "outputs": [{"name": name} for name in made],
                "param_inputs": [],
            }
            for i, (taken, made) in enumerate(segments)
        ],
        "parameters": [],
        "derivatives": [],
        "parameter_derivatives": [],
    }


def model(
    root: Path,
    segments: Sequence[tuple[Shapes, Shapes]],
    inputs: Sequence[dict[str, Any]],
    outputs: Sequence[dict[str, Any]],
) -> Path:
    """An artifact with kernels only, one for the inputs and outputs of each segment."""
    metadata = described(segments, inputs, outputs)
    root.mkdir()
    (root / "metadata.json").write_text(json.dumps(metadata))
    (root / "cpu" / "float64").mkdir(parents=True)
    programs = {f"seg{i}.pt2": doubling(*segment) for i, segment in enumerate(segments)}
    folder = write_sources(root, "cpu/float64", programs, metadata, {"neml2": "none"})
    build(folder, [native_target()])
    return root
