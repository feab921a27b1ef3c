"""A value, a derivative or an input that is not finite: its points say so, and it is named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from states import IMPLICIT, recorded

from neml2_capi import ConvergenceError, Model, examples
from neml2_capi._ffi.errors import last_message
from neml2_capi._ffi.library import lib
from neml2_capi._rest import slopes_at_rest

pytestmark = pytest.mark.numbers

FORCES = {"strain", "total_strain", "applied_stress", "deformation_rate"}
POINTS = 2500  # more than a chunk has
BAD = 1777


@pytest.fixture(params=["off", "auto"])
def elasticity(request: pytest.FixtureRequest, artifacts: Mapping[str, Path]) -> Model:
    """Its stress is finite if strain and modulus are huge and tiny, and no slope by E is."""
    model = Model(artifacts["elasticity_parameters"])
    model.options["kernels"] = request.param
    model.set_parameter("E", 1e-300)
    model.set_parameter("nu", -0.5)  # stress = 2 E strain, without a trace
    return model


def strained(points: int) -> tuple[dict[str, Any], Any]:
    """Strains of which one is huge, and the statuses that its derivative by E leads to."""
    strain, status = np.full((points, 6), 1e-3), np.zeros(points)
    bad = min(BAD, points - 1)
    strain[bad], status[bad] = [1e308, -1e308, 0, 0, 0, 0], lib.NEML2_NON_FINITE
    return {"strain": strain}, status


@pytest.mark.parametrize("points", [1, 3, POINTS])
def test_a_derivative_by_a_parameter_is_a_result(elasticity: Model, points: int) -> None:
    inputs, status = strained(points)
    outputs, report = elasticity.evaluate(inputs)
    assert np.isfinite(outputs["stress"]).all()
    assert not report["status"].any()
    call = elasticity.bind(inputs, derivatives={"stress": {"elasticity.E": True}}, report=True)
    assert call.run() == lib.NEML2_NON_FINITE
    np.testing.assert_array_equal(call.report["status"], status)
    (block,) = call.derivatives["stress"].values()
    np.testing.assert_array_equal(np.isfinite(block).all(axis=-1), status == 0)
    assert "the derivative of 'stress' with respect to " in last_message()
    assert f"Of point {int(status.argmax())}, " in last_message()
    assert "the law has no finite slope there" in last_message()


def test_a_sum_over_points_knows_which_of_them_made_it_infinite(elasticity: Model) -> None:
    inputs, _ = strained(POINTS)
    weights = {"stress": np.ones((POINTS, 6))}
    with pytest.raises(ConvergenceError, match=f"Of point {BAD}, the derivative of 'stress'") as e:
        elasticity.param_vjp(inputs, weights)
    assert e.value.derivatives is not None
    assert not np.isfinite(e.value.derivatives[elasticity.parameters.names[0]]).all()


@pytest.mark.parametrize("calls", [1, 4])  # later ones repeat the first
def test_a_jacobian_without_a_number_is_an_error_that_has_the_good_points(
    elasticity: Model, calls: int
) -> None:
    inputs, status = strained(3)
    for _ in range(calls):
        with pytest.raises(ConvergenceError, match="Of point 2, the derivative of") as caught:
            elasticity.param_jacobian(inputs)
        error = caught.value
        assert error.status == lib.NEML2_NON_FINITE
        assert error.derivatives is not None
        np.testing.assert_array_equal(error.report["status"], status)
        np.testing.assert_array_equal(error.converged_mask, status == 0)
        np.testing.assert_array_equal(error.outputs["stress"], elasticity.forward(inputs)["stress"])
        (block,) = (
            block for by in error.derivatives.values() for name, block in by.items() if "E" in name
        )
        np.testing.assert_array_equal(np.isfinite(block).all(axis=-1), status == 0)
    inputs["strain"][2] = 0.0
    elasticity.param_jacobian(inputs)


def test_a_weight_that_is_nan_is_named(elasticity: Model) -> None:
    weights = {"stress": np.full(6, np.nan)}
    with pytest.raises(ConvergenceError, match="the cotangent of the output 'stress' is not"):
        elasticity.vjp({"strain": np.zeros(6)}, weights)


def test_a_parameter_that_is_nan_is_named(elasticity: Model) -> None:
    with pytest.warns(RuntimeWarning, match="the parameter '.*E' is not finite"):
        elasticity.forward({"strain": np.zeros((2, 6))}, {"E": np.array([1.0, np.nan])})


@pytest.mark.parametrize("engine", ["off", "auto", "python"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", IMPLICIT)
def test_an_input_that_is_not_finite_needs_no_smaller_step(
    artifacts: Mapping[str, Path], name: str, value: float, engine: str
) -> None:
    if engine == "python":
        model = Model(artifacts[name], engine="python")
    else:
        model = Model(artifacts[name])
        model.options["kernels"] = engine
    inputs = recorded(name, "in")
    spoiled = next(v for v in inputs if v in FORCES)
    inputs[spoiled][1] = value
    with pytest.warns(RuntimeWarning, match=f"Of point 1, the input '{spoiled}' is not finite"):
        model.jacobian(inputs)
    _, report = model.evaluate(inputs)
    assert report["status"].tolist() == [0, lib.NEML2_NON_FINITE, *[0] * (len(inputs[spoiled]) - 2)]
    assert (report["suggested_cut"] == 1.0).all()


@pytest.mark.parametrize("engine", [None, "python"])
def test_a_residual_that_becomes_nan_is_not_iterated_longer(
    artifacts: Mapping[str, Path], engine: str | None
) -> None:
    model = (
        Model(artifacts["relaxation"], engine=engine) if engine else Model(artifacts["relaxation"])
    )
    inputs = recorded("relaxation", "in")
    inputs["strain"][2] *= 1e60
    with pytest.raises(ConvergenceError) as caught:
        model.forward(inputs)
    assert "miters" not in str(caught.value)


@pytest.mark.parametrize("name", examples.NAMES)
def test_the_examples_have_a_tangent_at_rest(name: str) -> None:
    with Model(examples.path(name)) as model:
        assert list(slopes_at_rest(model)) == []


@pytest.mark.parametrize("name", ["elasticity_parameters", *IMPLICIT])
def test_laws_of_neml2_have_a_tangent_at_rest(artifacts: Mapping[str, Path], name: str) -> None:
    assert list(slopes_at_rest(Model(artifacts[name]))) == []


@pytest.mark.full("laws are written in torch")
def test_a_law_without_a_tangent_at_rest_is_told_when_it_is_exported(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    export = pytest.importorskip("neml2_capi.export")

    def law(strain: Any, E: Any) -> Any:
        return E * strain / (1 + 50 * torch.sqrt((strain * strain).sum()))

    with pytest.warns(RuntimeWarning, match="'stress' with respect to 'strain' is not finite at"):
        export.model(
            law,
            tmp_path / "law",
            inputs={"strain": "SR2"},
            outputs={"stress": "SR2"},
            parameters={"E": 200e3},
            kernels="only",
        )
    model, strain = Model(tmp_path / "law"), np.full((5, 6), 1e-3)
    strain[2] = 0.0
    call = model.bind({"strain": strain}, derivatives=True, report=True)
    assert call.run() == lib.NEML2_NON_FINITE
    assert call.report["status"].tolist() == [0, 0, lib.NEML2_NON_FINITE, 0, 0]
    with pytest.raises(ConvergenceError, match="Of point 2, the derivative of 'stress'"):
        model.jvp({"strain": strain}, {"strain": 0 * strain})
    with pytest.raises(ConvergenceError, match="Of point 2, the derivative of 'stress'"):
        model.vjp({"strain": strain}, {"stress": strain})
