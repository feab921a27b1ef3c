"""Whether two contestants computed the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# By name; a derivative is named "OUTPUT,INPUT" or "OUTPUT,jvp".
Results = dict[str, NDArray[np.float64]]


def differing(results: Results, expected: Results) -> list[str]:
    """The names of results that are not what is expected, relative to the greatest magnitude.

    Of a derivative that vanishes both may have some round-off, small beside the others of its
    output; and not all give what is zero.
    """
    greatest: dict[str, float] = {}
    for name, array in expected.items():
        size = float(np.abs(array).max(initial=0))
        for key in (name, name.partition(",")[0] + ","):
            greatest[key] = max(greatest.get(key, 0.0), size)
    wrong = []
    for name in sorted(results.keys() | expected.keys()):
        output, comma, _ = name.partition(",")
        if name not in results or name not in expected:
            if not comma:
                wrong.append(name)
            continue
        tolerance = 1e-9 * greatest[name]
        if comma:
            tolerance = max(1e-6 * greatest[name], 1e-12 * greatest[output + ","])
        a, b = results[name], expected[name]
        if a.shape != b.shape or not np.abs(a - b).max(initial=0) <= tolerance:
            wrong.append(name)
    return wrong
