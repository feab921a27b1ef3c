"""Tension tests of a fit run under the hypothesis of uniaxial stress: as by a control."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from neml2_capi import ConvergenceError, Model, drive, examples, experiments
from neml2_capi.fit import Experiment, Parameter, Problem, simulate

Array = NDArray[np.float64]
TIMES = np.linspace(0, 4, 41)
STRAIN = 0.006 * np.sin(2 * np.pi * TIMES / 4)
START: dict[str, Parameter | float] = {"E": Parameter(190e3, log=True), "yield_stress": 140.0}


@pytest.fixture
def steel() -> Model:
    return Model(examples.path("chaboche"))


def problem(model: Model, loss: str = "values") -> Problem:
    pulled = experiments.tension(Model(examples.path("chaboche")), TIMES, STRAIN)
    test = Experiment.of(
        "cycle", t=TIMES, strain=STRAIN, stress=pulled["stress"][:, 0], deviation=1.0, loss=loss
    )
    return Problem(model, [test], START)


@pytest.fixture
def controlled(monkeypatch: pytest.MonkeyPatch, steel: Model) -> Any:
    """Make problems whose strains are found by a control."""

    def make(loss: str = "values", model: Model = steel) -> Problem:
        with monkeypatch.context() as patch:
            patch.setattr(simulate, "under_uniaxial_stress", lambda *_: None)
            return problem(model, loss)

    return make


@pytest.mark.parametrize("loss", ["values", "curve", "peaks"])
@pytest.mark.parametrize("hypothesis", ["tridimensional", "uniaxial"])
def test_residuals_and_slopes_are_those_of_a_control(
    controlled: Any, loss: str, hypothesis: str
) -> None:
    one = problem(Model(examples.path("chaboche"), hypothesis=hypothesis), loss)
    other = controlled(loss)
    moved = one.space.start
    np.testing.assert_allclose(one.residuals(moved), other.residuals(moved), atol=1e-6)
    slopes = other.jacobian(moved)
    np.testing.assert_allclose(one.jacobian(moved), slopes, atol=1e-6 * np.abs(slopes).max())
    found, expected = one.loss(moved), other.loss(moved)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-7)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)


def test_options_that_are_set_later_count(steel: Model) -> None:
    task = problem(steel)
    steel.options["atol"] = steel.options["rtol"] = 1e-3
    loose = Model(examples.path("chaboche"))
    loose.options.update({"atol": 1e-3, "rtol": 1e-3})
    moved = 1.001 * task.space.start  # what was evaluated last is not evaluated again
    found = task.residuals(moved)
    np.testing.assert_array_equal(found, problem(loose).residuals(moved))
    exact = problem(Model(examples.path("chaboche"))).residuals(moved)
    assert 1e-6 < np.abs(found - exact).max() < 1.0


def test_a_law_without_the_hypothesis_is_controlled() -> None:
    """One that is a view already stays as it is."""
    turned = Model(examples.path("chaboche"), material_axes=True)
    assert simulate.under_uniaxial_stress(turned, "strain", "stress") is None
    assert simulate.under_uniaxial_stress(Model(examples.path("chaboche")), "t", "stress") is None


def test_a_step_that_the_hypothesis_cannot_make_is_controlled(
    steel: Model, controlled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, other = problem(steel), controlled()
    moved = 1.001 * task.space.start
    expected = other.residuals(moved)

    def fails(model: Model, *arguments: Any, **options: Any) -> Any:
        if options["control"] is None:
            raise ConvergenceError("as if")
        return drive(model, *arguments, **options)

    monkeypatch.setattr(simulate, "drive", fails)
    np.testing.assert_array_equal(task.residuals(moved), expected)
