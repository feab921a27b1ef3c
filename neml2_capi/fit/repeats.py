"""Tests that were repeated: their mean, with the scatter as a weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from neml2_capi.driver.arguments import wrong
from neml2_capi.fit.experiment import Experiment

#: Of the range of what is prescribed: how far repeated tests may be apart.
_APART = 0.05


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
    tests = list(experiments)
    if len(tests) < 2:
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
