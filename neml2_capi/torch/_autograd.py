"""A model as a function of torch.autograd, in reverse and forward mode and for torch.func.

The Jacobian is computed in forward, and kept: backward multiplies with it. To evaluate again in
backward would take less memory, but solve every nonlinear system twice, and jacrev and jacfwd once
for each row or column; the Jacobian takes about one more Newton step. It also makes backward
independent of what became of the inputs, and it cannot fail. If memory is short,
torch.utils.checkpoint evaluates again.

A model of several segments is the exception: its Jacobian takes a product with the blocks of all
segments for each of its columns, and adjoints one. With many columns, backward evaluates again.

`Linearized` and `Repeated` do that for plain reverse mode, where a step of one point is mostly what
Python and torch take; `Evaluation` does all else.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, NoReturn

import torch
from torch.autograd import Function, forward_ad

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import NO_TRANSFORM, is_transformed
from neml2_capi.torch._linearization import Linearization, Plan

_Tensors = tuple[Any, ...]
_transforms_are_active = torch._C._are_functorch_transforms_active
_is_batched = torch._C._functorch.is_legacy_batchedtensor  # by is_grads_batched=True


def evaluate(model: Linearization, tensors: Sequence[Any]) -> Sequence[Any]:
    """The outputs, and more behind them. Gradients run through them if one may be asked."""
    shapes = tuple([tensor.shape for tensor in tensors])
    if _transforms_are_active() or getattr(forward_ad, "_current_level", 0) >= 0:
        model.batch_of(shapes)  # if they do not fit, the error has the shapes that were given
        wanted = _wanted(tensors)
        run: Any = Evaluation.apply if any(wanted) else Evaluation.forward
        results: Sequence[Any] = run(model, wanted, *tensors)
        return results
    recording = torch.is_grad_enabled()
    wanted = tuple([recording and tensor.requires_grad for tensor in tensors])
    there = bool(model.text_device) and model.is_there(tensors)
    plan = model.plan(shapes, wanted, there=there)
    if True not in wanted:
        return plan.evaluate(tensors)
    results = (Linearized if plan.linearizes else Repeated).apply(plan, *tensors)
    return tuple(results)


def _wanted(tensors: Sequence[Any]) -> tuple[bool, ...]:
    """Tell of which tensors a derivative may be asked, by a transform or in forward mode."""
    # A transform hides from the outside what it will ask of which tensor.
    if _transforms_are_active():
        return tuple(tensor.is_floating_point() for tensor in tensors)
    recording, unpacked = torch.is_grad_enabled(), forward_ad.unpack_dual
    return tuple(
        (recording and tensor.requires_grad) or unpacked(tensor).tangent is not None
        for tensor in tensors
    )


class Linearized(Function):  # type: ignore[misc]
    """apply(plan, *tensors): what Plan.evaluate() returns, for a plan with Jacobians.

    The Jacobians are a result, so that torch knows where a derivative of a derivative begins.
    """

    @staticmethod
    def forward(ctx: Any, plan: Plan, *tensors: Any) -> _Tensors:
        results = tuple(plan.evaluate(tensors))
        ctx.plan = plan
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(results[-1])
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> _Tensors:
        plan, (together,), needed = ctx.plan, ctx.saved_tensors, ctx.needs_input_grad[1:]
        if plan.model.unseen:
            plan.model.look()
        if gradients[-1] is not None:
            raise _no_second_derivative()
        if _are_values(gradients) and not plan.there:
            return None, *plan.transposed_products(together, gradients, needed)
        return None, *_adjoints(plan, plan.jacobians(together), gradients, needed)


class Repeated(Function):  # type: ignore[misc]
    """apply(plan, *tensors): what Plan.evaluate() returns, for a plan without Jacobians."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, *tensors: Any) -> _Tensors:
        ctx.plan = plan
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        return tuple(plan.evaluate(tensors))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> _Tensors:
        plan, tensors, needed = ctx.plan, ctx.saved_tensors, ctx.needs_input_grad[1:]
        if plan.model.unseen:
            plan.model.look()
        if _are_values(gradients):
            return None, *plan.adjoints(tensors, gradients, needed)
        results = Evaluation.apply(plan.model, plan.wanted, *tensors)
        return None, *_adjoints(plan, results[len(gradients) :], gradients, needed)


def _are_values(gradients: Sequence[Any]) -> bool:
    """Tell whether no derivative of them is wanted, and none is a batch of torch's vmaps."""
    if torch.is_grad_enabled() or _transforms_are_active():
        return False
    return not any(gradient is not None and _is_batched(gradient) for gradient in gradients)


