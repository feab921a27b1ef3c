"""What a fit says of uncertainty if rows count for nothing, or for several residuals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from slow import later

from neml2_capi import FatalError, Model, examples, experiments
from neml2_capi.fit import Experiment, LogDensity, Parameter, Problem, profile
from neml2_capi.fit.shared import spread

pytestmark = pytest.mark.numbers
pytest.importorskip("scipy.stats")

Array = NDArray[np.float64]
E = 200e3
STRAIN = np.linspace(0.0, 1e-3, 9)
#: A bar is pulled, pushed and pulled: four peaks of twenty-five rows.
CYCLED = 1e-3 * np.concatenate([np.linspace(0, 1, 7), np.linspace(1, -1, 13)[1:], np.arange(6) / 6])


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


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("strain", [STRAIN, CYCLED], ids=["pulled", "cycled"])
def test_a_row_that_two_losses_look_at_is_measured_once(
    elastic: Model, strain: Array, known: bool
) -> None:
    """Least squares with weights of 2 at peaks, of measurements that scatter alike."""
    stress, deviation = noisy(strain), 4.0 if known else None
    options: dict[str, Any] = {"strain": strain, "stress": stress, "deviation": deviation}
    test = Experiment.of("a", **options, loss=("values", "peaks"))
    found = Problem(elastic, [test], {"E": 150e3}).solve()
    weights = np.ones(len(strain))
    weights[test.reversals] = 2.0
    square = weights * strain @ strain
    value = weights * strain @ stress / square
    assert found.parameters["E"] == pytest.approx(value, rel=1e-8)
    # With the weights W and the projection P, squares have the mean tr((1 - P)' W (1 - P)).
    follows = np.outer(strain, weights * strain) / square
    left = np.eye(len(strain)) - follows
    whole = np.trace(left.T @ np.diag(weights) @ left)
    scatter = 4.0 if known else np.sqrt(weights @ np.square(stress - value * strain) / whole)
    expected = scatter * np.linalg.norm(weights * strain) / square
    assert found.deviations["E"] == pytest.approx(expected, rel=1e-6)
    assert profile(found, "E").interval == pytest.approx(found.interval("E"), rel=1e-6)
    assert found.directions[0].deviation == pytest.approx(expected / value, rel=1e-6)
    assert found.freedom == np.inf if known else len(strain) - 4 < found.freedom < len(strain) - 1


LOSSES = (
    *("curve", "ratcheting"),
    *(("values", "curve"), ("curve", "values", "peaks"), ("peaks", "ratcheting")),
)


@pytest.mark.parametrize("loss", later(LOSSES, LOSSES[2:], "fits for each measured value"))
def test_a_deviation_is_how_a_parameter_follows_each_measured_value(
    elastic: Model, loss: Any
) -> None:
    """By fits to stresses of which one is changed at a time; residuals are small."""
    step, deviation, weight = 2.0, 4.0, 4.0
    strain = CYCLED + 5e-4 * (np.arange(len(CYCLED)) > 0)

    def fitted(change: Array) -> Any:
        stress = E * strain + 0.1 * noisy(0 * strain) + change
        options: dict[str, Any] = {"strain": strain, "stress": stress, "deviation": deviation}
        test = Experiment.of("a", **options, loss=loss, weight=weight)
        return Problem(elastic, [test], {"E": 190e3}).solve(xtol=1e-14, ftol=1e-14)

    slopes = [
        (fitted(step * row).parameters["E"] - fitted(-step * row).parameters["E"]) / (2 * step)
        for row in np.eye(len(strain))
    ]
    # A test of weight 4 is one whose measured values scatter half as much.
    expected = deviation / np.sqrt(weight) * np.linalg.norm(slopes)
    found = fitted(np.zeros(len(strain)))
    # Points beyond the corners of a curve have distances that are not linear.
    within = 0.06 if "curve" in loss else 1e-6
    assert found.deviations["E"] == pytest.approx(float(expected), rel=within)


def test_a_scatter_of_residuals_in_closed_form() -> None:
    """Beside matrices of all residuals, with shared values, priors, and both."""
    random = np.random.default_rng(4)
    sparse = pytest.importorskip("scipy.sparse")
    for made_of in (np.eye(12), random.normal(size=(12, 7))):
        for prior in (np.zeros((0, 3)), random.normal(size=(2, 3))):
            data = random.normal(size=(12, 3))
            inverse = np.linalg.inv(data.T @ data + prior.T @ prior)
            left = np.eye(12) - data @ inverse @ data.T
            of_data = left @ made_of @ made_of.T @ left
            of_prior = data @ inverse @ prior.T @ prior @ inverse @ data.T
            both = of_data + of_prior
            mean = np.trace(both)
            expected = mean, mean**2 / np.trace(both @ both)
            assert spread(data, prior, sparse.csr_array(made_of)) == pytest.approx(expected)


def test_a_density_takes_each_row_once(elastic: Model) -> None:
    test = Experiment.of(
        "a", strain=STRAIN, stress=noisy(STRAIN), deviation=4.0, loss=("values", "peaks")
    )
    with pytest.raises(FatalError, match=r"problem has 'a' with the losses values, peaks: .* one"):
        LogDensity(Problem(elastic, [test], {"E": 150e3}))
