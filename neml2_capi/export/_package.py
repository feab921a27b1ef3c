"""One torch module as one package."""

from __future__ import annotations

import inspect
import json
import operator
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.export._adjoint import export_adjoint
from neml2_capi.export._compile import TRACED_POINTS, compile_program, export
from neml2_capi.export._linear_algebra import SmallMatrices
from neml2_capi.export._settings import place_of
from neml2_capi.export.targets import require_target

#: The key of a package's metadata under which the library reads them.
EXPORTER_NOTES = "NEML2_CAPI_EXPORT"


def package(
    module: Any,
    example_inputs: Sequence[Any],
    path: str | os.PathLike[str],
    *,
    dynamic_batch: bool | Sequence[int | None] = True,
    backward: bool = False,
    target: str = "x86-64-v3",
) -> Path:
    """Compile a torch module, or a function of tensors, to a .pt2 package.

        export.package(network, (torch.zeros(8, 6, dtype=torch.float64),), "network.pt2")
        (stress,) = neml2_capi.Graph("network.pt2")(strain)

    The package runs without torch, from Python, C, C++ and Fortran, if the built-in provider has
    all that it calls; a warning names what is missing. Parameters and buffers become constants of
    the package, with the values that they have now, which Graph.set_constants replaces under names
    such as "function.0.weight".

    Parameters
    ----------
    module : torch.nn.Module or function
        What returns a tensor, or a tuple, list or dict of them. A module is best in eval() mode.
    example_inputs : sequence of torch.Tensor
        The positional arguments: CPU tensors of the element types and shapes to compile for, whose
        values do not matter. A call of the Graph may name them as the module does.
    path
        The file, NAME.pt2.
    dynamic_batch
        True makes axis 0 of every input one batch axis of any size up to 2^20; a sequence gives its
        axis for each input, None for an input without one; False compiles the shapes of the
        examples as they are.
    backward
        Whether a second package is written beside the first, NAME.vjp.pt2, with which gradients run
        through neml2_capi.torch.Graph. It takes all inputs and then a cotangent for each
        floating-point output, and returns a gradient for each floating-point input, of its shape.
    target
        The oldest processor that the package shall run on, "x86-64-v2", "x86-64-v3" or "x86-64-v4",
        or this machine's, "native", which an older processor refuses.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    FatalError
        `path` does not end in .pt2, is inside the installed package or cannot be written, there is
        no such target, an example is no CPU tensor or has no such axis, or torch cannot export the
        module; torch says why.
    """
    path = place_of(path, "file")
    if path.suffix != ".pt2":
        raise FatalError(
            f"a package is a file NAME.pt2, not {path.name!r}", lib.NEML2_ERROR_ARGUMENT, str(path)
        )
    require_target(target)
    inputs = _inputs(example_inputs)
    axes = _batch_axes(inputs, dynamic_batch)
    examples = tuple(map(_example, inputs, axes))
    with SmallMatrices():
        program = export(module, examples, axes)
        adjoint = export_adjoint(module, examples, axes) if backward else None
    _compile(module, program, path, target)
    if backward:
        _compile(module, adjoint, path.with_suffix(".vjp.pt2"), target)
    return path


def _compile(module: Any, program: Any, path: Path, target: str) -> None:
    """Write a package with all constants of the module, and with what torch forgets."""
    compile_program(
        program,
        path,
        target,
        {
            # Inductor makes numbers of small constants, and of those whose elements are all equal.
            "always_keep_tensor_constants": True,
            "joint_graph_constant_folding": False,
            "aot_inductor.metadata": {EXPORTER_NOTES: json.dumps(_notes(module, program))},
        },
    )


def _notes(module: Any, program: Any) -> dict[str, list[str]]:
    """The names of the inputs, "" if there is none, and the element types of the outputs."""
    signature, values = program.graph_signature, {n.name: n.meta for n in program.graph.nodes}
    names = _argument_names(module)[: len(signature.user_inputs)]
    names += [""] * (len(signature.user_inputs) - len(names))
    dtypes = [
        str(values[name]["val"].dtype).removeprefix("torch.") for name in signature.user_outputs
    ]
    return {"inputs": names, "output_dtypes": dtypes}


def _argument_names(module: Any) -> list[str]:
    """Return the names of the positional arguments of a module or function, if they have some."""
    function = module.forward if isinstance(module, torch.nn.Module) else module
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function in C
        return []
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in named]


def _inputs(examples: Any) -> tuple[Any, ...]:
    """The positional arguments; a tensor is one of them, not several."""
    if isinstance(examples, torch.Tensor) or not isinstance(examples, Iterable):
        raise FatalError(
            f"example_inputs must be a sequence of tensors, such as (x,); got {examples!r:.80}",
            lib.NEML2_ERROR_ARGUMENT,
            "example_inputs",
        )
    inputs = tuple(examples)
    for index, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            raise FatalError(
                f"example input {index} must be a torch.Tensor on the CPU; got {value!r:.80}",
                lib.NEML2_ERROR_ARGUMENT,
            )
    return inputs


def _batch_axes(inputs: Sequence[Any], dynamic: bool | Sequence[int | None]) -> list[int | None]:
    """The batch axis of each input."""
    if isinstance(dynamic, bool):
        return [0 if dynamic else None for _ in inputs]
    try:
        axes = [None if axis is None else _axis(axis) for axis in dynamic]
    except TypeError:
        raise FatalError(
            "dynamic_batch is True, False or the axis of each input, such as (0, None); got "
            f"{dynamic!r}",
            lib.NEML2_ERROR_ARGUMENT,
            "dynamic_batch",
        ) from None
    if len(axes) != len(inputs):
        raise FatalError(
            f"dynamic_batch has {len(axes)} axes for {len(inputs)} example inputs; "
            "give one for each, or None if there is no batch",
            lib.NEML2_ERROR_ARGUMENT,
        )
    return axes


def _axis(axis: Any) -> int:
    """A whole number; TypeError if it is none."""
    if isinstance(axis, bool):
        raise TypeError
    return operator.index(axis)


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
