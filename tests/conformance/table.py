"""The operators of the conformance table: how a law writes them, and their exact values.

`torch` stands for the module in `law`, and `m` for mpmath in `exact`, so that this file needs
neither. A law takes two numbers, and may use the first alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Operator:
    """One row of the table."""

    #: law(torch, x, y)
    law: Callable[..., Any]
    #: exact(m, x, y) of finite numbers; None if the result of torch is exact, or is told apart.
    exact: Callable[..., Any] | None = None
    #: Why more than 4 ulp are allowed.
    reason: str = ""
    two: bool = False
    #: Whether the sign of a zero is left open, as torch leaves it.
    either_zero: bool = False


def _unary(name: str, exact: str = "", module: str = "") -> Operator:
    def law(torch: Any, x: Any, y: Any) -> Any:
        return getattr(getattr(torch, module) if module else torch, name)(x)

    return Operator(law, (lambda m, x, y: getattr(m, exact)(x)) if exact else None)


def _activation(
    name: str, exact: Callable[..., Any] | None, reason: str = "", **more: Any
) -> Operator:
    return Operator(lambda t, x, y: getattr(t.nn.functional, name)(x, **more), exact, reason)


def _binary(name: str, exact: Callable[..., Any] | None = None, reason: str = "") -> Operator:
    return Operator(lambda t, x, y: getattr(t, name)(x, y), exact, reason, two=True)


def _truth(law: Callable[..., Any], two: bool = False) -> Operator:
    """A truth value, as a number."""
    return Operator(lambda t, x, y: law(t, x, y).to(x.dtype), None, two=two)


_CANCELS = "the difference of two rounded numbers, as in torch"
_OF_ROOT = "x / sqrt(2), which packages round first, as torch does; a subnormal factor of gelu"
_CARRIED = "an argument that is rounded first, as in torch"
_SQUARED = "a product of rounded factors, each with the error of all before"


def _sigmoid(m: Any, x: Any) -> Any:
    return 1 / (1 + m.exp(-x))


def _entropy(m: Any, x: Any, y: Any) -> Any:
    return None if x < 0 else (-x * m.log(x) if x else m.mpf(0))


def _fmod(m: Any, x: Any, y: Any) -> Any:
    return m.mpf(math.fmod(float(x), float(y))) if y else None


def _remainder(m: Any, x: Any, y: Any) -> Any:
    rest = _fmod(m, x, y)
    return rest if rest is None or rest == 0 or (rest < 0) == (y < 0) else rest + y


def _floor(m: Any, x: Any, y: Any) -> Any:
    if not y:
        return None
    return m.mpf(math.floor(Fraction(float(x)) / Fraction(float(y))))


def _hard_swish(m: Any, x: Any, y: Any) -> Any:
    return m.mpf(0) if x <= -3 else (x if x >= 3 else x * (x + 3) / 6)


OPERATORS: dict[str, Operator] = {
    # Arithmetic
    "x + y": Operator(lambda t, x, y: x + y, lambda m, x, y: x + y, two=True),
    "x - y": Operator(lambda t, x, y: x - y, lambda m, x, y: x - y, two=True),
    "x * y": Operator(lambda t, x, y: x * y, lambda m, x, y: x * y, two=True),
    "x / y": Operator(lambda t, x, y: x / y, lambda m, x, y: x / y if y else None, two=True),
    "x * 0": Operator(lambda t, x, y: x * 0.0),
    "x + 0": Operator(lambda t, x, y: x + 0.0),
    "0 - x": Operator(lambda t, x, y: 0.0 - x),
    "x - x": Operator(lambda t, x, y: x - x),
    "0 / x": Operator(lambda t, x, y: 0.0 / x),
    "x / x": Operator(lambda t, x, y: x / x),
    "x / 3": Operator(lambda t, x, y: x / 3.0, lambda m, x, y: x / 3),
    "x ** 0": Operator(lambda t, x, y: x**0.0),
    "x * 0.1 * 3": Operator(lambda t, x, y: x * 0.1 * 3.0, lambda m, x, y: x * m.mpf(0.1) * 3),
    "expm1(x) / x": Operator(
        lambda t, x, y: t.expm1(x) / x, lambda m, x, y: m.expm1(x) / x if x else None
    ),
    "neg": _unary("neg"),
    "positive": _unary("positive"),
    "reciprocal": Operator(lambda t, x, y: t.reciprocal(x), lambda m, x, y: 1 / x if x else None),
    "square": Operator(lambda t, x, y: t.square(x), lambda m, x, y: x * x),
    "addcmul": Operator(
        lambda t, x, y: t.addcmul(x, x, t.clamp(y, 0.0, 2.0), value=0.25),
        lambda m, x, y: x + x * min(max(y, 0), 2) / 4,
        two=True,
    ),
    "addcdiv": Operator(
        lambda t, x, y: t.addcdiv(x, x, t.clamp(y, 1.0, 2.0), value=0.5),
        lambda m, x, y: x + x / min(max(y, 1), 2) / 2,
        two=True,
    ),
    "lerp, 0.25": Operator(
        lambda t, x, y: t.lerp(x, y, 0.25), lambda m, x, y: x + (y - x) / 4, _CANCELS, two=True
    ),
    "lerp, tensor": Operator(
        lambda t, x, y: t.lerp(x, y, t.full_like(x, 0.75)),
        lambda m, x, y: y - (y - x) / 4,
        _CANCELS,
        two=True,
    ),
    "deg2rad": Operator(lambda t, x, y: t.deg2rad(x), lambda m, x, y: x * m.pi / 180),
    "rad2deg": Operator(lambda t, x, y: t.rad2deg(x), lambda m, x, y: x * 180 / m.pi),
    # Powers and roots
    "sqrt": Operator(lambda t, x, y: t.sqrt(x), lambda m, x, y: m.sqrt(x) if x >= 0 else None),
    "rsqrt": Operator(lambda t, x, y: t.rsqrt(x), lambda m, x, y: 1 / m.sqrt(x) if x > 0 else None),
    "pow": _binary("pow", lambda m, x, y: x**y if x > 0 else None),
    "x ** 2": Operator(lambda t, x, y: x**2, lambda m, x, y: x**2),
    "x ** 3": Operator(lambda t, x, y: x**3, lambda m, x, y: x**3),
    "x ** 7": Operator(lambda t, x, y: x**7, lambda m, x, y: x**7, _SQUARED),
    "x ** 16": Operator(lambda t, x, y: x**16, lambda m, x, y: x**16, _SQUARED),
    "x ** 0.5": Operator(lambda t, x, y: x**0.5, lambda m, x, y: m.sqrt(x) if x >= 0 else None),
    "x ** 1.5": Operator(lambda t, x, y: x**1.5, lambda m, x, y: x * m.sqrt(x) if x >= 0 else None),
    "x ** -1": Operator(lambda t, x, y: x**-1, lambda m, x, y: 1 / x if x else None),
    "x ** -0.5": Operator(
        lambda t, x, y: x**-0.5, lambda m, x, y: 1 / m.sqrt(x) if x > 0 else None
    ),
    "x ** 0.3125": Operator(
        lambda t, x, y: x**0.3125, lambda m, x, y: x ** m.mpf(0.3125) if x > 0 else None
    ),
    "2 ** x": Operator(lambda t, x, y: 2.0**x, lambda m, x, y: m.mpf(2) ** x),
    "float_power": Operator(
        lambda t, x, y: t.float_power(x, 2.5).to(x.dtype),
        lambda m, x, y: x * x * m.sqrt(x) if x >= 0 else None,
    ),
    "hypot": _binary("hypot", lambda m, x, y: m.hypot(x, y)),
    # Exponentials and logarithms
    "exp": _unary("exp", "exp"),
    "exp2": Operator(lambda t, x, y: t.exp2(x), lambda m, x, y: m.mpf(2) ** x),
    "expm1": _unary("expm1", "expm1"),
    "log": Operator(lambda t, x, y: t.log(x), lambda m, x, y: m.log(x) if x > 0 else None),
    "log2": Operator(lambda t, x, y: t.log2(x), lambda m, x, y: m.log(x, 2) if x > 0 else None),
    "log10": Operator(lambda t, x, y: t.log10(x), lambda m, x, y: m.log10(x) if x > 0 else None),
    "log1p": Operator(lambda t, x, y: t.log1p(x), lambda m, x, y: m.log1p(x) if x > -1 else None),
    "logaddexp": _binary(
        "logaddexp", lambda m, x, y: max(x, y) + m.log1p(m.exp(-abs(x - y))), _CANCELS
    ),
    "logaddexp2": _binary(
        "logaddexp2",
        lambda m, x, y: max(x, y) + m.log1p(m.mpf(2) ** -abs(x - y)) / m.log(2),
        _CANCELS,
    ),
    "xlogy": _binary("xlogy", lambda m, x, y: x * m.log(y) if x and y > 0 else None),
    "special.xlog1py": Operator(
        lambda t, x, y: t.special.xlog1py(x, y),
        lambda m, x, y: x * m.log1p(y) if x and y > -1 else None,
        two=True,
    ),
    "special.entr": Operator(lambda t, x, y: t.special.entr(x), _entropy),
    "logit": Operator(
        lambda t, x, y: t.logit(x), lambda m, x, y: m.log(x / (1 - x)) if 0 < x < 1 else None
    ),
    "ldexp": Operator(
        lambda t, x, y: t.ldexp(x, t.round(t.clamp(y, -60, 60))),
        lambda m, x, y: x * m.mpf(2) ** m.nint(min(max(y, -60), 60)),
        two=True,
    ),
    # Trigonometry
    "sin": _unary("sin", "sin"),
    "cos": _unary("cos", "cos"),
    "tan": _unary("tan", "tan"),
    "asin": Operator(lambda t, x, y: t.asin(x), lambda m, x, y: m.asin(x) if abs(x) <= 1 else None),
    "acos": Operator(lambda t, x, y: t.acos(x), lambda m, x, y: m.acos(x) if abs(x) <= 1 else None),
    "atan": _unary("atan", "atan"),
    "atan2": _binary("atan2", lambda m, x, y: m.atan2(x, y) if x and y else None),
    "sinc": Operator(lambda t, x, y: t.sinc(x), lambda m, x, y: m.sincpi(x), _CARRIED),
    "sinh": _unary("sinh", "sinh"),
    "cosh": _unary("cosh", "cosh"),
    "tanh": _unary("tanh", "tanh"),
    "asinh": _unary("asinh", "asinh"),
    "acosh": Operator(lambda t, x, y: t.acosh(x), lambda m, x, y: m.acosh(x) if x >= 1 else None),
    "atanh": Operator(
        lambda t, x, y: t.atanh(x), lambda m, x, y: m.atanh(x) if abs(x) < 1 else None
    ),
    # Error functions
    "erf": _unary("erf", "erf"),
    "erfc": _unary("erfc", "erfc"),
    "special.ndtr": Operator(
        lambda t, x, y: t.special.ndtr(x), lambda m, x, y: m.erfc(-x / m.sqrt(2)) / 2, _OF_ROOT
    ),
    # Rounding and remainders
    "abs": _unary("abs"),
    "floor": _unary("floor"),
    "ceil": _unary("ceil"),
    "round": _unary("round"),
    "round, 2 decimals": Operator(lambda t, x, y: t.round(x, decimals=2)),
    "trunc": _unary("trunc"),
    "frac": _unary("frac"),
    "fmod": _binary("fmod", _fmod),
    "remainder": _binary("remainder", _remainder, _CANCELS),
    "fmod, 0.75": Operator(
        lambda t, x, y: t.fmod(x, 0.75), lambda m, x, y: _fmod(m, x, m.mpf(0.75))
    ),
    "remainder, -0.75": Operator(
        lambda t, x, y: t.remainder(x, -0.75),
        lambda m, x, y: _remainder(m, x, m.mpf(-0.75)),
        _CANCELS,
    ),
    "floor_divide": _binary("floor_divide", _floor),
    "div, floor": Operator(lambda t, x, y: t.div(x, y, rounding_mode="floor"), _floor, two=True),
    "div, trunc": Operator(lambda t, x, y: t.div(x, y, rounding_mode="trunc"), two=True),
    # Signs, comparisons, choices
    "sign": _unary("sign"),
    "sgn": _unary("sgn"),
    "signbit": _truth(lambda t, x, y: t.signbit(x)),
    "copysign": _binary("copysign"),
    "heaviside": _binary("heaviside"),
    "nan_to_num": _unary("nan_to_num"),
    "isnan": _truth(lambda t, x, y: t.isnan(x)),
    "isinf": _truth(lambda t, x, y: t.isinf(x)),
    "isfinite": _truth(lambda t, x, y: t.isfinite(x)),
    "isposinf": _truth(lambda t, x, y: t.isposinf(x)),
    "isneginf": _truth(lambda t, x, y: t.isneginf(x)),
    "isclose": _truth(lambda t, x, y: t.isclose(x, y), two=True),
    "gt": _truth(lambda t, x, y: x > y, two=True),
    "ge": _truth(lambda t, x, y: x >= y, two=True),
    "lt": _truth(lambda t, x, y: x < y, two=True),
    "le": _truth(lambda t, x, y: x <= y, two=True),
    "eq": _truth(lambda t, x, y: x == y, two=True),
    "ne": _truth(lambda t, x, y: x != y, two=True),
    "logical_and": _truth(lambda t, x, y: t.logical_and(x, y), two=True),
    "logical_or": _truth(lambda t, x, y: t.logical_or(x, y), two=True),
    "logical_xor": _truth(lambda t, x, y: t.logical_xor(x, y), two=True),
    "logical_not": _truth(lambda t, x, y: t.logical_not(x)),
    "bitwise_xor": _truth(lambda t, x, y: (x > 0) ^ (y > 0), two=True),
    "where": Operator(lambda t, x, y: t.where(x > 0, x, y), two=True),
    "masked_fill": Operator(lambda t, x, y: x.masked_fill(y > 0, 2.0), two=True),
    "maximum": _binary("maximum"),
    "minimum": _binary("minimum"),
    "fmax": _binary("fmax"),
    "fmin": _binary("fmin"),
    "clamp": Operator(lambda t, x, y: t.clamp(x, -1.5, 2.0)),
    "clamp, min": Operator(lambda t, x, y: t.clamp(x, min=0.25)),
    "clamp, tensor": Operator(lambda t, x, y: t.clamp(x, min=y), two=True),
    # Activations
    "relu": _activation("relu", None),
    "relu6": _activation("relu6", None),
    "leaky_relu": _activation("leaky_relu", lambda m, x, y: x if x > 0 else x * m.mpf(0.01)),
    "hardtanh": _activation("hardtanh", None),
    "hardsigmoid": _activation("hardsigmoid", None),
    "hardswish": _activation("hardswish", _hard_swish),
    "hardshrink": _activation("hardshrink", None),
    "softshrink": _activation("softshrink", None),
    "threshold": _activation("threshold", None, threshold=0.5, value=-1.0),
    "elu": _activation("elu", lambda m, x, y: x if x > 0 else m.expm1(x)),
    "elu, 1.3": _activation(
        "elu", lambda m, x, y: x if x > 0 else m.mpf(1.3) * m.expm1(x), alpha=1.3
    ),
    "selu": _activation(
        "selu",
        lambda m, x, y: (
            m.mpf("1.0507009873554804934193349852946")
            * (x if x > 0 else m.mpf("1.6732632423543772848170429916717") * m.expm1(x))
        ),
    ),
    "celu": _activation("celu", lambda m, x, y: x if x > 0 else 2 * m.expm1(x / 2), alpha=2.0),
    "gelu": _activation("gelu", lambda m, x, y: x * m.erfc(-x / m.sqrt(2)) / 2, _OF_ROOT),
    "gelu, tanh": _activation(
        "gelu",
        lambda m, x, y: x / 2 * (1 + m.tanh(m.sqrt(2 / m.pi) * (x + m.mpf("0.044715") * x**3))),
        _CANCELS,
        approximate="tanh",
    ),
    "sigmoid": Operator(lambda t, x, y: t.sigmoid(x), lambda m, x, y: _sigmoid(m, x)),
    "silu": _activation("silu", lambda m, x, y: x * _sigmoid(m, x)),
    "mish": _activation(
        "mish",
        lambda m, x, y: x * m.tanh(m.log1p(m.exp(x))),
        "exp(x) is subnormal at -745, as in torch",
    ),
    "logsigmoid": _activation("logsigmoid", lambda m, x, y: -m.log1p(m.exp(-x))),
    "softplus": _activation("softplus", lambda m, x, y: x if x > 20 else m.log1p(m.exp(x))),
    "softplus, 2": _activation(
        "softplus", lambda m, x, y: x if 2 * x > 20 else m.log1p(m.exp(2 * x)) / 2, beta=2.0
    ),
    "softsign": _activation("softsign", lambda m, x, y: x / (1 + abs(x))),
    "tanhshrink": _activation("tanhshrink", lambda m, x, y: x - m.tanh(x), _CANCELS),
    # Along an axis
    "sum": Operator(lambda t, x, y: t.stack([x, y], -1).sum(-1), lambda m, x, y: x + y, two=True),
    "nansum": Operator(lambda t, x, y: t.stack([x, y], -1).nansum(-1), two=True),
    "prod": Operator(lambda t, x, y: t.stack([x, y], -1).prod(-1), lambda m, x, y: x * y, two=True),
    "mean": Operator(
        lambda t, x, y: t.stack([x, y], -1).mean(-1), lambda m, x, y: (x + y) / 2, two=True
    ),
    "var": Operator(
        lambda t, x, y: t.stack([x, y], -1).var(-1),
        lambda m, x, y: (x - y) ** 2 / 2,
        _CANCELS,
        two=True,
    ),
    "std": Operator(
        lambda t, x, y: t.stack([x, y], -1).std(-1),
        lambda m, x, y: abs(x - y) / m.sqrt(2),
        _CANCELS,
        two=True,
    ),
    "cumsum": Operator(lambda t, x, y: t.stack([x, y], -1).cumsum(-1)[..., 1], two=True),
    "cumprod": Operator(lambda t, x, y: t.stack([x, y], -1).cumprod(-1)[..., 1], two=True),
    "amax": Operator(lambda t, x, y: t.stack([x, y], -1).amax(-1), two=True),
    "amin": Operator(lambda t, x, y: t.stack([x, y], -1).amin(-1), two=True),
    "max over an axis": Operator(lambda t, x, y: t.stack([x, y], -1).max(-1).values, two=True),
    "aminmax": Operator(lambda t, x, y: t.aminmax(t.stack([x, y], -1), dim=-1).max, two=True),
    "norm": Operator(
        lambda t, x, y: t.linalg.vector_norm(t.stack([x, y], -1), dim=-1), None, two=True
    ),
    "norm, 1": Operator(
        lambda t, x, y: t.linalg.vector_norm(t.stack([x, y], -1), 1, dim=-1), None, two=True
    ),
    "norm, infinity": Operator(
        lambda t, x, y: t.linalg.vector_norm(t.stack([x, y], -1), float("inf"), dim=-1), two=True
    ),
    "logsumexp": Operator(
        lambda t, x, y: t.logsumexp(t.stack([x, y], -1), -1),
        lambda m, x, y: max(x, y) + m.log1p(m.exp(-abs(x - y))),
        _CANCELS,
        two=True,
    ),
    "softmax": Operator(
        lambda t, x, y: t.softmax(t.stack([x, y], -1), -1)[..., 0],
        lambda m, x, y: 1 / (1 + m.exp(y - x)),
        _CARRIED,
        two=True,
    ),
    "log_softmax": Operator(
        lambda t, x, y: t.log_softmax(t.stack([x, y], -1), -1)[..., 0],
        lambda m, x, y: -m.log1p(m.exp(y - x)),
        _CANCELS,
        two=True,
    ),
}

#: Of 0 and -0 any may be the greatest, and a sum of them may have any sign.
for _name in (
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "amax",
    "amin",
    "aminmax",
    "sum",
    "nansum",
    "mean",
    "cumsum",
):
    OPERATORS[_name] = replace(OPERATORS[_name], either_zero=True)
for _name in ("max over an axis", "lerp, 0.25", "lerp, tensor", "clamp, tensor", "softshrink"):
    OPERATORS[_name] = replace(OPERATORS[_name], either_zero=True)
