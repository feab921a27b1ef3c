"""Checks of units: measurements beside what the model does where the search begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import ConvergenceError
from neml2_capi.driver.arguments import wrong
from neml2_capi.fit.experiment import Experiment
from neml2_capi.fit.simulate import Simulated, Simulator

if TYPE_CHECKING:
    from neml2_capi.fit.terms import Terms
    from neml2_capi.model import Model

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
#: Distances of a model's curve from the measured one: units are right below the first; below the
#: second, another unit may be, if its distance is smaller by the third at least.
_RIGHT, _NEAR, _NEARER = 0.15, 0.35, 1.5
#: The cosine between measured and modelled values beyond which one of them has the wrong sign.
_OPPOSITE = 0.8
#: The least square of a factor of residuals; the greatest sum of squares is its inverse.
_LEAST_SQUARE = 1e-290
#: Fewer measured rows than these have no shape.
_ROWS = 5


def check_deviations(experiments: Sequence[Experiment]) -> None:
    """Raise if residuals of some tests are in deviations, and of others in greatest values.

    Parameters
    ----------
    experiments
        Tests; what has no weight is left out.

    Raises
    ------
    FatalError
        Some have a `deviation`, and others have none.
    """
    known, unknown = (
        [each.name for each in experiments if each.weight and (each.deviation is None) == without]
        for without in (False, True)
    )
    if known and unknown:
        raise wrong(
            "experiments",
            f"have a deviation in {', '.join(map(repr, known))}, and none in "
            f"{', '.join(map(repr, unknown))}: residuals of the first would be in deviations, of "
            "the others in parts of the greatest value, and hardly count. Give each a deviation, "
            "or none, and weights if some tests are surer than others",
        )


def check_counts(experiments: Sequence[Experiment], sizes: Sequence[int]) -> None:
    """Raise if a test has no residuals though it has a weight.

    Parameters
    ----------
    experiments, sizes
        Tests, and how many residuals each has.

    Raises
    ------
    FatalError
        Nothing was measured at the rows that a loss looks at, or no test has a weight.
    """
    if not any(each.weight for each in experiments):
        raise wrong("experiments", "have no weight: give one of them a weight above 0")
    for experiment, size in zip(experiments, sizes, strict=True):
        if size or not experiment.weight:
            continue
        said = ", ".join(repr(each) for each in experiment.loss)
        what = f"and no {experiment.seen} was measured at any row"
        if "peaks" in experiment.loss:
            times = ", ".join(f"{t:g}" for t in experiment.t[experiment.reversals])
            what = f"and no {experiment.seen} was measured at the reversals, t = {times}"
        elif experiment.loss == ("ratcheting",):
            what = "and the test has no whole cycle"
        other = "" if experiment.loss == ("values",) else "Say loss = 'values', or leave"
        raise wrong(
            "experiments",
            f"have {experiment.name!r}, in which nothing is left to fit: its loss is {said}, "
            f"{what}. {other or 'Leave'} the test out",
        )


def check_sizes(experiments: Sequence[Experiment], parts: Sequence[Terms | None]) -> None:
    """Raise if squares of residuals, or of their derivatives, are no numbers of floating point.

    Parameters
    ----------
    experiments, parts
        Tests, and the residuals of each; None if the model failed.

    Raises
    ------
    FatalError
        A deviation, a weight or what was measured is too large, or too small.
    """
    for experiment, part in zip(experiments, parts, strict=True):
        if part is None or not part.residuals.size:
            continue
        factors = np.array([np.abs(each).max(initial=0.0) for each in part.weights.values()])
        with np.errstate(all="ignore"):
            squares = np.square(factors)
            total = np.square(part.residuals).sum() + squares.sum()
        if 0 < total <= 1 / _LEAST_SQUARE and np.all((squares > _LEAST_SQUARE) | (factors == 0)):
            continue
        measured = max(float(np.nanmax(np.abs(v))) for v in experiment.measured.values())
        known = experiment.deviation is not None
        scatter = f"the deviation {np.min(experiment.deviation):g}" if known else "no deviation"
        raise wrong(
            "experiments",
            f"have {experiment.name!r}, for which squares of residuals are beyond numbers of "
            f"floating point: its {experiment.seen} goes to {measured:g}, with {scatter} and the "
            f"weight {experiment.weight:g}. Correct the one that is wrong",
        )


def check_start(
    model: Model,
    names: tuple[str, str],
    experiments: Sequence[Experiment],
    parameters: Sequence[Mapping[str, float]],
    simulated: Sequence[Simulated],
) -> None:
    """Raise if the model fails where a search begins, or if units seem to differ.

    Parameters
    ----------
    model, names
        The model, and its strain and stress.
    experiments, parameters, simulated
        Tests, the values that a search begins with in each, and what the model gave with them.

    Raises
    ------
    FatalError
        What was measured or prescribed seems to be in another unit than the model's.
    ConvergenceError
        The model does not converge.
    """
    for experiment, values, found in zip(experiments, parameters, simulated, strict=True):
        _check_strains(model, names, experiment, values, found)
        if found.failure:
            raise ConvergenceError(
                f"the model does not converge where the search begins, in {experiment.name!r}: "
                f"{found.failure}. Begin with other parameters"
            )
        _check_units(experiment, found.curves)


def _check_units(experiment: Experiment, curves: Mapping[str, Array]) -> None:
    """FatalError if what was measured seems to be in another unit than the model's."""
    kind = experiment.seen
    for part, values in experiment.measured.items():
        seen = np.isfinite(values)
        measured = float(np.abs(values[seen]).max(initial=0.0))
        curve = curves[f"{kind}.{part}"][seen]
        modelled = float(np.abs(curve).max(initial=0.0))
        if measured == 0 or modelled == 0:
            continue
        product = float(values[seen] @ curve)
        sizes = np.linalg.norm(values[seen]) * np.linalg.norm(curve)
        if seen.sum() >= _ROWS and product < -_OPPOSITE * sizes:
            raise wrong(
                kind,
                f"{part} of {experiment.name!r} has the sign opposite to the model's, in which "
                "tension is above 0. Multiply it by -1, or what was prescribed",
            )
        for ratio, (unit, expected, remedy) in _MISTAKES[kind].items():
            if 1 / _WITHIN < measured / modelled / ratio < _WITHIN:
                raise wrong(
                    kind,
                    f"of {experiment.name!r} goes to {measured:.4g}, and to {modelled:.4g} "
                    f"in the model where the search begins: it seems to be in {unit}, and the "
                    f'model in {expected}. Say units = {{{kind} = "{unit}"}}, or {remedy}; if it '
                    "is right, begin with other parameters",
                )


def _check_strains(
    model: Model,
    names: tuple[str, str],
    experiment: Experiment,
    parameters: Mapping[str, float],
    found: Simulated,
) -> None:
    """FatalError if prescribed strains seem to be in percent, permille or microstrain.

    That is so if the model's curve under strains that are smaller by the unit has the shape which
    was measured, and its curve under the strains as they are has not.
    """
    if experiment.control != "strain" or (misfit := _misfit(experiment, found)) < _RIGHT:
        return
    for unit, factor in _STRAINS.items():
        strain = {part: factor * values for part, values in experiment.strain.items()}
        simulator = Simulator(model, [replace(experiment, strain=strain)], names)
        smaller = _misfit(experiment, simulator.run([parameters], None)[0])
        if smaller < _NEAR and _NEARER * smaller < misfit:
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
    if np.count_nonzero(measured) < _ROWS:
        return 0.0
    if not modelled.any():
        return np.inf
    scale = np.clip(measured @ modelled / (modelled @ modelled), 1 / 3, 3)
    return float(np.linalg.norm(scale * modelled - measured) / np.linalg.norm(measured))
