"""Tests that were repeated: their mean, with the scatter as a weight; one that is given twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from neml2_capi.driver.arguments import wrong
from neml2_capi.fit.experiment import Experiment

#: Of the range of what is prescribed: how far repeated tests may be apart.
_APART = 0.05


def distinct(experiments: Any) -> list[Experiment]:
    """Experiments as a list; FatalError if it is none, or has the same numbers twice."""
    listed = isinstance(experiments, Iterable) and not isinstance(experiments, Experiment)
    tests = list(experiments) if listed else []
    if not tests or not all(isinstance(each, Experiment) for each in tests):
        raise wrong("experiments", "must be a list of Experiment, of one at least")
    for first, other in combinations(tests, 2):
        if _have_same_numbers(first, other):
            raise wrong(
                "experiments",
                f"have the numbers of {first.name!r} twice, in {other.name!r} too: deviations "
                "would be too small. Leave one out, say weight = 2, or give one test the losses of "
                "both",
            )
    return tests


def _have_same_numbers(first: Experiment, other: Experiment) -> bool:
    if any(getattr(first, what) != getattr(other, what) for what in ("control", "labels")) or any(
        getattr(first, what).keys() != getattr(other, what).keys()
        for what in ("strain", "stress", "forces")
    ):
        return False
    pairs = [(first.t, other.t)]
    for what in ("strain", "stress", "forces"):
        pairs += [(own, getattr(other, what)[name]) for name, own in getattr(first, what).items()]
    return all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def averaged(experiments: Sequence[Experiment], name: str = "") -> Experiment:
    """One experiment of several that repeat one test: the mean, with its standard deviation.

    Parameters
    ----------
    experiments
        Two at least, of one control and the same components. What was measured is interpolated to
        the times of the first.
    name
        By default the first one's.

    Returns
    -------
    Experiment
        The mean at each time; `deviation` is the standard deviation of the mean there, and at least
        a tenth of its median, so that no point counts without bound.

    Raises
    ------
    FatalError
        There are fewer than two, or they are not of one kind: at the same times they prescribe the
        same, to a twentieth of its range.
    """
    tests = list(experiments) if isinstance(experiments, Sequence) else []
    if len(tests) < 2 or not all(isinstance(each, Experiment) for each in tests):
        raise wrong("experiments", "must be two at least, to have a mean and a scatter")
    first = tests[0]
    for each in tests[1:]:
        same = all(
            getattr(each, parts).keys() == getattr(first, parts).keys()
            for parts in ("prescribed", "measured")
        )
        same &= each.control == first.control
        if not same:
            raise wrong("experiments", f"{first.name!r} and {each.name!r} measure different things")
        _check_path(first, each)
        _check_conditions(first, each)
    means, scatters = {}, []
    for part in first.measured:
        rows = []
        for each in tests:
            value = each.measured[part]
            seen = np.isfinite(value)
            if not seen.any():
                raise wrong("experiments", f"have {each.name!r}, in which no {part} was measured")
            rows.append(np.interp(first.t, each.t[seen], value[seen], np.nan, np.nan))
        table = np.stack(rows)
        counted = np.isfinite(table).sum(axis=0)
        means[part] = np.where(
            counted > 0, np.nansum(table, axis=0) / np.maximum(counted, 1), np.nan
        )
        square = np.nansum((table - means[part]) ** 2, axis=0) / np.maximum(counted - 1, 1)
        scatters.append(np.where(counted > 1, np.sqrt(square / np.maximum(counted, 1)), np.nan))
    scatter = np.max(scatters, axis=0)
    typical = float(np.nanmedian(scatter))
    if not typical > 0:
        raise wrong("experiments", "are equal: there is no scatter to weigh them by")
    scatter = np.maximum(np.where(np.isfinite(scatter), scatter, typical), 0.1 * typical)
    mean: dict[str, Any] = {first.seen: means}
    return replace(first, name=name or first.name, deviation=scatter, **mean)


def _check_path(first: Experiment, other: Experiment) -> None:
    """FatalError unless the same is prescribed at the same times, where both have some."""
    rows = (first.t >= other.t[0]) & (first.t <= other.t[-1])
    for part, value in first.prescribed.items():
        apart = np.abs(np.interp(first.t[rows], other.t, other.prescribed[part]) - value[rows])
        if apart.max(initial=0.0) > _APART * np.ptp(value):
            row = int(np.argmax(apart))
            raise wrong(
                "experiments",
                f"{first.name!r} and {other.name!r} do not repeat one test: at t = "
                f"{first.t[rows][row]:g} their {first.control} {part} differs by {apart[row]:.3g}. "
                "Without t or rate a row takes 1 s, so that tests of other rows run apart",
            )


def _check_conditions(first: Experiment, other: Experiment) -> None:
    """FatalError unless one mean can stand for both: of equal forces, labels, losses and weight."""
    differing = [
        what
        for what in ("labels", "loss", "weight")
        if getattr(first, what) != getattr(other, what)
    ]
    if first.forces.keys() != other.forces.keys() or not all(
        _is_near(
            np.interp(first.t, other.t, np.broadcast_to(other.forces[name], other.t.shape)), own
        )
        for name, own in first.forces.items()
    ):
        differing.append("forces")
    if differing:
        what = differing[0]
        raise wrong(
            "experiments",
            f"{first.name!r} and {other.name!r} do not repeat one test: their {what} are "
            f"{getattr(first, what)!r} and {getattr(other, what)!r}. A mean would have the first "
            "one's",
        )


def _is_near(values: Any, own: Any) -> bool:
    return bool(np.all(np.abs(values - own) <= _APART * np.abs(own).max()))
