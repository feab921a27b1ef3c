"""Checks of units: measurements beside what the model does where the search begins."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from neml2_capi.driver.arguments import wrong
from neml2_capi.fit.experiment import Experiment

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
