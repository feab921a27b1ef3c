"""A fit leaves parameters that its data do not see where they begin, and names them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from neml2_capi import Model, examples, experiments
from neml2_capi.fit import Experiment, Parameter, Problem, profile
from neml2_capi.fit.parameters import Space

pytestmark = pytest.mark.numbers
pytest.importorskip("scipy")

TIMES = np.linspace(0.0, 10.0, 31)
STRAIN = np.linspace(0.0, 6e-3, 31)


@pytest.fixture(scope="module")
def steel() -> Iterator[Model]:
    with Model(examples.path("isotropic_hardening")) as model:
        yield model


def pulled(model: Model, rows: Any = slice(None), *, label: int = 20, **options: Any) -> Experiment:
    """A tension test, measured at some rows only."""
    stress = np.full(31, np.nan)
    stress[rows] = experiments.tension(model, TIMES, STRAIN)["stress"][rows, 0] + 1.0
    given = {"deviation": 0.5, "labels": {"T": label}, **options}
    return Experiment.of(str(label), t=TIMES, strain=STRAIN, stress=stress, **given)


@pytest.mark.parametrize("method", ["least_squares", "L-BFGS-B"])
@pytest.mark.parametrize("rows", [[30], slice(None)], ids=["one row", "all rows"])
@pytest.mark.parametrize("starts", [1, 3])
def test_a_parameter_that_is_not_seen_stays(
    steel: Model, method: str, rows: Any, starts: int
) -> None:
    """One row does not tell E and the yield stress apart, either: steps lead anywhere."""
    tests = [pulled(steel, rows), pulled(steel, label=300, weight=0.0)]
    given = {"E": Parameter(19e4, log=True, per="T"), "yield_stress": Parameter(120.0)}
    found = Problem(steel, tests, given).solve(method, starts=starts, progress=False)
    assert found.parameters["E[300]"] == pytest.approx(19e4, rel=1e-12)
    assert found.deviations["E[300]"] == np.inf
    assert "E[300] is not seen by these data at all" in found.warnings
    together = [text for text in found.warnings if "together" in text]
    if rows == [30]:
        within = 1e-12 if method == "least_squares" else 0.02
        assert starts > 1 or found.parameters["E[20]"] == pytest.approx(19e4, rel=within)
        assert together[0].startswith("E[20] and yield_stress are seen together only: E[20] by ")
        assert together[0].endswith(" changes nothing") and "+100 %" in together[0]
    else:
        assert not together
    is_seen = np.isfinite(list(found.deviations.values()))
    assert list(is_seen) == ([False] * 3 if together else [True, False, True])
    np.testing.assert_array_equal(np.isfinite(found.correlation), np.outer(is_seen, is_seen))
    np.testing.assert_array_equal(np.diag(found.covariance)[~is_seen], np.inf)
    assert profile(found, "E[300]", points=2).interval == (-np.inf, np.inf)
    low, high = found.interval("E[300]")
    assert (low, high) == (0.0, np.inf)


def test_nothing_is_seen_of_an_unstrained_test(steel: Model) -> None:
    test = Experiment.of("rest", t=TIMES, strain=0 * STRAIN, stress=0 * STRAIN, deviation=1.0)
    found = Problem(steel, [test], {"E": 19e4, "yield_stress": 120.0}).solve(progress=False)
    assert found.parameters == {"E": 19e4, "yield_stress": 120.0}
    assert found.success and "no parameter changes any residual" in str(found)
    assert {str(each) for each in found.unseen} == {
        f"{name} is not seen by these data at all" for name in ("E", "yield_stress")
    }


def test_a_parameter_that_is_seen_later_is_found(steel: Model) -> None:
    """A test that is elastic where the search begins, and yields where its modulus is right."""
    constants = {"yield_stress": 396.0}
    strain = STRAIN / 3
    stress = experiments.tension(steel, TIMES, strain, parameters=constants)["stress"][:, 0]
    test = Experiment.of("late", t=TIMES, strain=strain, stress=stress, deviation=0.5)
    scales: list[Any] = ["jac", 1.0, [2.0, 1.0]]
    for scale in scales:
        problem = Problem(steel, [test], {"E": 15e4, "yield_stress": 397.0})
        assert not problem.jacobian(problem.space.start)[:, 1].any()
        found = problem.solve(progress=False, x_scale=scale)
        assert found.parameters["yield_stress"] == pytest.approx(396.0, rel=1e-5)
        assert found.parameters["E"] == pytest.approx(2e5, rel=1e-5)


def test_what_depends_on_a_parameter_at_its_bound_is_moved(steel: Model) -> None:
    """One row does not tell E from the yield stress, unless that is not to be so high."""
    given = {"E": Parameter(19e4, 1e5, 4e5), "yield_stress": Parameter(120.0, 50.0, 150.5)}
    found = Problem(steel, [pulled(steel, [30])], given).solve(progress=False)
    assert found.cost < 1e-9
    assert found.parameters["yield_stress"] == pytest.approx(150.5, rel=1e-4)
    assert 2.1e5 < found.parameters["E"] < 2.7e5


def test_a_parameter_stays_where_it_ceased_to_be_seen_if_data_ask_for_it(steel: Model) -> None:
    """A test that is elastic, beside a yield stress that begins too low."""
    test = Experiment.of("elastic", t=TIMES, strain=STRAIN / 20, stress=1e4 * STRAIN, deviation=0.5)
    found = Problem(steel, [test], {"E": 2e5, "yield_stress": 30.0}).solve(progress=False)
    assert found.parameters["yield_stress"] > 59.0
    assert found.cost < 1e-9
    assert "yield_stress is not seen by these data at all" in found.warnings


def test_values_keep_their_bounds_and_stay_positive() -> None:
    """Round-off of logarithms and scales leads beyond bounds, and a file would not be read."""
    for value in np.random.default_rng(0).uniform(0.1, 9.0, 200).tolist():
        for bounded in (
            Parameter(value, upper=value, log=True),
            Parameter(value, lower=value, log=True),
            Parameter(value / 3, upper=value),
        ):
            space = Space({"a": bounded}, [])
            moved = np.clip(space.start + 2.0, *space.bounds)
            if bounded.lower == value:
                moved = space.start
            assert bounded.lower <= space.outside(moved)[0][0] <= bounded.upper
    space = Space({"a": Parameter(2.0, log=True, prior=(2.0, 1.0))}, [])
    values, chain = space.outside(np.array([-849.6]))
    assert values[0] > 0 and chain[0, 0] > 0
    assert np.isfinite(space.priors(values)[0]).all()


def test_what_stays_is_written(steel: Model) -> None:
    tests = [pulled(steel, [30], label=300, weight=0.0), pulled(steel)]
    given = {"E": Parameter(19e4, log=True, per="T"), "yield_stress": Parameter(120.0)}
    found = Problem(steel, tests, given).solve(progress=False)
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    written = tomllib.loads(found.to_toml())["parameters"]
    assert math.isclose(written["E"]["value"], 19e4)
    assert {name: Parameter(**each) for name, each in written.items()}.keys() == given.keys()


def test_data_whose_scatter_is_not_known_see_nothing_for_sure(steel: Model) -> None:
    """A prior is all that is known: a profile of it divided nothing by nothing."""
    test = pulled(steel, [30], deviation=None)
    given = {"E": Parameter(19e4, prior=(19e4, 1e3)), "yield_stress": Parameter(120.0)}
    found = Problem(steel, [test], given).solve(progress=False)
    assert not math.isfinite(found.scatter)
    told = sorted(str(each) for each in found.unseen)
    assert told[0].startswith("E and yield_stress are seen together only: E by ")
    assert told[1].startswith("nothing tells how well these data see yield_stress, since")
    assert found.deviations == {"E": pytest.approx(1e3), "yield_stress": np.inf}
    for name in given:
        assert profile(found, name, points=2).interval == (-np.inf, np.inf)


def elastic_at_first(model: Model) -> Problem:
    """The yield stress is not seen where the search begins."""
    given = {"E": Parameter(2e4, 1e3, 5e5), "yield_stress": Parameter(140.0, 50.0, 400.0)}
    return Problem(model, [pulled(model)], given)


@pytest.mark.parametrize("most", [3, 6, 9])
def test_the_most_evaluations_are_of_all_searches(steel: Model, most: int) -> None:
    found = elastic_at_first(steel).solve(max_nfev=most, progress=False)
    assert not found.success
    assert found.evaluations <= most + 2  # where it begins, and what is told of its end


def test_a_callback_sees_all_parameters_and_ends_the_fit(steel: Model) -> None:
    seen: list[Any] = []

    def look(x: Any) -> None:
        seen.append(np.shape(x))
        if len(seen) == 3:
            raise StopIteration

    def look_at_result(intermediate_result: Any) -> None:
        look(intermediate_result.x)

    for callback in (look, look_at_result):
        seen.clear()
        found = elastic_at_first(steel).solve(callback=callback, progress=False)
        assert seen == [(2,)] * 3 and not found.success
