"""A driven model as a function of torch.autograd: gradients run backward through its increments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import carries_gradient
from neml2_capi.driver.asked import INITIAL
from neml2_capi.driver.control import with_named
from neml2_capi.driver.results import Results
from neml2_capi.torch._autograd import Reverse


class _Leaf(NamedTuple):
    """A tensor that requires a gradient, and the name that derivatives by it have."""

    name: str
    tensor: Any


def drive(
    driven: Callable[..., Results],
    time: str,
    times: Any,
    forces: Mapping[str, Any],
    initial: Mapping[str, Any] | None,
    *,
    control: Mapping[str, Any] | None,
    parameters: Mapping[str, Any] | None,
    derivatives: Any,
) -> Results:
    """Return what `driven` does of what is given, with gradients through all outputs.

    `time` is the name of the input that the times are.
    """
    if derivatives is not None:
        raise FatalError(
            "derivatives: expected none beside tensors that require gradients: call backward() on "
            "a number made of the results, or give tensor.detach()",
            lib.NEML2_ERROR_ARGUMENT,
            "derivatives",
        )
    control = control and {
        key: with_named(key, parts) if isinstance(parts, Mapping) else parts
        for key, parts in control.items()
    }
    # "stress:strain" of a control names its output first.
    targets = {key.partition(":")[0]: parts for key, parts in (control or {}).items()}
    leaves = [
        *_leaves(parameters or {}),
        *(_Leaf(INITIAL + leaf.name, leaf.tensor) for leaf in _leaves(initial or {})),
        *_leaves(forces),
        *_leaves(targets),
        *_leaves({time: times}),
    ]
    results = driven(
        _detached(times),
        _detached(forces),
        _detached(initial),
        control=_detached(control),
        parameters=_detached(parameters),
        derivatives=[leaf.name for leaf in leaves],
    )
    outputs = [name for name in results._gradients.outputs if name in results]  # type: ignore[union-attr]
    values = [results[name] for name in outputs]
    followed = History.apply(results, outputs, leaves, *values, *(leaf.tensor for leaf in leaves))
    arrays = {**results, **dict(zip(outputs, followed, strict=True))}
    return results._with(arrays)


class History(Reverse):
    """apply(results, outputs, leaves, *values, *tensors): the values, which depend on tensors."""

    subject = "a driven model"

    @staticmethod
    def forward(ctx: Any, results: Results, outputs: Any, leaves: Any, *tensors: Any) -> Any:
        ctx.results, ctx.outputs, ctx.leaves = results, outputs, leaves
        ctx.set_materialize_grads(False)
        return tuple(value.view_as(value) for value in tensors[: len(outputs)])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        History.require_values(gradients)
        cotangents = {
            name: gradient.numpy(force=True)
            for name, gradient in zip(ctx.outputs, gradients, strict=True)
            if gradient is not None
        }
        before = (None,) * (3 + len(ctx.outputs))
        if not cotangents:
            return before + (None,) * len(ctx.leaves)
        found = ctx.results.gradient(cotangents)
        return *before, *(
            torch.from_numpy(found[leaf.name]).to(leaf.tensor).reshape(leaf.tensor.shape)
            for leaf in ctx.leaves
        )


def _leaves(values: Mapping[str, Any]) -> Iterator[_Leaf]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            for part, tensor in value.items():
                if carries_gradient(tensor):
                    yield _Leaf(f"{name}.{part}", tensor)
        elif carries_gradient(value):
            yield _Leaf(name, value)


def _detached(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {name: _detached(value) for name, value in values.items()}
    return values.detach() if carries_gradient(values) else values
