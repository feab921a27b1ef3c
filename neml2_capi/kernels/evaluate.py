"""A program evaluated by numpy: the meaning of every operation, for tests and for reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi.kernels import folding
from neml2_capi.kernels.program import Program

_INVERSE = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")
_FUNCTIONS = {
    **{f"a{name}": getattr(np, f"arc{name}") for name in _INVERSE},
    **{n: np.vectorize(folding.FUNCTIONS[n], otypes=[float]) for n in ("erf", "erfc", "ndtr")},
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "quotient": np.divide,
    "pow": np.power,
    "neg": np.negative,
    "round": np.rint,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "greatest": np.maximum,
    "least": np.minimum,
}


_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "neg", "quotient", "sum", "product"})

#: Sizes of the numbers that are tried, and how many points of each.
_SIZES = (1e-4, 1e-2, 1.0, 1e2, 1e4)
_POINTS = 8


def points_of(program: Program, seed: int) -> list[NDArray[np.longdouble]]:
    """Inputs of a program, each (components, points), of all sizes."""
    random = np.random.default_rng(seed)
    sizes = np.repeat(_SIZES, _POINTS)
    shapes = [(array.components, sizes.size) for array in program.inputs]
    return [(sizes * random.standard_normal(shape)).astype(np.longdouble) for shape in shapes]


def evaluate(program: Program, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs, each (components, points), of inputs that are (components, points).

    Of an output whose zeros are not stored, the components that are stored.
    """
    found = values_of_steps(program, inputs)
    return [np.array([found[place] for place in places]) for places in program.results]


def values_of_steps(
    program: Program, inputs: Sequence[NDArray[Any]], other: np.random.Generator | None = None
) -> list[NDArray[Any]]:
    """The value of each step, (points), of inputs that are (components, points).

    If `other` is given, each operation that is no arithmetic has values of it instead of its own,
    so that what is true is true for any function and in every branch.
    """
    points = np.broadcast_shapes(*(values.shape[1:] for values in inputs))
    found: list[Any] = []
    with np.errstate(all="ignore"):
        for name, places, data in program.steps:
            if name == "constant":
                found.append(np.full(points, float(data)))
            elif name == "variable":
                found.append(np.broadcast_to(inputs[data[0]][data[1]], points))
            elif other and name not in _ARITHMETIC:
                sizes = 10 ** other.uniform(-4, 4, points)
                found.append((sizes * other.standard_normal(points)).astype(np.longdouble))
            else:
                found.append(_computed(name, [found[place] for place in places], data))
    return found


def _computed(name: str, x: list[Any], data: Any) -> Any:
    if name == "sum":
        return sum(value if sign > 0 else -value for sign, value in zip(data, x, strict=True))
    if name == "scale":
        small, large = np.abs(x[0]) < 2.0**-1000, np.abs(x[0]) > 2.0**1000
        return np.where(small, 2.0**100, np.where(large, 2.0**-100, 1.0))
    if name in ("product", "times both"):
        return np.multiply.reduce(x)
    if name == "where":
        return np.where(*x)
    if name == "sign":
        return (x[0] > 0) * 1.0 - (x[0] < 0)
    found = _FUNCTIONS.get(name) or getattr(np, name)
    return found(*x)
