"""Calibrate a viscoplastic model to tension tests: lateral strains are found, not assumed.

    python examples/calibrate_tension.py [ARTIFACT]

Three specimens are pulled at different rates, all stresses but xx vanish. Their stresses are made
up, by the model itself with known parameters; from a guess that is far off, least squares finds
these again. The Jacobian is exact: it runs through the lateral strains.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from neml2_capi import Model, Results, examples, experiments

Array = NDArray[np.float64]

TRUTH = {"E": 180e3, "yield_stress": 120.0}  # MPa
GUESS = {"E": 250e3, "yield_stress": 200.0}

RATES = np.array([1e-4, 1e-3, 1e-2])  # 1/s
STRETCH = np.linspace(0.0, 0.008, 21)


def pulled(model: Model, logarithms: Array) -> Results:
    """Tension tests of all specimens, with parameters by their logarithms."""
    return experiments.tension(
        model,
        STRETCH[:, np.newaxis] / RATES,
        np.broadcast_to(STRETCH[:, np.newaxis], (len(STRETCH), len(RATES))),
        parameters=dict(zip(TRUTH, np.exp(logarithms), strict=True)),
        derivatives=list(TRUTH),
    )


def main() -> None:
    model = Model(sys.argv[1] if sys.argv[1:] else examples.path("isotropic_hardening"))
    measured = pulled(model, np.log(list(TRUTH.values())))["stress"][..., 0]

    # Divided by a stress, so that tolerances mean what they say.
    def residual(logarithms: Array) -> Array:
        found: Array = pulled(model, logarithms)["stress"][..., 0] - measured
        return found.ravel() / 100.0

    def jacobian(logarithms: Array) -> Array:
        results = pulled(model, logarithms)
        columns = [results.derivative("stress", name)[..., 0].ravel() for name in TRUTH]
        return np.stack(columns, axis=1) * np.exp(logarithms) / 100.0

    found = least_squares(residual, np.log(list(GUESS.values())), jacobian, xtol=1e-12)
    print(f"{found.nfev} evaluations, {found.njev} Jacobians, cost {found.cost:.3e}")
    for name, value in zip(TRUTH, np.exp(found.x), strict=True):
        print(f"{name} = {value:.6f} MPa")
        assert abs(value - TRUTH[name]) < 1e-6 * TRUTH[name], f"not {TRUTH[name]}"


if __name__ == "__main__":
    main()