class Evaluation(Function):  # type: ignore[misc]
    """apply(linearization, wanted, *tensors): what Linearization.evaluate() returns.

    The Jacobians are results, so that torch knows where a derivative of a derivative begins.
    """

    @staticmethod
    def forward(linearization: Linearization, wanted: Sequence[bool], *tensors: Any) -> _Tensors:
        return linearization.evaluate(tensors, wanted)

    @staticmethod
    def setup_context(ctx: Any, inputs: _Tensors, output: _Tensors) -> None:
        linearization, wanted = inputs[:2]
        shapes = tuple(tensor.shape for tensor in inputs[2:])
        there = linearization.is_there(inputs[2:])
        ctx.plan = linearization.plan(shapes, tuple(wanted), True, there=there)
        jacobians = output[len(linearization.outputs) :]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*jacobians)
        ctx.save_for_forward(*jacobians)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> _Tensors:
        """The adjoints of the tensors; what was one value for many points gets their sum."""
        plan, needed = ctx.plan, ctx.needs_input_grad[2:]
        if plan.model.unseen:
            plan.model.look()
        if any(gradient is not None for gradient in gradients[len(plan.model.outputs) :]):
            raise _no_second_derivative()
        return None, None, *_adjoints(plan, ctx.saved_tensors, gradients, needed)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> _Tensors:
        """The tangents of the results. The Jacobians' tangents are not known: see Product."""
        plan, jacobians = ctx.plan, ctx.saved_tensors
        model = plan.model
        batch = jacobians[0].shape[:-2]
        parts = []
        model.require(model.outputs, [tangent is not None for tangent in tangents[2:]])
        for argument, count, tangent in zip(
            model.arguments, plan.columns, tangents[2:], strict=True
        ):
            if tangent is not None:
                flat = tangent.reshape(*argument.batch_of(tangent.shape), count)
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
        """Evaluate once, with the axis of vmap as the first batch axis."""
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


def _adjoints(
    plan: Plan, jacobians: Sequence[Any], gradients: Sequence[Any], needed: Sequence[bool]
) -> list[Any]:
    """Do as Plan.transposed_products(), in operations that torch can differentiate and batch."""
    model, total = plan.model, None
    model.require(gradients, needed)
    for output, gradient, jacobian in zip(model.outputs, gradients, jacobians, strict=False):
        if gradient is not None:
            rows = gradient.reshape(*output.batch_of(gradient.shape), output.size)
            product = Product.apply(jacobian, rows, True)
            total = product if total is None else total + product
    adjoints: list[Any] = [None] * len(needed)
    if total is not None:
        for index, part in enumerate(torch.split(total, plan.columns, dim=-1)):
            if needed[index]:
                full = part.reshape(part.shape[:-1] + model.arguments[index].shape)
                adjoints[index] = full.sum_to_size(plan.shapes[index])
    return adjoints


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
        # Any number: Evaluation refuses it, if torch asks further for that.
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


class Reverse(Function):  # type: ignore[misc]
    """A function with first derivatives, in reverse mode, and no others."""

    #: What it is of, in errors.
    subject: str

    @classmethod
    def jvp(cls, *_: Any) -> NoReturn:
        raise FatalError(
            f"{cls.subject} has no tangents of torch's forward mode: give tensor.detach(), or take "
            "backward()",
            lib.NEML2_ERROR_UNSUPPORTED,
        )

    @classmethod
    def apply(cls, *arguments: Any) -> Any:
        if _transforms_are_active():
            raise cls._no_transform()
        return super().apply(*arguments)

    @classmethod
    def require_values(cls, gradients: Sequence[Any]) -> None:
        """FatalError if gradients are no values alone.

        If they were to be differentiated, there would be zero, and no error.
        """
        if any(gradient is not None and is_transformed(gradient) for gradient in gradients):
            raise cls._no_transform()
        if torch.is_grad_enabled():
            raise _no_second_derivative(cls.subject)

    @classmethod
    def _no_transform(cls) -> FatalError:
        return FatalError(f"{cls.subject}: {NO_TRANSFORM}", lib.NEML2_ERROR_UNSUPPORTED)


def _no_second_derivative(subject: str = "a compiled model") -> FatalError:
    return FatalError(
        f"this needs a second derivative of {subject}, and there are only first ones: "
        "without create_graph=True, hessian() or nested transforms, gradients are there",
        lib.NEML2_ERROR_UNSUPPORTED,
    )
