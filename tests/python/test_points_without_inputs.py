"""Points of which a view has no inputs for its law: their status, and what mends them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Artifacts
from numpy.typing import NDArray

from neml2_capi import ConvergenceError, Model, StepError, drive

NON_FINITE, NOT_CONVERGED = 1, 2
VIEWS: dict[str, dict[str, Any]] = {
    "axes": {"material_axes": True},
    "axes, plane stress": {"material_axes": True, "hypothesis": "plane_stress"},
    "F": {"strain_measure": "logarithmic"},
    "F, axes": {"strain_measure": "green_lagrange", "material_axes": True},
}
INPUTS = {"material_axes": "material_axes", "strain_measure": "deformation_gradient"}
CASES = [(view, INPUTS[key]) for view, of in VIEWS.items() for key in INPUTS if key in of]
REFUSED = np.diag([2.0, -2.0, 1.0])  # inside out, and no rotation


def given(model: Model, name: str, value: Any, **others: Any) -> dict[str, NDArray[np.float64]]:
    """Inputs of three points, of which the second has this value."""
    inputs = {v.name: np.zeros((3, *v.point_shape)) for v in model.inputs}
    for each in {"material_axes", "deformation_gradient"} & inputs.keys():
        inputs[each][:] = np.eye(3)
    inputs["t"][:] = 1.0
    for each, other in {name: value, **others}.items():
        inputs[each][1] = other
    return inputs


def test_axes_that_are_no_rotation_fail_their_point(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"], material_axes=True)
    axes = np.stack([np.eye(3), 2 * np.eye(3), np.diag([1.0, 1, -1])])
    told = r"good results\. Of point \d+: 'material_axes' is no rotation"
    with pytest.raises(ConvergenceError, match=told) as error:
        model(strain=np.full((3, 6), 1e-3), material_axes=axes)
    np.testing.assert_array_equal(
        np.asarray(error.value.report["status"]) == 0, [True, False, False]
    )


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("view, name", CASES)
def test_what_is_not_finite_is_named_and_no_smaller_step_helps(
    artifacts: Artifacts, view: str, name: str, number: float
) -> None:
    model = Model(artifacts["chaboche"], **VIEWS[view])
    value = np.diag([number, 1.0, 1.0])
    with pytest.warns(RuntimeWarning, match=f"point 1, the input '{name}' is not finite"):
        outputs = model(given(model, name, value))
    _, report = model.evaluate(given(model, name, value))
    assert report["status"].tolist() == [0, NON_FINITE, 0]
    assert report["suggested_cut"].tolist() == [1.0, 1.0, 1.0]
    for output in outputs.values():
        assert np.isfinite(output[::2]).all()
    assert np.isnan(outputs[model.outputs.names[-1]][1]).all()


@pytest.mark.parametrize("view, name", CASES)
def test_nan_beside_what_is_refused_decides(artifacts: Artifacts, view: str, name: str) -> None:
    model = Model(artifacts["chaboche"], **VIEWS[view])
    inputs = given(model, name, REFUSED, t=np.nan)
    with pytest.warns(RuntimeWarning, match="point 1, the input 't' is not finite"):
        _, blocks = model.jacobian(inputs)
    _, report = model.evaluate(inputs)
    assert report["status"].tolist() == [0, NON_FINITE, 0]
    made = next(iter(blocks[model.outputs.names[-1]].values()))
    assert np.isnan(made[1]).all() and np.isfinite(made[::2]).all()


@pytest.mark.parametrize("view, name", CASES)
def test_the_cut_and_the_message_say_the_same(artifacts: Artifacts, view: str, name: str) -> None:
    """A deformation may be of a step that is too large, if there is a step; axes are of none."""
    model = Model(artifacts["chaboche"], **VIEWS[view])
    for time, mends in ((1.0, name == "deformation_gradient"), (0.0, False)):
        inputs = given(model, name, REFUSED, t=time)
        with pytest.raises(ConvergenceError) as error:
            model(inputs)
        report = error.value.report
        assert report["status"].tolist() == [0, NOT_CONVERGED, 0]
        assert report["suggested_cut"].tolist() == [1.0, 0.5 if mends else 1.0, 1.0]
        assert report["residual_norm"][1] == 0
        told = str(error.value)
        assert told.endswith(f"A smaller step {'may' if mends else 'does not'} mend that.")
        assert "|r|" not in told and "Reduce" not in told and "reduce" not in told


@pytest.mark.parametrize("view", ["axes", "axes, plane stress"])
def test_a_driver_makes_no_smaller_steps_of_axes_that_are_no_rotation(
    artifacts: Artifacts, view: str
) -> None:
    model = Model(artifacts["chaboche"], **VIEWS[view])
    strain = np.zeros((3, *model.inputs["strain"].point_shape))
    strain[:, 0] = 0.0, 1e-3, 2e-3
    with pytest.raises(StepError, match=r"no smaller increment mends that.*is no rotation"):
        drive(model, np.arange(3.0), {"strain": strain, "material_axes": 1.001 * np.eye(3)})
