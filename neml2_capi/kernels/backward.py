"""Operators of torch's own derivatives that torch does not define by others as kernels want it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from neml2_capi.kernels import elementwise as of
from neml2_capi.kernels.arrays import Arrays, Nodes


def gelu(a: Arrays, g: Nodes, x: Nodes, approximate: str = "none") -> Nodes:
    square = a.mul(x, x)
    if approximate == "none":
        density = a.function("exp", a.mul(square, -0.5))
        slope = a.add(a.function("ndtr", x), a.mul(a.mul(x, density), 1 / math.sqrt(2 * math.pi)))
        return a.mul(g, slope)
    t = a.function("tanh", of.gelu_argument(a, x))
    inner = a.mul(of.one_plus(a, a.mul(square, 3 * 0.044715)), math.sqrt(2 / math.pi))
    curve = a.mul(a.mul(a.mul(x, 0.5), a.sub(1.0, a.mul(t, t))), inner)
    return a.mul(g, a.add(a.mul(of.one_plus(a, t), 0.5), curve))


def shrunk(a: Arrays, g: Nodes, x: Nodes, limit: float) -> Nodes:
    return a.where(a.and_(a.ge(x, -limit), a.ge(limit, x)), 0.0, g)


def scattered(a: Arrays, x: Nodes, axis: int, places: Nodes, values: Any) -> Nodes:
    """x with values where the places along an axis say, which may depend on data."""
    index = np.arange(x.shape[axis]).reshape(
        [-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]
    )
    of = np.broadcast_to(a.array(values), places.shape)
    for k in range(places.shape[axis]):
        here = a.eq(np.take(places, [k], axis), a.array(index))
        x = a.where(here, np.take(of, [k], axis), x)
    return x


def value_selected(
    a: Arrays, g: Nodes, axis: int, places: Nodes, shape: Any, keep: bool = True
) -> Nodes:
    """Of max.dim and min.dim: into zeros, where the extreme was."""
    if not keep:
        g, places = np.expand_dims(g, axis), np.expand_dims(places, axis)
    return scattered(a, a.full(shape, 0.0), axis, places, g)


BACKWARD: dict[str, Callable[..., Any]] = {
    "aten.tanh_backward": lambda a, g, y: a.mul(g, a.sub(1.0, a.mul(y, y))),
    "aten.sigmoid_backward": lambda a, g, y: a.mul(a.mul(g, a.sub(1.0, y)), y),
    "aten.gelu_backward": gelu,
    "aten.hardshrink_backward": shrunk,
    "aten.softshrink_backward": shrunk,
    "aten.value_selecting_reduction_backward": value_selected,
    "aten.scatter": scattered,
}
