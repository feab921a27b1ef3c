"""What a fit says of uncertainty, against closed forms of a linear law and repeated experiments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from neml2_capi import FatalError, Model, UnknownNameError, examples, experiments
from neml2_capi.fit import Experiment, Fit, LogDensity, Parameter, Problem, profile

pytestmark = pytest.mark.numbers
stats = pytest.importorskip("scipy.stats")

Array = NDArray[np.float64]
E = 200e3
STRAIN = np.linspace(0.0, 1e-3, 9)


@pytest.fixture(scope="module")
def elastic() -> Iterator[Model]:
    with Model(examples.path("elasticity")) as model:
        yield model


def noisy(seed: int = 1, noise: float = 4.0) -> Array:
    return E * STRAIN + noise * np.random.default_rng(seed).normal(size=len(STRAIN))


def problem(model: Model, stress: Array, modulus: Any = 150e3, **options: Any) -> Problem:
    test = Experiment.of("pulled", strain=STRAIN, stress=stress, **options)
    return Problem(model, [test], {"E": modulus})


def slope(stress: Array) -> tuple[float, float, float]:
    """The modulus by least squares, the scatter of stresses, and the modulus' deviation."""
    found = float(STRAIN @ stress / (STRAIN @ STRAIN))
    scatter = float(np.sqrt(np.square(stress - found * STRAIN).sum() / (len(stress) - 1)))
    return found, scatter, scatter / float(np.sqrt(STRAIN @ STRAIN))


def test_a_scatter_that_was_found_gives_intervals_of_student(elastic: Model) -> None:
    stress = noisy()
    value, scatter, deviation = slope(stress)
    found = problem(elastic, stress).solve()
    assert found.parameters["E"] == pytest.approx(value, rel=1e-8)
    assert found.scatter * np.abs(stress).max() == pytest.approx(scatter, rel=1e-6)
    assert found.deviations["E"] == pytest.approx(deviation, rel=1e-6)
    assert found.freedom == pytest.approx(len(STRAIN) - 1)
    wide = stats.t.ppf(0.995, len(STRAIN) - 1) * deviation
    assert found.interval("E", 0.99) == pytest.approx((value - wide, value + wide), rel=1e-7)
    # The loss of a linear law is a parabola: its profile is the interval.
    held = profile(found, "E").interval
    assert held == pytest.approx(found.interval("E"), rel=1e-6)


def test_a_deviation_that_is_known_gives_normal_intervals(elastic: Model) -> None:
    stress = noisy()
    value, _, _ = slope(stress)
    wide = stats.norm.ppf(0.975) * 4.0 / np.sqrt(STRAIN @ STRAIN)
    found = problem(elastic, stress, deviation=4.0).solve()
    assert found.interval("E") == pytest.approx((value - wide, value + wide), rel=1e-7)
    assert profile(found, "E").interval == pytest.approx(found.interval("E"), rel=1e-6)
    # By the logarithm, the factor up is the factor down.
    logged = problem(elastic, stress, Parameter(150e3, log=True), deviation=4.0).solve()
    low, high = logged.interval("E")
    assert low * high == pytest.approx(value**2, rel=1e-7)
    assert np.log(high / low) / 2 == pytest.approx(wide / value, rel=1e-6)
    with pytest.raises(UnknownNameError, match="unknown parameter 'nu'"):
        found.interval("nu")
    with pytest.raises(FatalError, match="level must be between 0 and 1"):
        found.interval("E", 95)


def test_a_prior_counts_beside_the_scatter_of_the_data(elastic: Model) -> None:
    """A normal prior and normal data: the precisions add up, and so do the means they weigh."""
    stress = noisy()
    by_data, _, _ = slope(stress)
    mean, width = 190e3, 2e3

    def expected(scatter: float) -> tuple[float, float]:
        precisions = np.array([STRAIN @ STRAIN / scatter**2, 1 / width**2])
        value = precisions @ [by_data, mean] / precisions.sum()
        return value, 1 / np.sqrt(precisions.sum())

    prior = Parameter(150e3, prior=(mean, width))
    known = problem(elastic, stress, prior, deviation=4.0).solve()
    value, deviation = expected(4.0)
    assert known.parameters["E"] == pytest.approx(value, rel=1e-8)
    assert known.deviations["E"] == pytest.approx(deviation, rel=1e-6)

    for method in ("least_squares", "L-BFGS-B"):
        exact = {"options": {"ftol": 1e-15, "gtol": 1e-12}}
        options: dict[str, Any] = {} if method == "least_squares" else exact
        found = problem(elastic, stress, prior).solve(method, **options)
        scatter = found.scatter * float(np.abs(stress).max())
        residuals = stress - found.parameters["E"] * STRAIN
        value, deviation = expected(scatter)
        by_data_alone = scatter**2 / (STRAIN @ STRAIN)  # the share of one parameter that data tell
        rows = len(STRAIN) - deviation**2 / by_data_alone
        assert scatter**2 == pytest.approx(residuals @ residuals / rows, rel=1e-3)
        within = 2e-7 if method == "least_squares" else 1e-5
        assert found.parameters["E"] == pytest.approx(value, rel=within)
        assert found.deviations["E"] == pytest.approx(deviation, rel=1e-4)
        held = profile(found, "E").interval
        assert held == pytest.approx(found.interval("E"), rel=1e-4)
    assert abs(by_data - mean) > 2 * deviation  # or nothing would be weighed


