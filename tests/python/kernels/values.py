"""Values of the variables of the test models, of the size that they have in use."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from neml2_capi.kernels.program import Array

Values = NDArray[np.float64]

#: By a pattern of the name: a mean, and the size of what varies about it.
_SIZES = (
    (r"density", 100.0, 30.0),
    (r"orientation", 0.0, 0.3),
    (r"equivalent|plastic_multiplier|_rate_|flow_rate", 1e-2, 3e-3),
    (r"vorticity|deformation|slip|strain|direction", 0.0, 1e-3),
    (r"(^|\.)E$", 2e5, 2e4),
    (r"(^|\.)nu$", 0.3, 0.03),
    (r"(^|\.)(sy|yield_stress)$", 10.0, 1.0),
    (r"strength", 50.0, 5.0),
    (r"^X\d|back|stress", 0.0, 50.0),
)
#: Of the times of one step.
_TIMES = {"t": 2.0, "t~1": 1.5, "t~2": 1.0}


def of_variable(name: str, shape: tuple[int, ...], random: np.random.Generator) -> Values:
    if name in _TIMES:
        return _TIMES[name] + 0.1 * random.random(shape)
    for pattern, mean, size in _SIZES:
        if re.search(pattern, name):
            return mean + size * random.standard_normal(shape)
    return random.standard_normal(shape)


def of_array(array: Array, points: int, random: np.random.Generator) -> Values:
    """(points, components), or (components,) of what has one value for all points."""
    lead = (points,) if array.per_point else ()
    if not array.parts:
        return of_variable(array.name, (*lead, array.components), random)
    parts = [of_variable(part.name, (*lead, part.components), random) for part in array.parts]
    return np.concatenate(parts, axis=-1)


def components_of(array: Array, pattern: str) -> list[int]:
    """The components of the variables whose names match."""
    if not array.parts:
        return list(range(array.components)) if re.search(pattern, array.name) else []
    return [
        component
        for part in array.parts
        if re.search(pattern, part.name)
        for component in range(part.offset, part.offset + part.components)
    ]
