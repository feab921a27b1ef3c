"""The numbers at which operators are compared: special ones, and samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

_SIZES = [0.1, 0.25, 0.5, 0.7, 1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 9.5, 17.5, 20, 27, 30, 88, 100, 104]
_SIZES += [700, 709.7, 710, 745, 1e3, 1e5, 2.0**23 + 0.5, 1e16]
_ANGLES = [np.pi / 4, np.pi / 2, np.pi, 3 * np.pi / 2, 2 * np.pi, 100 * np.pi]
_SMALL = [1e-3, 1e-5, 1e-8, 1e-12, 1e-16, 1e-20]


def special(dtype: str) -> Numbers:
    """Zeros of both signs, subnormal and tiny ones, knots, huge and infinite ones, NaN."""
    info: Any = np.finfo(dtype)
    tiny, most = float(info.smallest_normal), float(info.max)
    sizes = [*_SIZES, *_ANGLES, *_SMALL, 1 - float(info.epsneg), 1 + float(info.eps)]
    sizes += [float(info.smallest_subnormal), tiny / 128, tiny, tiny * 3, tiny**0.5, most**0.5]
    sizes += [most / 3, most]
    ends = [0.0, np.inf]
    with np.errstate(over="ignore", under="ignore"):
        return np.array([s * v for v in [*ends, *sizes] for s in (1, -1)] + [np.nan], dtype)


def points(dtype: str, samples: int = 400) -> tuple[Numbers, Numbers]:
    """Pairs (x, y): all special numbers in all pairs of a part of them, and samples."""
    values = special(dtype)
    few = np.concatenate([values[:4], values[4::7], -values[4::7], values[-3:]])
    random = np.random.default_rng(3)
    most = float(np.log10(np.finfo(dtype).max))

    def sampled() -> Numbers:
        spread = random.uniform(-1, 1, samples)
        wide = np.sign(spread) * 10 ** random.uniform(-most * 0.9, most * 0.9, samples)
        return np.concatenate([spread, 5 * spread, 40 * spread, 700 * spread, wide])

    x = np.concatenate([values, np.repeat(few, len(few)), sampled()])
    y = np.concatenate([values[::-1], np.tile(few, len(few)), random.permutation(sampled())])
    return x.astype(dtype), y.astype(dtype)
