"""Whether a site of an output depends on other sites of an input, found out by runs of the graph.

Derivatives are compiled for one change at all sites of an input. That is the derivative at each
site if a site of the output depends on its own site of the input only.
"""

from __future__ import annotations

import numpy as np

from neml2_capi._ffi.errors import Error
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.engine.package import Package

#: Ranges of the values that inputs have: a law may not be defined everywhere, or couple sites
#: beyond a threshold only.
_RANGES = ((0.5, 1.5), (-0.9, 0.9), (20.0, 400.0))


def couples_sites(package: Package, number: int, output: int, sites: int) -> bool:
    """Tell whether an output does so, or no run could tell, by the numbers of input and output."""
    # Two sites differ in some digit of their numbers, in base two.
    digits = range((sites - 1).bit_length())
    some = [np.arange(sites) >> digit & 1 == one for digit in digits for one in (0, 1)]
    told = np.zeros(len(some), bool)
    for least, most in _RANGES:
        random = np.random.default_rng(0)
        inputs = [_within(least, most, each, random) for each in package.filled(2)]
        changes = 0.2 * (most - least) * random.uniform(0.5, 1.5, inputs[number][0].size)
        try:
            before = package(2, inputs)[output][0].reshape(sites, -1)
            for place, changed in enumerate(some):
                after = package(
                    2, _with_changes(inputs, number, changes.reshape(sites, -1), changed)
                )
                others, now = before[~changed], after[output][0].reshape(sites, -1)[~changed]
                finite = np.isfinite(others)
                if (others != now)[finite].any():
                    return True
                told[place] |= finite.all()
        except Error as error:  # of an operator that refuses these values
            if error.status != lib.NEML2_ERROR_RUNTIME:
                raise
    return not told.all()


def _within(least: float, most: float, array: Array, random: np.random.Generator) -> Array:
    """Real numbers of a range, the same for all points; others as they are."""
    if array.dtype.kind != "f":
        return array
    values = random.uniform(least, most, array.shape[1:])
    return np.broadcast_to(values, array.shape).astype(array.dtype)


def _with_changes(inputs: list[Array], number: int, changes: Array, changed: Array) -> list[Array]:
    """Inputs of which one is changed at some sites of the first point."""
    given = list(inputs)
    given[number] = given[number].copy()
    given[number][0] += np.where(changed[:, np.newaxis], changes, 0.0).reshape(
        given[number][0].shape
    )
    return given
