"""Operators of torch's own derivatives, of functions that have one written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from neml2_capi.kernels import elementwise as of
from neml2_capi.kernels.arrays import Arrays, Nodes


def inside(a: Arrays, g: Nodes, x: Nodes, low: float, high: float) -> Nodes:
    """The slope 1 between two bounds, 0 outside."""
    return a.where(a.or_(a.ge(low, x), a.ge(x, high)), 0.0, g)


def elu(
    a: Arrays,
    g: Nodes,
    alpha: float,
    scale: float,
    input_scale: float,
    is_result: bool,
    x: Nodes,
) -> Nodes:
    factor = alpha * scale
    if is_result:
        slope = a.mul(a.add(x, factor), input_scale)
    else:
        slope = a.mul(a.function("exp", a.mul(x, input_scale)), input_scale * factor)
    return a.where(a.ge(0.0, x), a.mul(g, slope), a.mul(g, scale))


def softplus(a: Arrays, g: Nodes, x: Nodes, beta: float, limit: float) -> Nodes:
    scaled = a.mul(x, beta)
    power = a.function("exp", scaled)
    curve = a.div(a.mul(g, power), of.one_plus(a, power))
    return a.where(a.gt(scaled, limit), g, curve)


def silu(a: Arrays, g: Nodes, x: Nodes) -> Nodes:
    s = of.sigmoid(a, x)
    return a.mul(a.mul(g, s), of.one_plus(a, a.mul(x, a.sub(1.0, s))))


def mish(a: Arrays, g: Nodes, x: Nodes) -> Nodes:
    t = a.function("tanh", a.function("log1p", a.function("exp", x)))
    curve = a.mul(a.mul(x, of.sigmoid(a, x)), a.sub(1.0, a.mul(t, t)))
    return a.mul(g, a.add(t, curve))


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


def log_sigmoid(a: Arrays, g: Nodes, x: Nodes, buffer: Any) -> Nodes:
    return a.mul(g, of.sigmoid(a, a.neg(x)))


def hard_swish(a: Arrays, g: Nodes, x: Nodes) -> Nodes:
    middle = a.mul(g, a.add(a.div(x, 3.0), 0.5))
    return a.where(a.ge(-3.0, x), 0.0, a.where(a.ge(x, 3.0), g, middle))


def logit(a: Arrays, g: Nodes, x: Nodes, eps: float | None = None) -> Nodes:
    slope = a.div(g, a.mul(x, a.sub(1.0, x)))
    low, outside = (0.0, math.nan) if eps is None else (eps, 0.0)
    within = a.and_(a.ge(x, low), a.ge(1 - low, x))
    return a.where(within, slope, outside)


def softmax(a: Arrays, g: Nodes, y: Nodes, axis: int, *_: Any) -> Nodes:
    product = a.mul(g, y)
    return a.sub(product, a.mul(y, a.sum(product, axis, True)))


def log_softmax(a: Arrays, g: Nodes, y: Nodes, axis: int, *_: Any) -> Nodes:
    return a.sub(g, a.mul(a.function("exp", y), a.sum(g, axis, True)))


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


_BY_NAME: dict[str, Callable[..., Any]] = {
    "tanh": lambda a, g, y: a.mul(g, a.sub(1.0, a.mul(y, y))),
    "sigmoid": lambda a, g, y: a.mul(a.mul(g, a.sub(1.0, y)), y),
    "threshold": lambda a, g, x, limit: a.where(a.ge(limit, x), 0.0, g),
    "hardtanh": inside,
    "hardsigmoid": lambda a, g, x: a.where(a.and_(a.gt(x, -3.0), a.gt(3.0, x)), a.div(g, 6.0), 0.0),
    "hardswish": hard_swish,
    "leaky_relu": lambda a, g, x, slope, is_result: a.where(a.gt(x, 0.0), g, a.mul(g, slope)),
    "elu": elu,
    "softplus": softplus,
    "silu": silu,
    "mish": mish,
    "gelu": gelu,
    "log_sigmoid": log_sigmoid,
    "logit": logit,
    "hardshrink": shrunk,
    "softshrink": shrunk,
    "value_selecting_reduction": value_selected,
}

BACKWARD: dict[str, Callable[..., Any]] = {
    **{f"aten.{name}_backward.default": does for name, does in _BY_NAME.items()},
    "aten.scatter.src": scattered,
    "aten.scatter.value": scattered,
    "aten._softmax_backward_data.default": softmax,
    "aten._log_softmax_backward_data.default": log_softmax,
}
