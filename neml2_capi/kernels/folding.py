"""Functions of constants, folded as IEEE 754 has them: infinite or NaN, never an exception."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


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
}
#: f(-x) = -f(x), and f(-x) = f(x).
ODD = frozenset({"sinh", "tanh", "sin", "tan", "asin", "atan", "sign"})
EVEN = frozenset({"cosh", "cos", "abs"})
#: Comparisons of two numbers.
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
}
