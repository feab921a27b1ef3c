"""One torch module as one package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from neml2_capi._library import lib
from neml2_capi.errors import FatalError
from neml2_capi.export._adjoint import export_adjoint
from neml2_capi.export._compile import TRACED_POINTS, compile_program, export


def package(
    module: Any,
    example_inputs: Sequence[Any],
    path: str | os.PathLike[str],
    *,
    dynamic_batch: bool | Sequence[int | None] = True,
    backward: bool = False,
    target: str = "x86-64-v3",
) -> Path:
    """Compile a torch module, or a function of tensors, to a .pt2 package; return its path.

        export.package(network, (torch.zeros(8, 6, dtype=torch.float64),), "network.pt2")
        (stress,) = neml2_capi.Graph("network.pt2")(strain)

    The package runs without torch, from Python, C, C++ and Fortran, where the built-in provider has
    all that it calls; a warning names what is missing. Parameters and buffers become constants of
    the package, with the values that they have now; a module is best in eval() mode.

    `example_inputs` are the positional arguments: CPU tensors of the element types and shapes to
    compile for, whose values do not matter. Outputs are a tensor, or a tuple, list or dict of them.

    `dynamic_batch`: True makes axis 0 of every input one batch axis of any size up to 2^20; a
    sequence gives its axis for each input, None for an input without one; False compiles the shapes
    of the examples as they are. `target` is the oldest processor that the package shall run on,
    "x86-64-v2", "x86-64-v3" or "x86-64-v4", or this machine's, "native".

    `backward` writes a second package beside the first, NAME.vjp.pt2, with which gradients run
    through neml2_capi.torch.Graph. It takes all inputs and then a cotangent for each floating-point
    output, and returns a gradient for each floating-point input, of its shape.

    FatalError where `path` does not end in .pt2, an example is no CPU tensor or has no such axis,
    or torch cannot export the module; torch says why.
    """
    path = Path(path)
    if path.suffix != ".pt2":
        raise FatalError(
            f"a package is a file NAME.pt2, not {path.name!r}", lib.NEML2_ERROR_ARGUMENT, str(path)
        )
    inputs = tuple(example_inputs)
    axes = _batch_axes(inputs, dynamic_batch)
    examples = tuple(map(_example, inputs, axes))
    compile_program(export(module, examples, axes), path, target)
    if backward:
        adjoint = export_adjoint(module, examples, axes)
        compile_program(adjoint, path.with_suffix(".vjp.pt2"), target)
    return path


def _batch_axes(inputs: Sequence[Any], dynamic: bool | Sequence[int | None]) -> list[int | None]:
    """The batch axis of each input."""
    for index, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            raise FatalError(
                f"example input {index} must be a torch.Tensor on the CPU; got {value!r:.80}",
                lib.NEML2_ERROR_ARGUMENT,
            )
    if isinstance(dynamic, bool):
        return [0 if dynamic else None for _ in inputs]
    axes = list(dynamic)
    if len(axes) != len(inputs):
        raise FatalError(
            f"dynamic_batch has {len(axes)} axes for {len(inputs)} example inputs; "
            "give one for each, or None where there is no batch",
            lib.NEML2_ERROR_ARGUMENT,
        )
    return axes


def _example(value: Any, axis: int | None) -> Any:
    """The example with as many points as are traced."""
    if axis is None:
        return value.detach()
    if not -value.ndim <= axis < value.ndim or value.shape[axis] == 0:
        raise FatalError(
            f"the batch axis {axis} needs a point at least in every example input; the shape of "
            f"one is {tuple(value.shape)}. Give dynamic_batch=False or the axis of each input",
            lib.NEML2_ERROR_SHAPE,
        )
    points = torch.arange(TRACED_POINTS) % value.shape[axis]
    return value.detach().index_select(axis, points)
