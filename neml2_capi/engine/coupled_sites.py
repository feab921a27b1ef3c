"""Whether a site of an output depends on other sites of an input, found out by runs of the graph.

Derivatives are compiled for one change at all sites of an input. That is the derivative at each
site if a site of the output depends on its own site of the input only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from neml2_capi._ffi.errors import Error
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.engine.package import Package

#: Ranges of the values that inputs have: a law may not be defined everywhere, or couple sites
#: beyond a threshold only.
_RANGES = (
    *((0.5, 1.5), (-0.9, 0.9), (0.05, 0.95)),
    *((20.0, 400.0), (400.0, 3000.0), (-3000.0, 3000.0)),
)
#: Draws of values until all sites had a number.
_MOST_DRAWS = 8 * len(_RANGES)


def couples_sites(package: Package, number: int, output: int, sites: int) -> bool:
    """Tell whether an output does so, or no run could tell, by the numbers of input and output."""
    # Two sites differ in some digit of their numbers, in base two.
    digits = range((sites - 1).bit_length())
    parts = [np.arange(sites) >> digit & 1 == one for digit in digits for one in (0, 1)]
    told: list[Any] = [False] * len(parts)
    for draw in range(_MOST_DRAWS):
        if draw >= len(_RANGES) and np.all(told):
            return False
        random, within = np.random.default_rng(draw), _RANGES[draw % len(_RANGES)]
        inputs, others = (
            [_drawn(within, each, random) for each in package.filled(2)] for _ in range(2)
        )
        try:
            before = package(2, inputs)[output][0].reshape(sites, -1)
            for place, changed in enumerate(parts):
                if draw >= len(_RANGES) and np.all(told[place]):
                    continue
                given = list(inputs)
                given[number] = _with_changes(inputs[number], others[number], changed)
                after = package(2, given)[output][0].reshape(sites, -1)
                seen = ~changed[:, np.newaxis] & np.isfinite(before)
                if (before != after)[seen].any():
                    return True
                told[place] = told[place] | changed[:, np.newaxis] | seen
        except Error as error:  # of an operator that refuses these values
            if error.status != lib.NEML2_ERROR_RUNTIME:
                raise
    return not all(np.all(each) for each in told)


def _drawn(within: tuple[float, float], array: Array, random: np.random.Generator) -> Array:
    """Real numbers of a range, the same for all points; others as they are."""
    if array.dtype.kind != "f":
        return array
    values = random.uniform(*within, array.shape[1:])
    return np.broadcast_to(values, array.shape).astype(array.dtype)


def _with_changes(array: Array, other: Array, changed: Array) -> Array:
    """Return a copy; at some sites of the first point it has the values of another array."""
    made: Array = array.copy()
    made[0].reshape(len(changed), -1)[changed] = other[0].reshape(len(changed), -1)[changed]
    return made
