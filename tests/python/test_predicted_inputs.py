"""Models load, run and differentiate by inputs that only a predictor or a substep reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from slow import later
from states import state_of

from neml2_capi import FatalError, Model, UnknownNameError

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]


def creep(inputs: Mapping[str, Array], stress: Array, seconds: float, strain: Array) -> Array:
    """The strain of the bar after one step of backward Euler under these stresses."""

    def residual(now: float, p: int) -> float:
        return float(now - strain[p] - seconds * max((stress[p] - 2000 * now) / 100, 0) ** 3)

    return np.array([brentq(residual, 0, 3, (p,), xtol=1e-15, rtol=1e-14) for p in range(3)])


@pytest.mark.parametrize("engine", later(["native", "python"], ["python"]))
@pytest.mark.parametrize("name", ["bar", "ramped_bar"])
def test_the_jacobian_is_that_of_differences(
    artifacts: Mapping[str, Path], name: str, engine: str
) -> None:
    model = Model(artifacts[name], engine=engine)
    inputs = state_of(name, model)
    _, blocks = model.jacobian(inputs)
    for variable in inputs:
        step = 1e-6 * max(1.0, np.abs(inputs[variable]).max())

        def strain(by: float, variable: str = variable, step: float = step) -> Array:
            changed = {**inputs, variable: inputs[variable] + by * step}
            return np.asarray(model.forward(changed)["strain"])

        expected = (strain(1.0) - strain(-1.0)) / (2 * step)
        np.testing.assert_allclose(
            blocks["strain"][variable], expected, rtol=1e-5, atol=1e-9, err_msg=variable
        )
    for variable in ("t~2", "strain~2"):
        assert not blocks["strain"][variable].any()
    if name == "ramped_bar":
        assert (blocks["strain"]["stress~1"] != 0).all()


def test_a_step_is_that_of_a_scalar_equation(artifacts: Mapping[str, Path]) -> None:
    model = Model(artifacts["bar"])
    inputs = state_of("bar", model)
    expected = creep(inputs, inputs["stress"], 2.0, inputs["strain~1"])
    np.testing.assert_allclose(model.forward(inputs)["strain"], expected, rtol=1e-10)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_guess_that_the_predictor_replaces_is_taken_as_by_neml2(
    artifacts: Mapping[str, Path], engine: str
) -> None:
    model = Model(artifacts["bar"], engine=engine)
    inputs = state_of("bar", model)
    right = model.forward(inputs)["strain"]
    guessed = {**inputs, "strain": np.full(3, 0.5)}
    np.testing.assert_array_equal(model.forward(guessed)["strain"], right)
    np.testing.assert_array_equal(model.jacobian(guessed)[0]["strain"], right)
    with pytest.raises(UnknownNameError, match="unknown input 'strian'"):
        model.forward({**inputs, "strian": right})
    if engine == "native":
        call = model.bind(guessed)
        call()
        np.testing.assert_array_equal(call.outputs["strain"], right)


def test_a_guess_of_another_shape_is_an_error(artifacts: Mapping[str, Path]) -> None:
    model = Model(artifacts["viscoplastic"])
    inputs = model.state(2).inputs(strain=np.zeros((2, 6)), t=1.0)
    with pytest.raises(FatalError, match=r"guess 'stress' has the shape \(2, 5\)"):
        model.forward({**inputs, "stress": np.zeros((2, 5))})
    assert model.forward({**inputs, "stress": np.zeros((2, 6))})["stress"].shape == (2, 6)


def test_a_guess_that_no_predictor_gives_is_where_newton_starts(
    artifacts: Mapping[str, Path],
) -> None:
    model = Model(artifacts["warm_start"])
    state = state_of("warm_start", model)
    solution, cold = model.evaluate(state)
    name = "equivalent_plastic_strain"
    warm = model.evaluate({**state, name: solution[name]})
    np.testing.assert_allclose(warm[0][name], solution[name], rtol=1e-9)
    assert warm[1]["residual_norm"].shape == cold["residual_norm"].shape
    assert (warm[1]["iterations"] <= cold["iterations"]).all()


def test_a_force_is_ramped_from_its_old_value(artifacts: Mapping[str, Path]) -> None:
    model = Model(artifacts["ramped_bar"])
    inputs = state_of("ramped_bar", model)
    strain = inputs["strain~1"]
    for part in (0.5, 1.0):
        stress = inputs["stress~1"] + part * (inputs["stress"] - inputs["stress~1"])
        strain = creep(inputs, stress, 1.0, strain)
    found = model.forward(inputs)["strain"]
    np.testing.assert_allclose(found[0], strain[0], rtol=1e-10)  # which needs two parts
    whole = creep(inputs, inputs["stress"], 2.0, inputs["strain~1"])
    assert abs(found[0] - whole[0]) > 1e-3
