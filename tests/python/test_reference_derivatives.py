"""Derivatives and residual norms against NEML2's own runtime, as tests/data/make_derivatives.py
recorded them, with its convergence of the whole batch and the solver settings of the record."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from states import ALL, IMPLICIT, RECORDED, SUBSTEPPING, Artifacts, load, recorded

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]

WITH_JVP = [name for name in ALL if recorded(name, "jvp")]
WITH_PARAMETERS = [name for name in ALL if recorded(name, "pjac")]
AT_ONCE = [name for name in IMPLICIT if name not in SUBSTEPPING]


def assert_recorded(actual: Array, expected: Array, round_off: float = 0.0) -> None:
    tolerance = 1e-10 * float(np.abs(expected).max()) + round_off
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def assert_blocks(jacobian: Mapping[str, Mapping[str, Array]], name: str, kind: str) -> None:
    expected = recorded(name, kind)
    assert {f"{out}/{by}" for out, row in jacobian.items() for by in row} == expected.keys()
    for pair, value in expected.items():
        output, variable = pair.split("/")
        block = jacobian[output][variable]
        # The runtime keeps axes of length one if a block is the same for all points.
        assert block.shape == value.shape or (1, *block.shape) == value.shape
        assert_recorded(block.reshape(value.shape), value, round_off(name, output, variable))


def round_off(name: str, output: str, variable: str) -> float:
    """Of a derivative that is zero, as a difference of great terms: stress by gamma~1.

    The terms are of the shear modulus' size, 90 units in the last place of which are allowed.
    """
    if "gamma~1" not in variable:
        return 0.0
    scale = np.abs(recorded(name, "in")[variable]).max()
    return float(2e-14 * np.abs(recorded(name, "out")[output]).max() / scale)


@pytest.mark.parametrize("name", ALL)
def test_outputs(artifacts: Artifacts, name: str) -> None:
    outputs = load(artifacts, name, "batch").forward(recorded(name, "in"))
    expected = recorded(name, "out")
    assert outputs.keys() == expected.keys()
    for variable, value in expected.items():
        assert outputs[variable].shape == value.shape
        assert_recorded(outputs[variable], value)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("elasticity", "elasticity_parameters"),
        ("elasticity_float32", "elasticity_parameters"),
        ("transient", "relaxation"),
    ],
)
def test_outputs_of_the_same_law(artifacts: Artifacts, name: str, law: str) -> None:
    model, round_off = load(artifacts, name), 0.0
    inputs = {key: value.astype(model.dtype) for key, value in recorded(law, "in").items()}
    outputs, expected = model.forward(inputs), recorded(law, "out")
    assert outputs.keys() == expected.keys()
    for variable, value in expected.items():
        if model.dtype == "float32":
            round_off = 1e-6 * float(np.abs(value).max())
        assert_recorded(outputs[variable], value, round_off)


@pytest.mark.parametrize("name", ALL)
def test_jacobian(artifacts: Artifacts, name: str) -> None:
    jacobian = load(artifacts, name, "batch").jacobian(recorded(name, "in"))[1]
    assert_blocks(jacobian, name, "jac")


@pytest.mark.parametrize("name", WITH_JVP)
def test_jvp(artifacts: Artifacts, name: str) -> None:
    """The tangents are of all inputs: those without a compiled pair contribute nothing."""
    model = load(artifacts, name, "batch")
    derivatives = model.jvp(recorded(name, "in"), recorded(name, "tangent"))[1]
    expected = recorded(name, "jvp")
    assert derivatives.keys() == expected.keys()
    for variable, value in expected.items():
        assert derivatives[variable].shape == value.shape
        assert_recorded(derivatives[variable], value)


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_param_jacobian(artifacts: Artifacts, name: str) -> None:
    jacobian = load(artifacts, name, "batch").param_jacobian(recorded(name, "in"))[1]
    assert_blocks(jacobian, name, "pjac")


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_param_vjp(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name, "batch")
    gradients = model.param_vjp(recorded(name, "in"), recorded(name, "cotangent"))
    expected = recorded(name, "pvjp")
    assert gradients.keys() == expected.keys()
    for parameter, value in expected.items():
        assert gradients[parameter].shape == value.shape
        assert_recorded(gradients[parameter], value)


def test_parameters_by_point(artifacts: Artifacts) -> None:
    name = "elasticity_parameters"  # the only one of which the runtime takes them
    model, inputs, overrides = (
        load(artifacts, name),
        recorded(name, "in"),
        recorded(name, "override"),
    )
    assert_recorded(
        model.forward(inputs, overrides)["stress"], RECORDED[f"{name}/override_out/stress"]
    )
    assert_blocks(model.param_jacobian(inputs, overrides)[1], name, "override_pjac")
    gradients = model.param_vjp(inputs, recorded(name, "cotangent"), overrides)
    expected = recorded(name, "override_pvjp")
    assert gradients.keys() == expected.keys()
    for parameter, value in expected.items():
        assert gradients[parameter].shape == value.shape
        assert_recorded(gradients[parameter], value)


# ---- iterations ----


def history(artifacts: Artifacts, name: str) -> Array:
    """The residual norms, [iteration, point], NaN after the last."""
    model = load(artifacts, name, "batch")
    model.options["collect_history"] = 1
    norms = model.evaluate(recorded(name, "in"))[1]["residual_history"]
    return np.asarray(norms.T)


@pytest.mark.parametrize("name", [name for name in AT_ONCE if f"{name}/norms" in RECORDED])
def test_residual_norms(artifacts: Artifacts, name: str) -> None:
    norms, expected = history(artifacts, name), RECORDED[f"{name}/norms"]
    made = len(expected)
    assert np.isnan(norms[made:]).all()
    # The first residual has the greatest terms: their round-off remains.
    tolerance = 1e-10 * expected + 2e-13 * expected[0].max()
    assert np.all(np.abs(norms[:made] - expected) <= tolerance)


@pytest.mark.parametrize("name", AT_ONCE)
def test_greatest_residual_norms(artifacts: Artifacts, name: str) -> None:
    norms, printed = history(artifacts, name), RECORDED[f"{name}/printed"]
    made = len(printed)
    assert np.isnan(norms[made:]).all()
    greatest = norms[:made].max(axis=1)
    # The log has seven digits, and residuals below the round-off of the first one are noise.
    tolerance = 5e-7 * printed + 1e-13 * printed[0]
    assert np.all(np.abs(greatest - printed) <= tolerance)


def test_residual_norms_of_substeps(artifacts: Artifacts) -> None:
    """The spans of the record one after another, each as a step of its own for its points."""
    model, inputs = load(artifacts, "substepping"), recorded("substepping", "in")
    model.options["collect_history"] = 1
    printed = RECORDED["substepping/printed"]  # of each span without the first norm
    points = len(inputs["t"])
    state = {name: np.zeros_like(v) for name, v in recorded("substepping", "out").items()}
    steps = np.zeros(points, dtype=int)
    for start, end, _, active, converged in RECORDED["substepping/spans"]:
        # The points stand in the order of their increments, and the greater ones fail.
        rows = np.arange(points - int(active), points)
        span = {f"{name}~1": value[rows] for name, value in state.items()}
        for name in ("strain", "t"):
            old, new = inputs[f"{name}~1"][rows], inputs[name][rows]
            span |= {f"{name}~1": old + start * (new - old), name: old + end * (new - old)}
        outputs, report = model.evaluate(span)
        history = report["residual_history"]  # of the whole span, also if it was bisected then
        made = np.isfinite(history[:, 1:]).sum(axis=1)
        steps[rows] += made
        greatest = np.nanmax(history[:, 1 : made.max() + 1], axis=0)
        # A point that has converged stops here and goes on there, below 1e-10 of its first norm.
        tolerance = 5e-7 * greatest + 1e-10 * history[:, 0].max()
        assert np.all(np.abs(greatest - printed[: made.max()]) <= tolerance), (start, end)
        printed = printed[made.max() :]
        for name, value in outputs.items():
            state[name][rows[: int(converged)]] = value[: int(converged)]
    assert printed.size == 0
    whole, report = model.evaluate(inputs)
    np.testing.assert_array_equal(report["iterations"], steps)
    for name, value in recorded("substepping", "out").items():
        assert_recorded(state[name], value)
        assert_recorded(whole[name], value)
