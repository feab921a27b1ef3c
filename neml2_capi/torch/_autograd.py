"""A model as a function of torch.autograd, in reverse and forward mode and for torch.func.

The Jacobian is computed in forward, and kept: backward multiplies with it. To evaluate again in
backward would take less memory, but solve every nonlinear system twice, and jacrev and jacfwd once
for each row or column; the Jacobian takes about one more Newton step. It also makes backward
independent of what became of the inputs, and it cannot fail. Where memory is short,
torch.utils.checkpoint evaluates again.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import torch
from torch.autograd import Function

from neml2_capi._library import lib
from neml2_capi.errors import FatalError
from neml2_capi.torch._linearization import Linearization

_Tensors = tuple[Any, ...]


class Evaluation(Function):  # type: ignore[misc]
    """apply(linearization, wanted, *tensors): what Linearization.evaluate() returns.

    The Jacobians are results, so that torch knows where a derivative of a derivative begins.
    """

    @staticmethod
    def forward(linearization: Linearization, wanted: Sequence[bool], *tensors: Any) -> _Tensors:
        return linearization.evaluate(tensors, wanted)

    @staticmethod
    def setup_context(ctx: Any, inputs: _Tensors, output: _Tensors) -> None:
        ctx.linearization, ctx.wanted = inputs[:2]
        ctx.shapes = [tensor.shape for tensor in inputs[2:]]
        jacobians = output[len(ctx.linearization.outputs) :]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*jacobians)
        ctx.save_for_forward(*jacobians)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> _Tensors:
        """The adjoints of the tensors; what was one value for many points gets their sum."""
        model, needed = ctx.linearization, ctx.needs_input_grad[2:]
        if any(gradient is not None for gradient in gradients[len(model.outputs) :]):
            raise _no_second_derivative()
        total = None
        for output, gradient, jacobian in zip(
            model.outputs, gradients, ctx.saved_tensors, strict=False
        ):
            if gradient is None:
                continue
            for argument, needs in zip(model.arguments, needed, strict=True):
                if needs:
                    model.require(output, argument)
            rows = gradient.reshape(*output.batch_of(gradient), output.size)
            product = Product.apply(jacobian, rows, True)
            total = product if total is None else total + product
        adjoints: list[Any] = [None] * len(needed)
        if total is not None:
            parts = torch.split(total, model.columns(ctx.wanted), dim=-1)
            for index, part in enumerate(parts):
                if needed[index]:
                    full = part.reshape(part.shape[:-1] + model.arguments[index].shape)
                    adjoints[index] = full.sum_to_size(ctx.shapes[index])
        return (None, None, *adjoints)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> _Tensors:
        """The tangents of the results. Those of the Jacobians are not known: see Product."""
        model, jacobians = ctx.linearization, ctx.saved_tensors
        batch = jacobians[0].shape[:-2]
        parts = []
        columns = model.columns(ctx.wanted)
        for argument, count, tangent in zip(model.arguments, columns, tangents[2:], strict=True):
            if tangent is not None:
                for output in model.outputs:
                    model.require(output, argument)
                flat = tangent.reshape(*argument.batch_of(tangent), count)
                parts.append(flat.expand(*batch, count))
            elif count:
                parts.append(jacobians[0].new_zeros(()).expand(*batch, count))
        direction = torch.cat(parts, dim=-1)
        results = [
            Product.apply(jacobian, direction, False).reshape(batch + output.shape)
            for output, jacobian in zip(model.outputs, jacobians, strict=True)
        ]
        return (*results, *map(_zeros, jacobians))

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        linearization: Linearization,
        wanted: Sequence[bool],
        *tensors: Any,
    ) -> tuple[_Tensors, _Tensors]:
        """One evaluation, with the axis of vmap as the first batch axis."""
        axes = in_dims[2:]
        arguments = linearization.arguments
        rank = max(
            tensor.ndim - (axis is not None) - len(argument.shape)
            for argument, tensor, axis in zip(arguments, tensors, axes, strict=True)
        )
        folded = []
        for argument, tensor, axis in zip(arguments, tensors, axes, strict=True):
            if axis is not None:
                tensor = tensor.movedim(axis, 0)
                missing = rank - (tensor.ndim - 1 - len(argument.shape))
                tensor = tensor.reshape(tensor.shape[:1] + (1,) * missing + tensor.shape[1:])
            folded.append(tensor)
        results = Evaluation.apply(linearization, wanted, *folded)
        return results, (0,) * len(results)


class Product(Function):  # type: ignore[misc]
    """apply(jacobian, vector, transposed): of Jacobians as in Linearization, and no derivative.

    A product is linear in the vector, and can be differentiated with respect to it. What would
    differentiate the Jacobian, wants a second derivative of the model.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(jacobian: Any, vector: Any, transposed: bool) -> Any:
        matrix = jacobian if transposed else jacobian.mT
        return (matrix @ vector.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: _Tensors, output: Any) -> None:
        jacobian, _, ctx.transposed = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(jacobian)
        ctx.save_for_forward(jacobian)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> _Tensors:
        (jacobian,) = ctx.saved_tensors
        # Any number: Evaluation refuses it, where torch asks further for that.
        unknown = _zeros(jacobian) if ctx.needs_input_grad[0] else None
        return unknown, Product.apply(jacobian, gradient, not ctx.transposed), None

    @staticmethod
    def jvp(ctx: Any, jacobian_tangent: Any, tangent: Any, _: Any) -> Any:
        if jacobian_tangent is not None:
            raise _no_second_derivative()
        (jacobian,) = ctx.saved_tensors
        return Product.apply(jacobian, tangent, ctx.transposed)


# torch asks for the signature at every call, and this is where it is kept once it is known.
_function: Any
for _function in (Evaluation.forward, Product.forward):
    _function.__signature__ = signature(_function)


def _zeros(tensor: Any) -> Any:
    return tensor.new_zeros(()).expand(tensor.shape)


def _no_second_derivative() -> FatalError:
    return FatalError(
        "this needs a second derivative of a compiled model, and only first ones are compiled: "
        "without create_graph=True, hessian() or nested transforms, gradients are there",
        lib.NEML2_ERROR_UNSUPPORTED,
    )
