"""Cycles of a test: reversals, peaks, ratcheting, loop areas."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neml2_capi.driver.arguments import is_number, wrong
from neml2_capi.fit.columns import column

Array = NDArray[np.float64]
#: A last cycle is whole if its second half covers this share of its first.
_WHOLE = 0.9


def reversals(signal: ArrayLike, smallest: float = 0.01) -> NDArray[np.int64]:
    """The rows at which a signal turns, and the last extreme.

    Parameters
    ----------
    signal : array (n,)
        Prescribed values over time; while they are held, the first row counts. Missing values,
        NaN, are left out.
    smallest
        Share of the signal's range: what turns back by less is noise, and no reversal.

    Returns
    -------
    array (m,) of int
        Rows, increasing; none of a signal without rows.
    """
    if not is_number(smallest) or not 0 <= smallest < 1:
        raise wrong("smallest", f"must be a share of the range, from 0 to 1; got {smallest!r}")
    values = column("signal", "that was given", signal)
    rows = np.flatnonzero(np.isfinite(values))
    if not len(rows):
        return np.arange(len(values))[-1:]
    least = smallest * np.ptp(values[rows])
    lowest = highest = extreme = int(rows[0])
    direction, turns = 0, []
    for row in rows.tolist():
        value = values[row]
        if direction == 0:
            lowest = row if value < values[lowest] else lowest
            highest = row if value > values[highest] else highest
            direction = int(value - values[lowest] > least) - int(values[highest] - value > least)
            extreme = row
        elif direction * (value - values[extreme]) > 0:
            extreme = row
        elif direction * (values[extreme] - value) > least:
            turns.append(extreme)
            direction, extreme = -direction, row
    return np.array([*turns, extreme])


class Cycle(NamedTuple):
    """One cycle of a test, from a reversal to the next but one."""

    #: Rows of its first and its last point, and of its extremes.
    first: int
    last: int
    highest: int
    lowest: int
    #: Greatest and least value of what responds.
    maximum: float
    minimum: float
    #: The mean of both: the ratcheting strain, or the mean stress.
    mean: float
    #: Half of their distance.
    amplitude: float
    #: Area of the loop of stress over strain: the work that is dissipated, MJ/m^3 for MPa.
    area: float


def cycles(strain: ArrayLike, stress: ArrayLike, control: str = "strain") -> list[Cycle]:
    """The cycles of a test, one after another.

    Parameters
    ----------
    strain, stress : array (n,)
        A component of each over time.
    control
        "strain" or "stress": which was prescribed. Extremes are the other's.

    Returns
    -------
    list of Cycle
        From each reversal to the next but one; the virgin loading is none, nor is a last cycle
        whose second half covers less than nine tenths of its first: the test ended within it.
        What is missing, NaN, is left out of its loop.
    """
    if control not in ("strain", "stress"):
        raise wrong("control", f"must be 'strain' or 'stress'; got {control!r}")
    eps = column("strain", "that was given", strain)
    sigma = column("stress", "that was given", stress)
    if eps.shape != sigma.shape:
        raise wrong("strain", f"has {len(eps)} rows, and stress {len(sigma)}; expected as many")
    signal, response = (eps, sigma) if control == "strain" else (sigma, eps)
    turns, found = reversals(signal), []
    for first, middle, last in zip(turns[:-2:2], turns[1::2], turns[2::2], strict=False):
        back, forth = np.abs(np.diff(signal[[first, middle, last]]))
        if last == turns[-1] and forth < _WHOLE * back:
            break
        part, loop = response[first : last + 1], np.stack([eps, sigma])[:, first : last + 1]
        if not np.isfinite(part).any():
            continue
        highest = first + int(np.nanargmax(part))
        lowest = first + int(np.nanargmin(part))
        high, low = float(response[highest]), float(response[lowest])
        x, y = loop[:, np.isfinite(loop).all(axis=0)]
        area = abs(float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2)))
        found.append(
            Cycle(
                int(first),
                int(last),
                highest,
                lowest,
                high,
                low,
                (high + low) / 2,
                (high - low) / 2,
                area,
            )
        )
    return found


def ratcheting(strain: ArrayLike, stress: ArrayLike) -> Array:
    """The ratcheting strain of each cycle of a stress-driven test: the mean of its extremes.

    Parameters
    ----------
    strain, stress : array (n,)
        A component of each over time.

    Returns
    -------
    array (cycles,)
        Mean strains; their differences are the ratcheting per cycle.
    """
    return np.array([cycle.mean for cycle in cycles(strain, stress, "stress")])
