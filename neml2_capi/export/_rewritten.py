"""Functions of torch that it cannot differentiate for many points, or export: written by others.

While a law is traced, its calls are replaced by these functions, whose values are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_F = torch.nn.functional


class Rewritten(TorchFunctionMode):  # type: ignore[misc]
    """Replaces calls of such functions with tensors of reals."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        options = options or {}
        ours = _OURS.get(function)
        if ours is None or not _of_reals((*arguments, *options.values())):
            return function(*arguments, **options)
        return ours(*arguments, **options)


def _of_reals(values: Any) -> bool:
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    return all(v.is_floating_point() for v in tensors)


def _hardshrink(input: Any, lambd: float = 0.5) -> Any:
    inside = (input >= -lambd) & (input <= lambd)
    return torch.where(inside, 0.0, input)


def _softshrink(input: Any, lambd: float = 0.5) -> Any:
    below = torch.where(input < -lambd, input + lambd, torch.where(input.isnan(), input, 0.0))
    return torch.where(input > lambd, input - lambd, below)


def _mish(input: Any, inplace: bool = False) -> Any:
    return input * torch.tanh(_F.softplus(input))


def _prelu(input: Any, weight: Any) -> Any:
    axes = max(input.ndim - 2, 0)  # behind the axis of the weights
    weight = weight.reshape(-1, *[1] * axes) if weight.numel() > 1 else weight.reshape(())
    return torch.where(input > 0, input, weight * input)


def _layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    axes = tuple(range(-len(normalized_shape), 0))
    apart = input - input.mean(axes, keepdim=True)
    made = apart / torch.sqrt((apart * apart).mean(axes, keepdim=True) + eps)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def _floor_divide(input: Any, other: Any) -> Any:
    return torch.div(input, other, rounding_mode="floor")


def _divided_into(other: Any, input: Any) -> Any:
    """other // input, as Tensor.__rfloordiv__ has them the other way round."""
    return _floor_divide(input, other)


def _heaviside(input: Any, values: Any) -> Any:
    return torch.where(input == 0, values.detach(), (input > 0).to(input.dtype))


def _block_diag(*tensors: Any) -> Any:
    blocks = [torch.atleast_2d(tensor) for tensor in tensors]
    width, behind, rows = sum(block.shape[-1] for block in blocks), 0, []
    for block in blocks:
        before, behind = behind, behind + block.shape[-1]
        rows.append(_F.pad(block, (before, width - behind)))
    return torch.cat(rows)


_OURS: dict[Any, Callable[..., Any]] = {
    torch.hardshrink: _hardshrink,
    torch.Tensor.hardshrink: _hardshrink,
    _F.softshrink: _softshrink,
    _F.mish: _mish,
    torch.prelu: _prelu,
    torch.Tensor.prelu: _prelu,
    _F.layer_norm: _layer_norm,
    torch.floor_divide: _floor_divide,
    torch.Tensor.floor_divide: _floor_divide,
    torch.Tensor.__floordiv__: _floor_divide,
    torch.Tensor.__rfloordiv__: _divided_into,
    torch.sgn: torch.sign,
    torch.Tensor.sgn: torch.sign,
    torch.block_diag: _block_diag,
    torch.heaviside: _heaviside,
    torch.Tensor.heaviside: _heaviside,
}
