"""Bounds of a law within views of it, and under solvers of the user."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from bounded import bounded, quiet  # noqa: F401  (a fixture)

from neml2_capi import ConvergenceError, Model, examples
from neml2_capi.solvers import Newton

OUT = 4
AXES = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Elasticity up to 5 % along the second axis of the material; E is positive."""
    strain = ([None, -0.05, None, None, None, None], [None, 0.05, None, None, None, None])
    return bounded(tmp_path, examples.path("elasticity"), {"strain": strain}, {"E": (0, None)})


@pytest.mark.parametrize("hypothesis", ["plane_stress", "uniaxial", "plane_strain", "shell"])
def test_points_fail_for_bounds_in_material_axes(path: Path, hypothesis: str) -> None:
    """The second axis of the material is minus the first one of space."""
    model = Model(path, hypothesis=hypothesis, material_axes=True)
    model.options["bounds"] = "fail"
    strain = np.zeros((3, *model.inputs["strain"].point_shape))
    strain[:, 0] = 0.01, 0.07, 0.02
    inputs = {"strain": strain, "material_axes": AXES}
    with pytest.raises(ConvergenceError, match=r"component yy, is 0\.07") as caught:
        model.forward(inputs)
    assert caught.value.report["status"].tolist() == [0, OUT, 0]
    report = model.evaluate(inputs, {"E": np.array([2e5, 2e5, -1.0])})[1]
    assert report["status"].tolist() == [0, OUT, OUT]
    assert report["suggested_cut"].tolist() == [1.0, 0.5, 1.0]
    call = model.bind(inputs, report=True)
    call.run()
    assert call.report["status"].tolist() == [0, OUT, 0]
    model.options["bounds"] = "off"
    assert np.isfinite(model.forward(inputs)["stress"]).all()
    assert model.evaluate(inputs, {"E": -1.0})[1]["status"].tolist() == [OUT] * 3


@pytest.mark.parametrize("kernels", ["auto", "off"])
@pytest.mark.parametrize("hypothesis", ["plane_stress", "uniaxial", "shell", "plane_strain"])
def test_points_are_beyond_as_given_and_not_evaluated(
    tmp_path: Path, hypothesis: str, kernels: str
) -> None:
    """So far beyond that no free strain would be found, or for a parameter that has none."""
    law = examples.path("isotropic_hardening")
    strain = ([-0.01] * 3 + [None] * 3, [0.01] * 3 + [None] * 3)
    law = bounded(tmp_path, law, {"strain": strain, "E": (0, None)}, {"E": (0, None)})
    model = Model(law, hypothesis=hypothesis)
    model.options.update({"bounds": "fail", "kernels": kernels})
    inputs = {v.name: np.zeros((4, *v.point_shape)) for v in model.inputs}
    inputs["t"] += 1.0
    inputs["strain"][:, 0] = 2e-3, 0.8, 1e-3, 1e-3
    outputs, report = model.evaluate(inputs, {"E": np.array([2e5, 2e5, -1e5, 2e5])})
    assert report["status"].tolist() == [0, OUT, OUT, 0]
    assert report["iterations"][1:3].tolist() == [0, 0]
    assert report["suggested_cut"].tolist() == [1.0, 0.5, 1.0, 1.0]
    good = [0, 3]
    alone = model.forward({name: value[good] for name, value in inputs.items()})
    np.testing.assert_array_equal(outputs["stress"][good], alone["stress"])
    assert np.isnan(outputs["stress"][1:3]).all()


def test_a_strain_that_was_found_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Under uniaxial stress the second axis of the material is strained by -0.3 of the first."""
    model = Model(path, hypothesis="uniaxial", material_axes=True)
    with caplog.at_level(logging.WARNING, "neml2_capi"):
        model.forward({"strain": np.array([[0.1], [0.2]]), "material_axes": np.eye(3)})
    (told,) = [each.getMessage() for each in caplog.records]
    assert "of point 1, the input 'strain', component yy, is -0.06, below -0.05" in told


def test_a_solver_of_the_users_leaves_out_points_beyond_bounds(tmp_path: Path) -> None:
    """They have no iterates, as those that the library solves have none."""
    law = examples.path("isotropic_hardening")
    model = Model(bounded(tmp_path, law, {"strain": (-3e-3, 3e-3)}))
    model.options["bounds"] = "fail"
    inputs = {v.name: np.zeros((3, *v.point_shape)) for v in model.inputs}
    inputs["t"] += 1.0
    inputs["strain"][:, 0] = 1e-3, 4e-3, 2e-3
    errors = []
    for solver in (None, Newton()):
        with pytest.raises(ConvergenceError, match="1 of 3 points are out of bounds") as caught:
            model.forward(inputs, solver=solver)
        errors.append(caught.value)
    for error in errors:
        assert error.report["status"].tolist() == [0, OUT, 0]
        assert all(np.isnan(value).all() for value in error.unknowns.values())
    good = [0, 2]
    theirs, ours = (error.outputs["stress"][good] for error in errors)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
