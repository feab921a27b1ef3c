"""Functions of constants, folded as IEEE 754 has them: infinite or NaN, never an exception."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def product(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(x) * np.float64(y))


def quotient(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


def power(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(x) ** np.float64(y))


def sign(x: float) -> float:
    """-1, 0 or 1; 0 for NaN, as torch has it."""
    return float((x > 0) - (x < 0))


def greatest(x: float, y: float) -> float:
    return x if x > y or x != x else y


def least(x: float, y: float) -> float:
    return x if x < y or x != x else y


def floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def _defined(
    function: Callable[[float], float],
    undefined: Callable[[float], float] = lambda x: math.nan,
    too_large: Callable[[float], float] = lambda x: math.inf,
) -> Callable[[float], float]:
    """A function of the math module, with values where that raises."""

    def folded(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return undefined(x)
        except OverflowError:
            return too_large(x)

    return folded


def _by_numpy(function: Callable[..., Any]) -> Callable[..., float]:
    def folded(*x: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*map(np.float64, x)))

    return folded


def normal_distribution(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _at_zero(value: float) -> Callable[[float], float]:
    return lambda x: value if x == 0 else math.nan


#: Functions of one number, by the name that they have in the C of a kernel.
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": _defined(math.sqrt),
    "exp": _defined(math.exp),
    "expm1": _defined(math.expm1),
    "log": _defined(math.log, _at_zero(-math.inf)),
    "log1p": _defined(math.log1p, lambda x: -math.inf if x == -1 else math.nan),
    "sinh": _defined(math.sinh, too_large=lambda x: math.copysign(math.inf, x)),
    "cosh": _defined(math.cosh),
    "tanh": math.tanh,
    "sin": _defined(math.sin),
    "cos": _defined(math.cos),
    "tan": _defined(math.tan),
    "asin": _defined(math.asin),
    "acos": _defined(math.acos),
    "atan": math.atan,
    "abs": abs,
    "sign": sign,
    "floor": floor,
    "exp2": _by_numpy(np.exp2),
    "log2": _by_numpy(np.log2),
    "log10": _by_numpy(np.log10),
    "asinh": _by_numpy(np.arcsinh),
    "acosh": _by_numpy(np.arccosh),
    "atanh": _by_numpy(np.arctanh),
    "erf": math.erf,
    "erfc": math.erfc,
    "ndtr": normal_distribution,
    "round": _by_numpy(np.rint),
    "trunc": _by_numpy(np.trunc),
}
#: Functions of two numbers, by the name that they have in the C of a kernel.
BINARY: dict[str, Callable[[float, float], float]] = {
    "atan2": _by_numpy(np.arctan2),
    "hypot": _by_numpy(np.hypot),
    "fmod": _by_numpy(np.fmod),
    "copysign": _by_numpy(np.copysign),
    "quotient": quotient,
}
#: f(-x) = -f(x), and f(-x) = f(x).
ODD = frozenset({"sinh", "tanh", "sin", "tan", "asin", "atan", "asinh", "atanh", "erf"})
EVEN = frozenset({"cosh", "cos", "abs"})
#: Those whose result for NaN is none.
NUMBERS_OF_NAN = frozenset({"sign"})
#: Comparisons of two numbers.
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
}
