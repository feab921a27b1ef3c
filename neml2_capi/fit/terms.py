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
    """Residuals (m,), and by curve the weights (m, n) of its values in their derivatives."""

    residuals: Array
    weights: dict[str, Array]

    def slopes(self, of: Mapping[str, Array]) -> Array:
        """Derivatives (m, parameters), of derivatives (n, parameters) of the curves."""
        parts = [weights @ of[key] for key, weights in self.weights.items()]
        return np.asarray(sum(parts[1:], parts[0]))


def terms(experiment: Experiment, curves: Mapping[str, Array]) -> Terms:
    """All residuals of an experiment, of the curves of a model: none if its weight is 0."""
    parts = []
    rows = len(experiment.t)
    for loss in experiment.loss if experiment.weight else ():
        for part, measured in experiment.measured.items():
            key = f"{experiment.seen}.{part}"
            if loss == "curve":
                parts.append(_distances(experiment, part, curves))
            elif loss == "ratcheting":
                parts.append(_means(experiment, key, measured, curves))
            else:
                chosen = np.isfinite(measured)
                if loss == "peaks":
                    at_peak = np.zeros(len(measured), bool)
                    at_peak[experiment.reversals] = True
                    chosen &= at_peak
                parts.append(_values(experiment, key, measured, curves, np.flatnonzero(chosen)))
    if not parts:
        weights = {f"{experiment.seen}.{p}": np.zeros((0, rows)) for p in experiment.measured}
        return Terms(np.zeros(0), weights)
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
    return Terms((curves[key][rows] - measured[rows]) / divisor, {key: weights})


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
    return Terms(weights @ (curves[key] - known), {key: weights})


def _distances(experiment: Experiment, part: str, curves: Mapping[str, Array]) -> Terms:
    """The distance of each measured point from the model's curve of stress over strain.

    Both axes are scaled by their range; the distance is along the normal of the nearest piece of
    the curve, among pieces of the same branch between reversals.
    """
    keys = f"strain.{part}", f"stress.{part}"
    points = np.stack([experiment.strain[part], experiment.stress[part]], axis=1)
    line = np.stack([curves[key] for key in keys], axis=1)
    spans = np.array([np.ptp(column[np.isfinite(column)]) or 1.0 for column in points.T])
    # A deviation of what was measured is one of its axis.
    units = spans.copy()
    if experiment.deviation is not None:
        units *= (
            float(np.median(experiment.deviation)) / spans[1 if experiment.seen == "stress" else 0]
        )
    points, line = points / units, line / units
    turns = [0, *experiment.reversals.tolist()]
    residuals, rows = [], []
    weights = {key: [] for key in keys}  # type: dict[str, list[Array]]
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
    return Terms(np.array(residuals), {key: np.array(value) for key, value in weights.items()})
