"""Elementwise operators of torch, written by the functions that kernels have.

Each is of the class that torch has, for all numbers: zero of the same sign, infinite, NaN.
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


def remainder(a: Arrays, x: Any, y: Any) -> Nodes:
    """x less a multiple of y, with the sign of y."""
    rest = a.binary("fmod", x, y)
    return a.where(_of_other_sign(a, rest, y), a.add(rest, y), rest)


def _of_other_sign(a: Arrays, rest: Nodes, y: Any) -> Nodes:
    other = exclusive_or(a, a.gt(0.0, rest), a.gt(0.0, y))
    return a.and_(a.not_(a.eq(rest, 0.0)), other)


def floor_divided(a: Arrays, x: Any, y: Any) -> Nodes:
    """The integer below x / y, as of the exact quotient."""
    quotient, rest = a.binary("quotient", x, y), a.binary("fmod", x, y)
    whole = a.binary("quotient", a.sub(x, rest), y)
    whole = a.where(_of_other_sign(a, rest, y), a.sub(whole, 1.0), whole)
    floor = a.function("floor", whole)
    floor = a.where(a.gt(a.sub(whole, floor), 0.5), a.add(floor, 1.0), floor)
    floor = a.where(a.eq(whole, 0.0), a.binary("copysign", 0.0, quotient), floor)
    return a.where(a.eq(y, 0.0), quotient, floor)


def divided(a: Arrays, x: Any, y: Any, rounding_mode: str | None = None) -> Nodes:
    if rounding_mode == "floor":
        return floor_divided(a, x, y)
    if rounding_mode == "trunc":
        return a.function("trunc", a.binary("quotient", x, y))
    return a.div(x, y)


# Signs, choices and bounds


def sign_bit(a: Arrays, x: Nodes) -> Nodes:
    return a.gt(0.0, a.binary("copysign", 1.0, x))


def heaviside(a: Arrays, x: Nodes, at_zero: Any) -> Nodes:
    return a.where(a.eq(x, 0.0), at_zero, a.number(a.gt(x, 0.0)))


def number_for_nan(
    a: Arrays,
    x: Nodes,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Nodes:
    above = a.largest if posinf is None else posinf
    below = -a.largest if neginf is None else neginf
    found = a.where(a.eq(x, _INFINITE), above, x)
    found = a.where(a.eq(x, -_INFINITE), below, found)
    return a.where(is_nan(a, x), nan or 0.0, found)


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


def threshold(a: Arrays, x: Nodes, limit: float, value: float) -> Nodes:
    return a.where(a.ge(limit, x), value, x)


def shrunk_hard(a: Arrays, x: Nodes, limit: float = 0.5) -> Nodes:
    return a.where(a.and_(a.ge(x, -limit), a.ge(limit, x)), 0.0, x)


def shrunk_softly(a: Arrays, x: Nodes, limit: float = 0.5) -> Nodes:
    inside = a.where(is_nan(a, x), x, 0.0)
    inside = a.where(a.gt(-limit, x), a.add(x, limit), inside)
    return a.where(a.gt(x, limit), a.sub(x, limit), inside)


# Sums of products


def lerp(a: Arrays, x: Nodes, y: Nodes, weight: Any) -> Nodes:
    change = a.sub(y, x)
    near = a.add(x, a.mul(weight, change))
    far = a.sub(y, a.mul(change, a.sub(1.0, weight)))
    return a.where(a.gt(0.5, a.function("abs", weight)), near, far)


def addcmul(a: Arrays, x: Nodes, y: Nodes, z: Nodes, value: float = 1) -> Nodes:
    return a.add(x, a.mul(a.mul(y, value), z))


def addcdiv(a: Arrays, x: Nodes, y: Nodes, z: Nodes, value: float = 1) -> Nodes:
    return a.add(x, a.div(a.mul(y, value), z))


# Logarithms and exponentials


def xlogy(name: str) -> Callable[..., Nodes]:
    """x log(y), or x log(1 + y): 0 for x = 0, whatever the logarithm is, but of NaN."""

    def product(a: Arrays, x: Any, y: Any) -> Nodes:
        found = a.where(a.eq(x, 0.0), 0.0, a.mul(x, a.function(name, y)))
        return a.where(is_nan(a, y), math.nan, found)

    return product


def entropy(a: Arrays, x: Nodes) -> Nodes:
    inside = a.mul(a.neg(x), a.function("log", x))
    found = a.where(a.eq(x, 0.0), 0.0, a.where(a.gt(0.0, x), -_INFINITE, inside))
    return a.where(is_nan(a, x), x, found)


def log_add_exp(a: Arrays, x: Nodes, y: Nodes) -> Nodes:
    most, apart = a.greatest(x, y), a.neg(a.function("abs", a.sub(x, y)))
    total = a.add(most, a.function("log1p", a.function("exp", apart)))
    return a.where(a.and_(is_infinite(a, x), a.eq(x, y)), x, total)


def log_add_exp2(a: Arrays, x: Nodes, y: Nodes) -> Nodes:
    most, apart = a.greatest(x, y), a.neg(a.function("abs", a.sub(x, y)))
    more = a.mul(a.function("log1p", a.function("exp2", apart)), 1 / math.log(2))
    return a.where(a.and_(is_infinite(a, x), a.eq(x, y)), x, a.add(most, more))


def logit(a: Arrays, x: Nodes, eps: float | None = None) -> Nodes:
    if eps is not None:
        x = clamp(a, x, eps, 1 - eps)
    rest = a.sub(1.0, x)
    far = a.function("log", a.binary("quotient", x, rest))
    middle = a.sub(a.mul(x, 2.0), 1.0)
    near = a.add(a.function("log1p", a.binary("quotient", middle, rest)), 0.0)
    return a.where(a.gt(0.5, a.function("abs", middle)), near, far)


def sinc(a: Arrays, x: Nodes) -> Nodes:
    angle = a.mul(x, math.pi)
    return a.where(a.eq(x, 0.0), 1.0, a.binary("quotient", a.function("sin", angle), angle))


# Activations


def sigmoid(a: Arrays, x: Nodes) -> Nodes:
    return a.div(1.0, one_plus(a, a.function("exp", a.neg(x))))


def silu(a: Arrays, x: Nodes) -> Nodes:
    return a.binary("quotient", x, one_plus(a, a.function("exp", a.neg(x))))


def softplus(a: Arrays, x: Nodes, beta: float = 1, limit: float = 20) -> Nodes:
    scaled = a.mul(x, beta)
    curve = a.div(a.function("log1p", a.function("exp", scaled)), beta)
    return a.where(a.gt(scaled, limit), x, curve)


def log_sigmoid(a: Arrays, x: Nodes) -> Nodes:
    tail = a.function("log1p", a.function("exp", a.neg(a.function("abs", x))))
    return a.sub(a.least(x, 0.0), tail)


def elu(a: Arrays, x: Nodes, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Nodes:
    below = a.mul(a.function("expm1", a.mul(x, input_scale)), alpha * scale)
    return a.where(a.gt(0.0, x), below, a.mul(x, scale))


def selu(a: Arrays, x: Nodes) -> Nodes:
    return elu(a, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def celu(a: Arrays, x: Nodes, alpha: float = 1) -> Nodes:
    return elu(a, x, alpha, 1.0, 1 / alpha)


def gelu(a: Arrays, x: Nodes, approximate: str = "none") -> Nodes:
    if approximate == "none":
        return a.mul(x, a.function("ndtr", x))
    return a.mul(a.mul(x, 0.5), one_plus(a, a.function("tanh", gelu_argument(a, x))))


def gelu_argument(a: Arrays, x: Nodes) -> Nodes:
    cubic = a.mul(a.mul(a.mul(x, x), x), 0.044715)
    return a.mul(a.add(x, cubic), math.sqrt(2 / math.pi))


def leaky_relu(a: Arrays, x: Nodes, slope: float = 0.01) -> Nodes:
    return a.where(a.gt(x, 0.0), x, a.mul(x, slope))


def hard_sigmoid(a: Arrays, x: Nodes) -> Nodes:
    return a.div(clamp(a, a.add(x, 3.0), 0.0, 6.0), 6.0)


def hard_swish(a: Arrays, x: Nodes) -> Nodes:
    return a.div(a.mul(x, clamp(a, a.add(x, 3.0), 0.0, 6.0)), 6.0)


def mish(a: Arrays, x: Nodes) -> Nodes:
    return a.mul(x, a.function("tanh", a.function("log1p", a.function("exp", x))))


# Along axes


def log_sum_exp(a: Arrays, x: Nodes, axes: Any, keep: bool = False) -> Nodes:
    most = a.amax(x, axes, True)
    most = a.where(is_infinite(a, most), 0.0, most)
    total = a.function("log", a.sum(a.function("exp", a.sub(x, most)), axes, True))
    found = a.add(total, most)
    dropped = tuple(k % x.ndim for k in ([axes] if isinstance(axes, int) else axes))
    return found if keep else np.squeeze(found, axis=dropped)


def softmax(a: Arrays, x: Nodes, axis: int, *_: Any, **__: Any) -> Nodes:
    powers = a.function("exp", a.sub(x, a.amax(x, axis, True)))
    return a.div(powers, a.sum(powers, axis, True))


def log_softmax(a: Arrays, x: Nodes, axis: int, *_: Any, **__: Any) -> Nodes:
    below = a.sub(x, a.amax(x, axis, True))
    return a.sub(below, a.function("log", a.sum(a.function("exp", below), axis, True)))


def variance(a: Arrays, x: Nodes, axes: Any = None, *more: Any, **options: Any) -> Nodes:
    """aten.var of its signatures: with `correction`, or `unbiased`."""
    if isinstance(axes, bool):
        axes, more = None, (axes, *more)
    unbiased = options.get("unbiased", more[0] if more else True)
    correction = options.get("correction", float(unbiased))
    keep = options.get("keepdim", more[1] if len(more) > 1 else False)
    count = x.size / max(a.sum(x, axes or None).size, 1)
    mean = a.sum(a.mul(x, 1 / count), axes or None, True)  # no sum of large numbers overflows
    apart = a.sub(x, mean)
    total = a.sum(a.mul(apart, apart), axes or None, keep)
    return a.div(total, max(count - (1 if correction is None else correction), 0.0))


def standard_deviation(a: Arrays, x: Nodes, axes: Any = None, *more: Any, **options: Any) -> Nodes:
    """aten.std of its signatures, of numbers over their greatest size: no square overflows."""
    over = None if isinstance(axes, bool) else axes or None
    size = a.amax(a.function("abs", x), over, True)
    size = a.where(a.or_(a.eq(size, 0.0), is_infinite(a, size)), 1.0, size)
    found = a.function("sqrt", variance(a, a.binary("quotient", x, size), axes, *more, **options))
    return a.mul(found, np.reshape(size, found.shape))


def sum_of_numbers(a: Arrays, x: Nodes, axes: Any = None, keepdim: bool = False, **_: Any) -> Nodes:
    """nansum: NaN counts as 0."""
    return a.sum(a.where(is_nan(a, x), 0.0, x), axes, keepdim)


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


#: What torch calls a function of one number, if a kernel has it under another name.
_OF_ONE = {
    **{n: n for n in ("sqrt", "exp", "expm1", "log", "log1p", "sinh", "cosh", "tanh", "abs")},
    **{n: n for n in ("sin", "cos", "tan", "asin", "acos", "atan", "sign", "floor", "trunc")},
    **{n: n for n in ("exp2", "log2", "log10", "asinh", "acosh", "atanh", "erf", "erfc")},
    **{f"special_{n}": n for n in ("expm1", "exp2", "log1p", "erf", "erfc", "ndtr")},
    "sgn": "sign",
    "fix": "trunc",
}

_BY_NAME: dict[str, Callable[..., Any]] = {
    # With one variant, "default"
    **{theirs: _function(ours) for theirs, ours in _OF_ONE.items()},
    **{name: _binary(name) for name in ("atan2", "hypot")},
    "isnan": is_nan,
    "isinf": is_infinite,
    "isfinite": lambda a, x: a.gt(_INFINITE, a.function("abs", x)),
    "isposinf": lambda a, x: a.eq(x, _INFINITE),
    "isneginf": lambda a, x: a.eq(x, -_INFINITE),
    "isclose": is_close,
    "logical_xor": exclusive_or,
    "ceil": ceil,
    "frac": lambda a, x: a.sub(x, a.function("trunc", x)),
    "round": rounded,
    "special_round": lambda a, x, decimals=0: rounded(a, x, decimals),
    "floor_divide": floor_divided,
    "signbit": sign_bit,
    "heaviside": heaviside,
    "nan_to_num": number_for_nan,
    "clamp": clamp,
    "clamp_min": clamp,
    "clamp_max": lambda a, x, high: a.least(high, x),
    "maximum": lambda a, x, y: a.greatest(x, y),
    "minimum": lambda a, x, y: a.least(x, y),
    "fmax": of_numbers("greatest"),
    "fmin": of_numbers("least"),
    "threshold": threshold,
    "hardshrink": shrunk_hard,
    "softshrink": shrunk_softly,
    "addcmul": addcmul,
    "addcdiv": addcdiv,
    "special_entr": entropy,
    "logaddexp": log_add_exp,
    "logaddexp2": log_add_exp2,
    "logit": logit,
    "special_logit": logit,
    "sinc": sinc,
    "special_sinc": sinc,
    "deg2rad": lambda a, x: a.mul(x, math.pi / 180),
    "rad2deg": lambda a, x: a.mul(x, 180 / math.pi),
    "positive": lambda a, x: x,
    "sigmoid": sigmoid,
    "special_expit": sigmoid,
    "silu": silu,
    "relu": lambda a, x: a.greatest(0.0, x),
    "relu6": lambda a, x: clamp(a, x, 0.0, 6.0),
    "hardtanh": lambda a, x, low=-1.0, high=1.0: clamp(a, x, low, high),
    "hardsigmoid": hard_sigmoid,
    "hardswish": hard_swish,
    "leaky_relu": leaky_relu,
    "softplus": softplus,
    "log_sigmoid": log_sigmoid,
    "log_sigmoid_forward": lambda a, x: [log_sigmoid(a, x), a.full((0,), 0.0)],
    "elu": elu,
    "selu": selu,
    "celu": celu,
    "gelu": gelu,
    "mish": mish,
    "ldexp": lambda a, x, y: a.mul(x, a.function("exp2", y)),
    "_softmax": softmax,
    "_log_softmax": log_softmax,
    "logsumexp": log_sum_exp,
    "special_logsumexp": log_sum_exp,
    "aminmax": lambda a, x, dim=None, keepdim=False: [
        a.amin(x, dim, keepdim),
        a.amax(x, dim, keepdim),
    ],
    "cumsum": lambda a, x, axis, **_: a.cumulated(a.add, x, axis),
    "cumprod": lambda a, x, axis, **_: a.cumulated(a.mul, x, axis),
    "var": variance,
    "std": standard_deviation,
    "nansum": sum_of_numbers,
}

_TWO_NUMBERS = ("Tensor", "Scalar_Self", "Scalar_Other")
_TWO_NUMBERS_OF_SPECIAL = ("default", "self_scalar", "other_scalar")

#: By their whole names.
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{f"aten.{name}.default": does for name, does in _BY_NAME.items()},
    **{f"aten.{n}.Tensor": clamp for n in ("clamp", "clamp_min")},
    **{f"aten.var.{variant}": variance for variant in ("dim", "correction")},
    **{f"aten.std.{variant}": standard_deviation for variant in ("dim", "correction")},
    **{f"aten.remainder.{v}": remainder for v in ("Scalar", "Tensor", "Scalar_Tensor")},
    **{f"aten.fmod.{v}": _binary("fmod") for v in ("Scalar", "Tensor")},
    **{f"aten.copysign.{v}": _binary("copysign") for v in ("Scalar", "Tensor")},
    **{f"aten.div.{v}": divided for v in ("Tensor_mode", "Scalar_mode")},
    **{f"aten.lerp.{v}": lerp for v in ("Scalar", "Tensor")},
    **{f"aten.xlogy.{v}": xlogy("log") for v in _TWO_NUMBERS},
    **{f"aten.special_xlogy.{v}": xlogy("log") for v in _TWO_NUMBERS_OF_SPECIAL},
    **{f"aten.special_xlog1py.{v}": xlogy("log1p") for v in _TWO_NUMBERS_OF_SPECIAL},
    "aten.floor_divide.Scalar": floor_divided,
    "aten.clamp_max.Tensor": _BY_NAME["clamp_max"],
    "aten.round.decimals": rounded,
    "aten.ldexp.Tensor": _BY_NAME["ldexp"],
    "aten.bitwise_xor.Tensor": exclusive_or,
    "aten.__xor__.Tensor": exclusive_or,
    "aten.max.dim": extreme_and_place("greatest"),
    "aten.min.dim": extreme_and_place("least"),
    "aten.max.default": lambda a, x: a.amax(x),
    "aten.min.default": lambda a, x: a.amin(x),
    "aten.max.other": _BY_NAME["maximum"],
    "aten.min.other": _BY_NAME["minimum"],
    "aten.softmax.int": softmax,
    "aten.log_softmax.int": log_softmax,
    "aten.special_softmax.default": softmax,
    "aten.special_log_softmax.default": log_softmax,
}
