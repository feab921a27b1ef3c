"""Checks of units: measurements beside what the model does where the search begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from neml2_capi.driver.arguments import wrong
from neml2_capi.fit.experiment import Experiment
from neml2_capi.fit.simulate import Simulated

Array = NDArray[np.float64]

#: By what measurements may differ from the model's, and are still in its unit.
_WITHIN = 8.0
#: By quantity: what the ratio of measured to modelled values means.
_MISTAKES = {
    "stress": {
        1e-3: ("GPa", "MPa", "multiply it by 1000"),
        1e3: ("kPa", "MPa", "divide it by 1000"),
        1e6: ("Pa", "MPa", "divide it by 1e6"),
    },
    "strain": {1e2: ("%", "1", "divide it by 100"), 1e6: ("microstrain", "1", "divide it by 1e6")},
}
#: Units in which prescribed strains may be by mistake.
_STRAINS = {"%": 1e-2, "permille": 1e-3, "microstrain": 1e-6}
#: A model's curve that differs by less from the measured one is right, and by how much it may differ
#: under the right unit, and how much less that has to be than under the wrong one.
_RIGHT, _NEAR, _NEARER = 0.15, 0.35, 1.5
#: Fewer measured rows than these have no shape.
_ROWS = 5


def check_units(experiment: Experiment, curves: Mapping[str, Array]) -> None:
    """FatalError if what was measured seems to be in another unit than the model's."""
    kind = experiment.seen
    for part, values in experiment.measured.items():
        seen = np.isfinite(values)
        measured = float(np.abs(values[seen]).max(initial=0.0))
        modelled = float(np.abs(curves[f"{kind}.{part}"][seen]).max(initial=0.0))
        if measured == 0 or modelled == 0:
            continue
        for ratio, (unit, expected, remedy) in _MISTAKES[kind].items():
            if 1 / _WITHIN < measured / modelled / ratio < _WITHIN:
                raise wrong(
                    kind,
                    f"of {experiment.name!r} goes to {measured:.4g}, and to {modelled:.4g} "
                    f"in the model where the search begins: it seems to be in {unit}, and the "
                    f'model in {expected}. Say units = {{{kind} = "{unit}"}}, or {remedy}; if it '
                    "is right, begin with other parameters",
                )


def check_strains(
    experiment: Experiment, found: Simulated, simulated: Callable[[Experiment], Simulated]
) -> None:
    """FatalError if prescribed strains seem to be in percent, permille or microstrain.

    That is so if the model's curve under strains that are smaller by the unit has the shape which
    was measured, and its curve under the strains as they are has not.
    """
    if experiment.control != "strain" or _misfit(experiment, found) < _RIGHT:
        return
    for unit, factor in _STRAINS.items():
        strain = {part: factor * values for part, values in experiment.strain.items()}
        smaller = _misfit(experiment, simulated(replace(experiment, strain=strain)))
        if smaller < _NEAR and _NEARER * smaller < _misfit(experiment, found):
            largest = max(float(np.abs(values).max()) for values in experiment.strain.values())
            raise wrong(
                "strain",
                f"of {experiment.name!r} goes to {largest:g}, and the model's stress is nearer to "
                f"what was measured under {factor * largest:g}: it seems to be in {unit}. Say "
                f'units = {{strain = "{unit}"}}, or divide it by {1 / factor:g}; if it is right, '
                "begin with other parameters",
            )


def _misfit(experiment: Experiment, found: Simulated) -> float:
    """The distance of a model's curve from the measured one, over the size of that.

    The model may be wrong by a factor of up to 3: the search has only begun.
    """
    if found.failure:
        return np.inf
    pairs = []
    for part, values in experiment.measured.items():
        seen = np.isfinite(values)
        pairs.append((values[seen], found.curves[f"{experiment.seen}.{part}"][seen]))
    measured, modelled = (np.concatenate(each) for each in zip(*pairs, strict=True))
    if np.count_nonzero(measured) < _ROWS or not modelled.any():
        return 0.0 if np.count_nonzero(measured) < _ROWS else np.inf
    scale = np.clip(measured @ modelled / (modelled @ modelled), 1 / 3, 3)
    return float(np.linalg.norm(scale * modelled - measured) / np.linalg.norm(measured))