def test_a_log_density_weighs_priors_as_they_are_given(elastic: Model) -> None:
    stress = noisy()
    largest = float(np.abs(stress).max())
    given = Parameter(150e3, prior=(190e3, 2e3))
    density = LogDensity(problem(elastic, stress, given), scatter=4.0 / largest)

    def expected(modulus: float) -> float:
        data = np.square((modulus * STRAIN - stress) / 4.0).sum() / 2
        return float(-data - ((modulus - 190e3) / 2e3) ** 2 / 2)

    start = density.problem.space.start
    moduli = 150e3, 180e3
    values = [density(start * modulus / 150e3) for modulus in moduli]
    assert values[1] - values[0] == pytest.approx(expected(moduli[1]) - expected(moduli[0]))
    _, gradient = density.value_and_gradient(start)
    slope = (expected(150e3 * 1.0001) - expected(150e3 * 0.9999)) / 0.0002
    assert gradient[0] == pytest.approx(slope, rel=1e-6)


def test_a_prior_of_an_ordered_parameter_is_one_of_its_value() -> None:
    """The density over what is moved has the volume that a step takes of it."""
    with Model(examples.path("chaboche")) as model:
        strain = 1e-3 * np.sin(np.linspace(0, 6, 13))
        test = Experiment.of("cycle", t=np.arange(13.0), strain=strain, stress=200e3 * strain)
        names = list(model.parameters.names)
        less, greater = sorted(names, key=lambda name: float(model[name]))
        given = {
            less: Parameter(float(model[less])),
            greater: Parameter(float(model[greater]), prior=(float(model[greater]), 1e3)),
        }
        ordered = Problem(model, [test], given, ordered=[(less, greater)])
        plain = Problem(model, [test], given)
        densities = LogDensity(ordered, 1.0), LogDensity(plain, 1.0)
        start = ordered.space.start
        found = []
        for step in (0.0, 1e-3):
            moved = start + np.array([0.0, step])
            values, chain = ordered.space.outside(moved)
            volume = np.log(abs(np.linalg.det(chain)))
            found.append(densities[0](moved) - densities[1](plain.space.inside(values)) - volume)
        assert found[0] == pytest.approx(found[1], abs=1e-9)
        ahead, behind = (densities[0](start + np.array([0.0, s])) for s in (1e-6, -1e-6))
        _, gradient = densities[0].value_and_gradient(start)
        assert gradient[1] == pytest.approx((ahead - behind) / 2e-6, rel=1e-6)


def test_methods_and_priors_that_cannot_be_are_named(elastic: Model) -> None:
    task = problem(elastic, noisy())
    for method in ("foo", 3):
        with pytest.raises(FatalError, match=f"method is {method!r}; expected 'least_squares'"):
            task.solve(method)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="unknown option of scipy"):
        task.solve(jac="2-point")
    with pytest.raises(FatalError, match="seed must be a whole number, 0 at least; got -1"):
        task.solve(seed=-1)
    with pytest.raises(FatalError, match="scatter must be a finite number above 0; got 0"):
        LogDensity(task, 0.0)
    with pytest.raises(FatalError, match=r"has the shape \(3,\); expected \(1,\), of E"):
        LogDensity(task, 1.0)(np.ones(3))
    with pytest.raises(FatalError, match="E is 'x'; expected a number, or a Parameter"):
        problem(elastic, noisy(), "x")
    with pytest.raises(FatalError, match="must be a list of Experiment"):
        Problem(elastic, task.experiments[0], {"E": 1.0})  # type: ignore[arg-type]
    with pytest.raises(FatalError, match="loss of 'pulled' is empty"):
        problem(elastic, noisy(), loss=())
    with pytest.raises(FatalError, match="E is moved by its logarithm, and its prior has the mean"):
        problem(elastic, noisy(), Parameter(1.0, log=True, prior=(-1.0, 1.0)))


