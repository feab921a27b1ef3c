"""Residuals of an experiment, as the field compares curves, with their derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neml2_capi.fit.cycles import cycles
from neml2_capi.fit.experiment import Experiment

Array = NDArray[np.float64]


class Terms(NamedTuple):
    """Residuals, their derivatives, and which measured values they are made of."""

    #: (m,), without unit.
    residuals: Array
    #: By curve (m, n): derivatives by its values.
    weights: dict[str, Array]
    #: (m, 2), of the measured values of all components in a row.
    values: NDArray[np.int64]
    #: (m, 2), derivatives by them, negative, in the deviations that a test of its weight has.
    shares: Array

    def slopes(self, of: Mapping[str, Array]) -> Array:
        """Derivatives (m, parameters), of derivatives (n, parameters) of the curves."""
        parts = [weights @ of[key] for key, weights in self.weights.items()]
        return np.asarray(sum(parts[1:], parts[0]))


def terms(experiment: Experiment, curves: Mapping[str, Array]) -> Terms:
    """All residuals of an experiment, of the curves of a model: none if its weight is 0."""
    parts = []
    rows = len(experiment.t)
    for loss in experiment.loss if experiment.weight else ():
        for place, (part, measured) in enumerate(experiment.measured.items()):
            key = f"{experiment.seen}.{part}"
            if loss == "curve":
                found = _distances(experiment, part, curves)
            elif loss == "ratcheting":
                found = _means(experiment, key, measured, curves)
            else:
                chosen = np.isfinite(measured)
                if loss == "peaks":
                    at_peak = np.zeros(len(measured), bool)
                    at_peak[experiment.reversals] = True
                    chosen &= at_peak
                found = _values(experiment, key, measured, curves, np.flatnonzero(chosen))
            parts.append(found._replace(values=found.values + place * rows))
    if not parts:
        nothing = np.zeros((0, 2))
        weights = {f"{experiment.seen}.{p}": np.zeros((0, rows)) for p in experiment.measured}
        return Terms(np.zeros(0), weights, nothing.astype(np.int64), nothing)
    keys = dict.fromkeys(key for part in parts for key in part.weights)
    weight = np.sqrt(experiment.weight)
    return Terms(
        weight * np.concatenate([part.residuals for part in parts]),
        {
            key: weight
            * np.concatenate(
                [part.weights.get(key, np.zeros((len(part.residuals), rows))) for part in parts]
            )
            for key in keys
        },
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.shares for part in parts]),
    )


def scale(experiment: Experiment, key: str) -> Array:
    """By what residuals of a curve are divided, (n,): its deviation, or its greatest value."""
    kind, _, part = key.partition(".")
    values = (experiment.strain if kind == "strain" else experiment.stress)[part]
    if experiment.deviation is not None and kind == experiment.seen:
        return np.asarray(np.broadcast_to(experiment.deviation, values.shape), float)
    largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    return np.full(values.shape, largest)


def _values(
    experiment: Experiment,
    key: str,
    measured: Array,
    curves: Mapping[str, Array],
    rows: NDArray[np.int64],
) -> Terms:
    divisor = scale(experiment, key)[rows]
    weights = np.zeros((len(rows), len(measured)))
    weights[np.arange(len(rows)), rows] = 1 / divisor
    residuals = (curves[key][rows] - measured[rows]) / divisor
    return Terms(residuals, {key: weights}, np.stack([rows, rows], axis=1), _one(len(rows)))


def _one(count: int) -> Array:
    """Shares of residuals that are made of one measured value each."""
    return np.tile([1.0, 0.0], (count, 1))


def _means(experiment: Experiment, key: str, measured: Array, curves: Mapping[str, Array]) -> Terms:
    """The means of the extremes of each cycle, at the rows at which the test has them."""
    strain, stress = (
        next(iter(parts.values())) for parts in (experiment.strain, experiment.stress)
    )
    found = cycles(strain, stress, experiment.control)
    weights = np.zeros((len(found), len(measured)))
    divisor = scale(experiment, key)
    for row, cycle in enumerate(found):
        for extreme in (cycle.highest, cycle.lowest):
            weights[row, extreme] += 0.5 / divisor[extreme]
    known = np.nan_to_num(measured)
    extremes = np.array([(cycle.highest, cycle.lowest) for cycle in found], np.int64).reshape(-1, 2)
    shares = np.full(extremes.shape, 0.5)
    return Terms(weights @ (curves[key] - known), {key: weights}, extremes, shares)


def _distances(experiment: Experiment, part: str, curves: Mapping[str, Array]) -> Terms:
    """The distance of each measured point from the model's curve of stress over strain.

    Both axes are scaled by their range; the distance is along the normal of the nearest piece of
    the curve, among pieces of the same branch between reversals.
    """
    keys = f"strain.{part}", f"stress.{part}"
    seen = 1 if experiment.seen == "stress" else 0
    points = np.stack([experiment.strain[part], experiment.stress[part]], axis=1)
    line = np.stack([curves[key] for key in keys], axis=1)
    spans = np.array([np.ptp(column[np.isfinite(column)]) or 1.0 for column in points.T])
    # A deviation of what was measured is one of its axis.
    units = spans.copy()
    if experiment.deviation is not None:
        units *= float(np.median(experiment.deviation)) / spans[seen]
    points, line = points / units, line / units
    turns = [0, *experiment.reversals.tolist()]
    residuals, rows, shares = [], [], []
    weights = {key: [] for key in keys}  # type: dict[str, list[Array]]
    divisor = scale(experiment, keys[seen])
    for row in np.flatnonzero(np.isfinite(points).all(axis=1)):
        branch = int(np.searchsorted(turns, row))
        first = turns[max(branch - 1, 0)]
        last = max(turns[min(branch, len(turns) - 1)], first + 1)
        begin, end = line[first:last], line[first + 1 : last + 1]
        along = end - begin
        square = np.einsum("kc,kc->k", along, along)
        share = np.einsum("kc,kc->k", points[row] - begin, along) / np.where(square > 0, square, 1)
        share = np.clip(share, 0.0, 1.0)
        apart = begin + share[:, None] * along - points[row]
        piece = int(np.einsum("kc,kc->k", apart, apart).argmin())
        tangent = along[piece] / (np.sqrt(square[piece]) or 1.0)
        normal = np.array([-tangent[1], tangent[0]])
        if not 0.0 < share[piece] < 1.0:  # beyond an end, or at a corner
            size = np.linalg.norm(apart[piece])
            normal = apart[piece] / size if size > 0 else normal
        residuals.append(float(normal @ apart[piece]))
        for axis, key in enumerate(keys):
            weight = np.zeros(len(line))
            weight[first + piece] = normal[axis] * (1 - share[piece]) / units[axis]
            weight[first + piece + 1] = normal[axis] * share[piece] / units[axis]
            weights[key].append(weight)
        rows.append(row)
        shares.append(normal[seen] * divisor[row] / units[seen])
    return Terms(
        np.array(residuals),
        {key: np.reshape(value, (-1, len(line))) for key, value in weights.items()},
        np.array([rows, rows], np.int64).T,
        _one(len(rows)) * np.array(shares)[:, None],
    )
