"""Calibrate a viscoplastic model to tension tests: lateral strains are found, not assumed.

    python examples/calibrate_tension.py [ARTIFACT]

Three specimens are pulled at different rates, all stresses but xx vanish. Their stresses are made
up, by the model itself with known parameters; from a guess that is far off, least squares finds
these again. What is driven carries no gradients: the Jacobian is of differences, and all perturbed
sets of parameters are points of one drive, which costs hardly more than one of them.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from neml2_capi import Model, examples, experiments

Array = NDArray[np.float64]

TRUTH = {"E": 180e3, "yield_stress": 120.0}  # MPa
GUESS = {"E": 250e3, "yield_stress": 200.0}

RATES = np.array([1e-4, 1e-3, 1e-2])  # 1/s
STRETCH = np.linspace(0.0, 0.008, 21)
#: Of a logarithm: differences of results that are exact to 1e-9.
DIFFERENCE = 1e-5


def pulled(model: Model, logarithms: Array) -> Array:
    """[set, step, specimen] stresses xx in MPa, of parameters [set, 2] by their logarithms."""
    sets = np.exp(logarithms)[:, np.newaxis]  # against the specimens
    results = experiments.tension(
        model,
        STRETCH[:, np.newaxis] / RATES,
        np.broadcast_to(STRETCH[:, np.newaxis, np.newaxis], (len(STRETCH), 1, len(RATES))),
        parameters={name: sets[..., place] for place, name in enumerate(TRUTH)},
    )
    stress: Array = np.moveaxis(results["stress"][..., 0], 1, 0)
    return stress


def main() -> None:
    model = Model(sys.argv[1] if sys.argv[1:] else examples.path("isotropic_hardening"))
    measured = pulled(model, np.log([list(TRUTH.values())]))[0]

    # Divided by a stress, so that tolerances mean what they say.
    def residual(logarithms: Array) -> Array:
        missing: Array = (pulled(model, logarithms[np.newaxis])[0] - measured).ravel() / 100.0
        return missing

    def jacobian(logarithms: Array) -> Array:
        """Central differences: 2 sets for each parameter, in one drive."""
        steps = DIFFERENCE * np.eye(len(TRUTH))
        found = pulled(model, logarithms + np.concatenate([steps, -steps]))
        change = (found[: len(TRUTH)] - found[len(TRUTH) :]).reshape(len(TRUTH), -1)
        slopes: Array = change.T / (2 * DIFFERENCE) / 100.0
        return slopes

    found = least_squares(residual, np.log(list(GUESS.values())), jacobian, xtol=1e-12)
    print(f"{found.nfev} evaluations, {found.njev} Jacobians, cost {found.cost:.3e}")
    for name, value in zip(TRUTH, np.exp(found.x), strict=True):
        print(f"{name} = {value:.6f} MPa")
        assert abs(value - TRUTH[name]) < 1e-6 * TRUTH[name], f"not {TRUTH[name]}"


if __name__ == "__main__":
    main()
