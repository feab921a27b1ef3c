"""Operators that Inductor compiles wrongly: written by others that it compiles well.

Kernels read those that they do not know by themselves as they are written here, too.

Inductor's vector code takes exp(x) - 1 for expm1, which is 0 or twice the result near 0, the
quotient rounded down for remainders, and in float32 a polynomial for erf, which is 0 near 0.
`docs/conformance.md` tells of each. This module needs torch.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import torch

#: Below it x is the result of functions like expm1, to the last digit.
_TINY = 2.0**-54
#: The longest axis whose sums or products are written one by one.
_MOST = 64


def _expm1(x: Any) -> Any:
    half = 0.5 * x
    near = 2.0 * torch.sinh(half) * torch.exp(half)
    size = x.abs()
    return torch.where(size < _TINY, x, torch.where(size < 1.0, near, torch.exp(x) - 1.0))


def _elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    return torch.where(x < 0, torch.expm1(x * input_scale) * (alpha * scale), x * scale)


def _selu(x: Any) -> Any:
    return _elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def _celu(x: Any, alpha: float = 1) -> Any:
    return _elu(x, alpha, 1.0, 1 / alpha)


def _atanh(x: Any) -> Any:
    size = x.abs()
    return torch.copysign(0.5 * torch.log1p(2.0 * size / (1.0 - size)), x)


def _acosh(x: Any) -> Any:
    over = torch.where(x > 2.0**28, 0.0, x - 1.0)
    near = torch.log1p(over + torch.sqrt(2.0 * over + over * over))
    found = torch.where(x > 2.0**28, torch.log(x) + math.log(2), near)
    return torch.where(x < 1.0, math.nan, found)


def _other_sign(rest: Any, y: Any) -> Any:
    return (rest != 0) & ((rest < 0) != (y < 0))


def _reals(*values: Any) -> list[Any]:
    types = [v.dtype for v in values if isinstance(v, torch.Tensor) and v.is_floating_point()]
    dtype = functools.reduce(torch.promote_types, types) if types else torch.float64
    return [v.to(dtype) if hasattr(v, "to") else torch.full((), v, dtype=dtype) for v in values]


def _remainder(x: Any, y: Any) -> Any:
    x, y = _reals(x, y)
    rest = torch.fmod(x, y)
    return torch.where(_other_sign(rest, y), rest + y, rest)


def _floor_divide(x: Any, y: Any) -> Any:
    x, y = _reals(x, y)
    rest = torch.fmod(x, y)
    whole = (x - rest) / y
    whole = torch.where(_other_sign(rest, y), whole - 1.0, whole)
    floor = torch.floor(whole)
    floor = torch.where(whole - floor > 0.5, floor + 1.0, floor)
    floor = torch.where(whole == 0, torch.copysign(torch.zeros_like(whole), x / y), floor)
    quotient = x / y
    is_integer = (quotient.abs() >= 2.0**53) & x.isfinite()  # and no remainder is left of it
    return torch.where((y == 0) | is_integer, quotient, floor)


def _divide(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return _floor_divide(x, y)
    x, y = _reals(x, y)
    return torch.trunc(x / y) if rounding_mode else x / y


def _ndtr(x: Any) -> Any:
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))


def _gelu(x: Any, *, approximate: str = "none") -> Any:
    return x * _ndtr(x) if approximate == "none" else NotImplemented


def _logit(x: Any, eps: float | None = None) -> Any:
    if eps is not None:
        x = torch.clamp(x, eps, 1 - eps)
    middle, rest = 2.0 * x - 1.0, 1.0 - x
    return torch.where(middle.abs() < 0.5, torch.log1p(middle / rest), torch.log(x / rest))


def _in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    def computed(x: Any) -> Any:
        return NotImplemented if x.dtype == torch.float64 else function(x.double()).to(x.dtype)

    return computed


def _xlog1py(x: Any, y: Any) -> Any:
    product = torch.where(y.abs() < _TINY, x * y, x * torch.log1p(y))
    return torch.where(y.isnan(), y, torch.where(x == 0, 0.0, product))


def _pow(x: Any, exponent: float) -> Any:
    return torch.rsqrt(x) if exponent == -0.5 else NotImplemented


def _variance(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    axes = dim or list(range(x.ndim))
    count = math.prod(x.shape[axis] for axis in axes)
    apart = x - torch.sum(x * (1.0 / count), axes, keepdim=True)
    return torch.sum(apart * apart, axes, keepdim=keepdim) / max(
        count - (1 if correction is None else correction), 0
    )


def _deviation(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    axes = dim or list(range(x.ndim))
    size = torch.amax(x.abs(), axes, keepdim=True)
    info = torch.finfo(x.dtype)
    extreme = (size > info.max**0.4) | ((size > 0) & (size < info.tiny**0.4))
    size = torch.where(extreme & ~size.isinf(), size, 1.0)  # no square overflows
    spread = _variance(x / size, axes, correction=correction, keepdim=True).sqrt() * size
    return spread if keepdim else torch.squeeze(spread, axes)


def _cumulated(function: Callable[..., Any]) -> Callable[..., Any]:
    def cumulated(x: Any, dim: int, *, dtype: Any = None) -> Any:
        count = x.shape[dim]
        if dtype not in (None, x.dtype) or not isinstance(count, int) or not 0 < count <= _MOST:
            return NotImplemented
        parts = list(x.unbind(dim))
        for k in range(1, len(parts)):
            parts[k] = function(parts[k - 1], parts[k])
        return torch.stack(parts, dim)

    return cumulated


def _reals_only(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_reals(x: Any, *rest: Any, **options: Any) -> Any:
        tensors = [v for v in (x, *rest) if isinstance(v, torch.Tensor)]
        if not tensors or not all(v.is_floating_point() for v in tensors):
            return NotImplemented
        return function(x, *rest, **options)

    return of_reals


_aten = torch.ops.aten
#: By torch's operators.
WRITTEN: dict[Any, Callable[..., Any]] = {
    _aten.expm1.default: _expm1,
    _aten.special_expm1.default: _expm1,
    _aten.elu.default: _elu,
    _aten.selu.default: _selu,
    _aten.celu.default: _celu,
    _aten.atanh.default: _atanh,
    _aten.acosh.default: _acosh,
    _aten.remainder.Tensor: _remainder,
    _aten.remainder.Scalar: _remainder,
    _aten.remainder.Scalar_Tensor: _remainder,
    _aten.floor_divide.default: _floor_divide,
    _aten.div.Tensor_mode: _divide,
    _aten.div.Scalar_mode: _divide,
    _aten.special_ndtr.default: _ndtr,
    _aten.gelu.default: _gelu,
    _aten.erf.default: _in_double(torch.erf),
    _aten.special_erf.default: _in_double(torch.erf),
    _aten.tanh.default: _in_double(torch.tanh),
    _aten.logit.default: _logit,
    _aten.special_logit.default: _logit,
    _aten.special_xlog1py.default: _xlog1py,
    _aten.pow.Tensor_Scalar: _pow,
    _aten.var.correction: _variance,
    _aten.std.correction: _deviation,
    _aten.cumsum.default: _cumulated(operator.add),
    _aten.cumprod.default: _cumulated(operator.mul),
}
#: The same for Inductor, which needs none for integers.
DECOMPOSITIONS = {target: _reals_only(function) for target, function in WRITTEN.items()}


def needs_lowering(program: Any) -> bool:
    """Whether an ExportedProgram, or a graph that it calls, holds one of these operators."""
    modules = (m for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule))
    return any(node.target in DECOMPOSITIONS for module in modules for node in module.graph.nodes)


def lowered(program: Any) -> Any:
    """The same ExportedProgram without these operators; all others stay as they are."""
    return program.run_decompositions(DECOMPOSITIONS) if needs_lowering(program) else program
