"""What a fit says of uncertainty if rows count for nothing, or for several residuals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from neml2_capi import Model, examples, experiments
from neml2_capi.fit import Experiment, LogDensity, Parameter, Problem, profile

pytestmark = pytest.mark.numbers
pytest.importorskip("scipy.stats")

Array = NDArray[np.float64]
E = 200e3
STRAIN = np.linspace(0.0, 1e-3, 9)


@pytest.fixture(scope="module")
def elastic() -> Iterator[Model]:
    with Model(examples.path("elasticity")) as model:
        yield model


def noisy(strain: Array, seed: int = 1) -> Array:
    return E * strain + 4.0 * np.random.default_rng(seed).normal(size=len(strain))


@pytest.mark.parametrize("deviation", [None, 4.0])
@pytest.mark.parametrize("prior", [None, (190e3, 2e3)])
def test_rows_of_no_weight_count_for_nothing(elastic: Model, deviation: Any, prior: Any) -> None:
    start = {"E": Parameter(150e3, prior=prior)}
    first = Experiment.of("a", strain=STRAIN, stress=noisy(STRAIN), deviation=deviation)
    others = [
        Experiment.of(f"{n}", strain=2 * STRAIN, stress=0.7 * noisy(2 * STRAIN, n), weight=0.0)
        for n in range(3)
    ]
    alone, beside = Problem(elastic, [first], start), Problem(elastic, [first, *others], start)
    expected, found = alone.solve(), beside.solve()
    assert found.parameters == pytest.approx(expected.parameters, rel=1e-12)
    assert found.deviations == pytest.approx(expected.deviations, rel=1e-12)
    assert found.interval("E") == pytest.approx(expected.interval("E"), rel=1e-12)
    assert profile(found, "E").interval == pytest.approx(profile(expected, "E").interval)
    densities = [LogDensity(each, scatter=0.02)(each.space.start) for each in (alone, beside)]
    assert densities[1] == pytest.approx(densities[0], rel=1e-12)
    assert beside.solve("L-BFGS-B").deviations == pytest.approx(expected.deviations, rel=1e-3)


def test_a_model_that_fails_in_a_test_of_no_weight_costs_nothing() -> None:
    with Model(examples.path("isotropic_hardening")) as steel:
        times, strain = np.linspace(0, 10, 9), np.linspace(0, 6e-3, 9)
        stress = experiments.tension(steel, times, strain)["stress"][:, 0]
        options: dict[str, Any] = {"t": times, "strain": strain}
        first = Experiment.of("a", **options, stress=stress, deviation=1.0)
        other = Experiment.of("b", **options, stress=0.9 * stress, weight=0.0)
        problem = Problem(steel, [first, other], {"E": 2e5})
        assert problem.residuals(problem.space.start).shape == (9,)
        assert problem.residuals(np.array([np.inf])).shape == (9,)
