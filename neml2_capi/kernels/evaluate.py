"""A program evaluated by numpy: the meaning of every operation, for tests and for reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi.kernels.program import Program

_FUNCTIONS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}


def evaluate(program: Program, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs, each (components, points), of inputs that are (components, points)."""
    points = np.broadcast_shapes(*(values.shape[1:] for values in inputs))
    found: list[Any] = []
    with np.errstate(all="ignore"):
        for name, places, data in program.steps:
            if name == "constant":
                found.append(np.full(points, float(data)))
            elif name == "variable":
                found.append(np.broadcast_to(inputs[data[0]][data[1]], points))
            else:
                found.append(_computed(name, [found[place] for place in places], data))
    return [np.array([found[place] for place in places]) for places in program.results]


def _computed(name: str, x: list[Any], data: Any) -> Any:
    if name == "sum":
        return sum(value if sign > 0 else -value for sign, value in zip(data, x, strict=True))
    if name == "product":
        return np.multiply.reduce(x)
    if name == "where":
        return np.where(*x)
    if name == "sign":
        return (x[0] > 0) * 1.0 - (x[0] < 0)
    binary = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
    if name in binary:
        operations = {
            "+": np.add,
            "-": np.subtract,
            "*": np.multiply,
            "/": np.divide,
            "**": np.power,
        }
        return operations[binary[name]](*x)
    others = {
        "neg": np.negative,
        "gt": np.greater,
        "ge": np.greater_equal,
        "eq": np.equal,
        "and": np.logical_and,
        "or": np.logical_or,
        "not": np.logical_not,
        "greatest": np.maximum,
        "least": np.minimum,
    }
    return others[name](*x) if name in others else getattr(np, _FUNCTIONS.get(name, name))(x[0])
