"""Elementwise operators of torch, written by the functions that kernels have.

Each is of the class that torch has, for all numbers: zero of the same sign, infinite, NaN. What
torch itself defines by these, `trace` takes from torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from neml2_capi.kernels.arrays import Arrays, Nodes

_INFINITE = math.inf


def one_plus(a: Arrays, x: Any) -> Nodes:
    return a.add(x, 1.0)


def is_nan(a: Arrays, x: Any) -> Nodes:
    return a.not_(a.eq(x, x))


def is_infinite(a: Arrays, x: Nodes) -> Nodes:
    return a.eq(a.function("abs", x), _INFINITE)


def is_close(
    a: Arrays, x: Nodes, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Nodes:
    allowed = a.add(a.mul(a.function("abs", y), rtol), atol)
    size = a.function("abs", a.sub(x, y))
    near = a.and_(a.ge(allowed, size), a.gt(_INFINITE, size))
    near = a.or_(a.eq(x, y), near)
    return a.or_(near, a.and_(is_nan(a, x), is_nan(a, y))) if equal_nan else near


def exclusive_or(a: Arrays, x: Nodes, y: Nodes) -> Nodes:
    return a.or_(a.and_(x, a.not_(y)), a.and_(a.not_(x), y))


# Rounding and remainders


def ceil(a: Arrays, x: Any) -> Nodes:
    return a.neg(a.function("floor", a.neg(x)))


def rounded(a: Arrays, x: Nodes, decimals: int = 0) -> Nodes:
    if not decimals:
        return a.function("round", x)
    power = 10.0 ** abs(decimals)
    if decimals > 0:
        return a.binary("quotient", a.function("round", a.mul(x, power)), power)
    return a.mul(a.function("round", a.binary("quotient", x, power)), power)


# Signs, choices and bounds


def sign_bit(a: Arrays, x: Nodes) -> Nodes:
    return a.gt(0.0, a.binary("copysign", 1.0, x))


def heaviside(a: Arrays, x: Nodes, at_zero: Any) -> Nodes:
    return a.where(a.eq(x, 0.0), at_zero, a.number(a.gt(x, 0.0)))


def clamp(a: Arrays, x: Nodes, low: Any = None, high: Any = None, **more: Any) -> Nodes:
    low, high = more.get("min", low), more.get("max", high)
    if low is not None:
        x = a.greatest(low, x)  # of two zeros it is x
    return x if high is None else a.least(high, x)


def of_numbers(name: str) -> Callable[..., Nodes]:
    """fmax and fmin: the other one if one is NaN."""

    def chosen(a: Arrays, x: Nodes, y: Nodes) -> Nodes:
        extreme = getattr(a, name)(x, y)
        return a.where(is_nan(a, x), y, a.where(is_nan(a, y), x, extreme))

    return chosen


# Logarithms and exponentials


def log_add_exp(a: Arrays, x: Nodes, y: Nodes) -> Nodes:
    most, apart = a.greatest(x, y), a.neg(a.function("abs", a.sub(x, y)))
    total = a.add(most, a.function("log1p", a.function("exp", apart)))
    return a.where(a.and_(is_infinite(a, x), a.eq(x, y)), x, total)


# Activations


def sigmoid(a: Arrays, x: Nodes) -> Nodes:
    return a.div(1.0, one_plus(a, a.function("exp", a.neg(x))))


def silu(a: Arrays, x: Nodes) -> Nodes:
    return a.binary("quotient", x, one_plus(a, a.function("exp", a.neg(x))))


def gelu(a: Arrays, x: Nodes, approximate: str = "none") -> Nodes:
    if approximate == "none":
        return a.mul(x, a.function("ndtr", x))
    return a.mul(a.mul(x, 0.5), one_plus(a, a.function("tanh", gelu_argument(a, x))))


def gelu_argument(a: Arrays, x: Nodes) -> Nodes:
    cubic = a.mul(a.mul(a.mul(x, x), x), 0.044715)
    return a.mul(a.add(x, cubic), math.sqrt(2 / math.pi))


def extreme_and_place(name: str) -> Callable[..., list[Nodes]]:
    """max.dim and min.dim: the first of the extreme values, and where it is."""

    def found(a: Arrays, x: Nodes, axis: int, keep: bool = False) -> list[Nodes]:
        value = getattr(a, "amax" if name == "greatest" else "amin")(x, axis, True)
        place = a.full(value.shape, 0.0)
        for k in range(x.shape[axis] - 1, -1, -1):
            here = np.take(x, [k], axis)
            place = a.where(a.or_(a.eq(here, value), is_nan(a, here)), float(k), place)
        if keep:
            return [value, place]
        return [np.squeeze(value, axis), np.squeeze(place, axis)]

    return found


def _function(name: str) -> Callable[..., Nodes]:
    return lambda a, x: a.function(name, x)


def _binary(name: str) -> Callable[..., Nodes]:
    return lambda a, x, y: a.binary(name, x, y)


#: Functions that torch calls as kernels do.
_OF_ONE = "sqrt exp expm1 log log1p sinh cosh tanh abs sin cos tan asin acos atan sign floor trunc"
_OF_ONE += " exp2 log2 log10 asinh acosh atanh erf erfc"

ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{f"aten.{name}": _function(name) for name in _OF_ONE.split()},
    **{f"aten.{name}": _binary(name) for name in ("atan2", "hypot", "fmod", "copysign")},
    "aten.special_ndtr": _function("ndtr"),
    "aten.isnan": is_nan,
    "aten.isinf": is_infinite,
    "aten.isfinite": lambda a, x: a.gt(_INFINITE, a.function("abs", x)),
    "aten.isclose": is_close,
    "aten.logical_xor": exclusive_or,
    "aten.bitwise_xor": exclusive_or,
    "aten.ceil": ceil,
    "aten.round": rounded,
    "aten.signbit": sign_bit,
    "aten.heaviside": heaviside,
    "aten.clamp": clamp,
    "aten.clamp_min": clamp,
    "aten.clamp_max": lambda a, x, high: a.least(high, x),
    "aten.maximum": lambda a, x, y: a.greatest(x, y),
    "aten.minimum": lambda a, x, y: a.least(x, y),
    "aten.fmax": of_numbers("greatest"),
    "aten.fmin": of_numbers("least"),
    "aten.logaddexp": log_add_exp,
    "aten.sigmoid": sigmoid,
    "aten.silu": silu,
    "aten.relu": lambda a, x: a.greatest(0.0, x),
    "aten.gelu": gelu,
    "aten.ldexp": lambda a, x, y: a.mul(x, a.function("exp2", y)),
    "aten.cumsum": lambda a, x, axis, **_: a.cumulated(a.add, x, axis),
    "aten.cumprod": lambda a, x, axis, **_: a.cumulated(a.mul, x, axis),
    "aten.max.dim": extreme_and_place("greatest"),
    "aten.min.dim": extreme_and_place("least"),
    "aten.max.default": lambda a, x: a.amax(x),
    "aten.min.default": lambda a, x: a.amin(x),
}
