"""Whether two kernels are the Jacobian of the same residual, by their values at some points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi.kernels.evaluate import evaluate, points_of
from neml2_capi.kernels.program import Array, Program

#: Points at which both are finite, at least; and the difference of an entry to the greatest of its
#: row: at half of these points, and at all, since an entry may be a small difference.
_LEAST, _USUAL, _MOST = 4, 1e-8, 1e-3


def are_alike(traced: Program, derived: Program, unknowns: int) -> bool:
    """Whether a Jacobian with auxiliary unknowns is one that was traced, of one dense group."""
    inputs = points_of(traced, seed=0)  # in long double: entries may be small differences
    expected = _dense(traced.outputs[0], evaluate(traced, inputs)[0])
    expected = expected.reshape(unknowns, unknowns, -1)
    outputs = evaluate(derived, inputs)
    found, *slopes = (
        _dense(array, values) for array, values in zip(derived.outputs, outputs, strict=True)
    )
    found = found.reshape(expected.shape)
    if derived.auxiliaries:
        found = without_auxiliaries(found, *slopes[1:])
    both = np.isfinite(expected).all(axis=(0, 1)) & np.isfinite(found).all(axis=(0, 1))
    expected, found = expected[..., both], found[..., both]
    if both.sum() < _LEAST:
        return False
    row = np.maximum(np.abs(expected).max(axis=1), np.finfo(np.float64).tiny)
    error = (np.abs(found - expected).max(axis=1) / row).max(axis=0)
    return bool(np.median(error) <= _USUAL and error.max() <= _MOST)


def without_auxiliaries(
    jacobian: NDArray[Any], by_auxiliaries: NDArray[Any], slopes: NDArray[Any]
) -> NDArray[Any]:
    """dr/du of all, (rows, columns, points), from dr/du, dr/dw and dw/d(u, w) of a Jacobian."""
    rows, columns, points = jacobian.shape
    by_auxiliaries = by_auxiliaries.reshape(rows, -1, points)
    count = by_auxiliaries.shape[1]
    slopes = slopes.reshape(count, columns + count, points)
    total: NDArray[Any] = slopes[:, :columns].copy()
    with np.errstate(all="ignore"):
        for k in range(count):  # each depends on earlier ones alone
            total[k] += np.einsum("op,ocp->cp", slopes[k, columns : columns + k], total[:k])
        found: NDArray[Any] = jacobian + np.einsum("rap,acp->rcp", by_auxiliaries, total)
    return found


def _dense(array: Array, values: NDArray[Any]) -> NDArray[Any]:
    """An output with its zeros."""
    if array.stored is None:
        return values
    found = np.zeros((array.components, values.shape[-1]), values.dtype)
    found[list(array.stored)] = values
    return found
