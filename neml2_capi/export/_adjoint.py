"""The adjoint of a module: products of its transposed Jacobian with cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.export._agreement import some_values
from neml2_capi.export._compile import TRACED_POINTS, export
from neml2_capi.export._points import BATCH, require_same, trace


def export_adjoint(module: Any, inputs: Sequence[Any], axes: Sequence[int | None]) -> Any:
    """An ExportedProgram: inputs, cotangents of the real outputs -> gradients of the real inputs.

    `inputs` and `axes` are the module's own. FatalError if it cannot be traced, or no
    input or output has a derivative.
    """
    differentiable = [index for index, value in enumerate(inputs) if value.is_floating_point()]

    def outputs(*values: Any) -> tuple[Any, ...]:
        return tuple(o for o in tree_leaves(module(*values)) if o.is_floating_point())

    def adjoint(*values: Any) -> tuple[Any, ...]:
        given, cotangents = values[: len(inputs)], values[len(inputs) :]

        def of_differentiable(*real: Any) -> tuple[Any, ...]:
            every = list(given)
            for index, value in zip(differentiable, real, strict=True):
                every[index] = value
            return outputs(*every)

        real = [given[index] for index in differentiable]
        _, pull_back = torch.func.vjp(of_differentiable, *real)
        gradients: tuple[Any, ...] = pull_back(cotangents)
        return gradients

    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        points = [_many(value, axis) for value, axis in zip(inputs, axes, strict=True)]
        made = outputs(*points)
        cotangents = [torch.empty(value.shape, dtype=value.dtype) for value in made]
    if not differentiable or not cotangents:
        raise FatalError(
            "backward=True needs inputs and outputs of a floating-point type",
            lib.NEML2_ERROR_DTYPE,
        )
    try:
        traced = trace(adjoint, [*points, *cotangents])
    except Exception as error:
        raise FatalError(
            f"torch cannot trace the backward pass of the module: {error}",
            lib.NEML2_ERROR_UNSUPPORTED,
        ) from error
    own_axes = [value.shape.index(BATCH) if BATCH in value.shape else None for value in cotangents]
    few = [_few(value) for value in cotangents]
    require_same(traced, adjoint, [*inputs, *few])
    return export(traced, (*inputs, *few), [*axes, *own_axes], "the backward pass of the module")


def _many(value: Any, axis: int | None) -> Any:
    shape = list(value.shape)
    if axis is not None:
        shape[axis] = BATCH
    return torch.empty(shape, dtype=value.dtype)


def _few(value: Any) -> Any:
    """A cotangent with as many points as the example inputs."""
    shape = [TRACED_POINTS * (n // BATCH) if n and n % BATCH == 0 else n for n in value.shape]
    return some_values([shape], value.dtype)[0]
