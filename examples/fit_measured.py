"""Fit Chaboche's law to measured cycles of a steel, and compare with published constants.

    python examples/fit_measured.py aoti/chaboche example_1.csv example_2.csv

The artifact is the one of fit_316l.py, whose docstring compiles it. The measurements come with
RESSPyLab (https://github.com/AlbanoCastroSousa/RESSPyLab, folder examples): true strains and
stresses in MPa, in columns e_true and Sigma_true. Its notebook VC_Calibration_Example_1 has the
constants of its own fit, which are below. The loss is the one of that program: squares of
differences in stress, weighed by the strain passed, of each test in equal parts.
"""

from __future__ import annotations

import sys

import numpy as np

from neml2_capi import Model, experiments, fit

#: In MPa and as NEML2 has them, docs/calibration.md.
PUBLISHED = {
    "E": 185115.0,
    "yield_stress": 255.4,
    "R": 91.73,
    "d": 9.595,
    "C1": 17430.5,
    "g1": 157.28 * np.sqrt(2 / 3),
    "C2": 1762.0,
    "g2": 3.549 * np.sqrt(2 / 3),
}
STEP = 2e-4  # the largest strain of a step: the law is integrated by backward Euler


def measured(file: str) -> fit.Experiment:
    """Rows of a file, with others between them in which nothing was measured."""
    strain, stress = np.loadtxt(file, delimiter=",", skiprows=1, unpack=True)
    kept = np.append(True, (np.diff(strain) != 0) | (np.diff(stress) != 0))
    strain, stress = strain[kept], stress[kept]
    passed = np.abs(np.diff(strain))
    weight = (np.append(passed, 0.0) + np.append(0.0, passed)) / 2 / passed.sum()
    parts = np.maximum(1, np.ceil(passed / STEP)).astype(int)
    rows = np.append(0, np.cumsum(parts))
    found, deviation = np.full(rows[-1] + 1, np.nan), np.ones(rows[-1] + 1)
    found[rows] = np.where(weight > 0, stress, np.nan)
    deviation[rows] = 1 / np.sqrt(np.where(weight > 0, weight, 1.0))
    between = np.interp(np.arange(rows[-1] + 1), rows, strain)
    return fit.Experiment.of(file, strain=between, stress=found, rate=1e-3, deviation=deviation)


def main() -> None:
    model, tests = Model(sys.argv[1]), [measured(file) for file in sys.argv[2:]]
    model.set_parameter("reference_stress", 1.0)  # nearly independent of the rate
    model.set_parameter("exponent", 10.0)
    start = {"E": 200e3, "yield_stress": 355, "R": 50, "d": 5, "C1": 1e4, "g1": 100, "C2": 1e3}
    start["g2"] = 5
    guess = {name: fit.Parameter(x, x / 50, x * 50, log=True) for name, x in start.items()}
    found = fit.Problem(model, tests, guess).solve()
    print(found)
    for name, constants in (("fitted", found.parameters), ("published", PUBLISHED)):
        total = 0.0
        for test in tests:
            strain, stress = test.strain["xx"], test.stress["xx"]
            given = experiments.tension(model, test.t, strain, parameters=dict(constants))
            differences = (given["stress"][:, 0] - stress) / test.deviation
            total += np.nansum(np.square(differences))
        print(f"{name}: squares of {total:.1f} MPa^2")


if __name__ == "__main__":
    main()