@pytest.mark.everything("several hundred fits")
@pytest.mark.parametrize("loss", ["values", "curve", ("values", "curve"), ("values", "peaks")])
@pytest.mark.parametrize("known", [True, False])
def test_intervals_hold_true_values_as_often_as_they_say(known: bool, loss: Any) -> None:
    """Of two parameters each, within what a binomial distribution leaves to chance."""
    truth, repetitions = {"E": 180e3, "yield_stress": 120.0}, 400
    times = np.linspace(0.0, 10.0, 17)
    strain, random = 0.006 * times / 10, np.random.default_rng(0)
    start = {"E": Parameter(220e3, log=True), "yield_stress": Parameter(150.0, 50.0, 400.0)}
    with Model(examples.path("isotropic_hardening")) as steel:
        clean = experiments.tension(steel, times, strain, parameters=truth)["stress"][:, 0]
        noise = 0.01 * np.abs(clean).max()

        def fitted() -> Fit:
            stress = clean + noise * random.normal(size=len(times))
            scatter = noise if known else None
            options = {"deviation": scatter, "loss": loss}
            test = Experiment.of("n", t=times, strain=strain, stress=stress, **options)
            return Problem(steel, [test], start).solve()

        inside = dict.fromkeys(truth, 0)
        for _ in range(repetitions):
            found = fitted()
            for name, value in truth.items():
                low, high = found.interval(name)
                inside[name] += low < value < high
    least, most = stats.binom.interval(0.9999, repetitions, 0.95)
    for name, count in inside.items():
        assert least <= count <= most, (name, count)


def test_a_bound_where_a_fit_ends_is_told(elastic: Model) -> None:
    found = problem(elastic, noisy(), Parameter(250e3, 220e3, 300e3)).solve(progress=False)
    assert found.parameters["E"] == pytest.approx(220e3)
    assert "E is at its bound 220000; deviations are as if it might go beyond" in str(found)
    assert "bound" not in str(problem(elastic, noisy()).solve(progress=False))


def test_a_parameter_that_ends_at_a_bound_of_zero_is_seen() -> None:
    """One method ends at 1e-18, the other at 0: the data see it alike."""
    model = Model(examples.path("isotropic_hardening"))
    times, strain = np.linspace(0.0, 10.0, 31), np.linspace(0.0, 6e-3, 31)
    constants = {"E": 180e3, "yield_stress": 3.0}
    stress = experiments.tension(model, times, strain, parameters=constants)["stress"][:, 0]
    test = Experiment.of("a", t=times, strain=strain, stress=0.9 * stress, deviation=0.5)
    wanted = {"E": Parameter(180e3), "yield_stress": Parameter(20.0, 0.0, 400.0)}
    fits = [
        Problem(model, [test], wanted).solve(m, progress=False)
        for m in ("least_squares", "L-BFGS-B")
    ]
    for found in fits:
        assert found.parameters["yield_stress"] == pytest.approx(0.0, abs=1e-9)
        assert found.deviations == pytest.approx(fits[0].deviations, rel=1e-3)
        assert found.deviations["yield_stress"] < 1.0 and not found.unseen
        assert "yield_stress is at its bound 0;" in str(found)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("rows", [1, 2])
def test_as_many_parameters_as_values_tell_no_scatter(rows: int, known: bool) -> None:
    """One value does not tell two parameters, and two do not tell how they scatter."""
    model = Model(examples.path("isotropic_hardening"))
    times, strain = np.linspace(0.0, 10.0, 31), np.linspace(0.0, 6e-3, 31)
    stress = experiments.tension(model, times, strain)["stress"][:, 0] + 1.0
    stress[np.isin(np.arange(31), (4, 30)[-rows:], invert=True)] = np.nan
    deviation = 0.5 if known else None
    test = Experiment.of("a", t=times, strain=strain, stress=stress, deviation=deviation)
    found = Problem(model, [test], {"E": 1.9e5, "yield_stress": 120.0}).solve(progress=False)
    seen = known and rows == 2
    assert np.isfinite(list(found.deviations.values())).all() == seen
    assert np.isfinite(found.interval("E")).all() == seen
    assert len(found.unseen) == (0 if seen else 1 if known else 2)
    assert ("give the experiments a `deviation`" in str(found)) == (not known)
