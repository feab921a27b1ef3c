"""Capsules of models that are more than the law of their artifact, and their replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import error
from numpy.typing import NDArray
from test_capsule import document_of, edited, only, replayed

from neml2_capi import ConvergenceError, Model, examples

Arrays = dict[str, NDArray[Any]]
POINTS, FAILED = 4, 2

VIEWS: dict[str, dict[str, Any]] = {
    "plane strain": {"hypothesis": "plane_strain"},
    "plane stress": {"hypothesis": "plane_stress"},
    "uniaxial": {"hypothesis": "uniaxial", "strain": "strain", "stress": "stress"},
    "large strain": {"strain_measure": "logarithmic", "stress_measure": "cauchy"},
    "axes": {"material_axes": True},
    "axes and plane stress": {"material_axes": True, "hypothesis": "plane_stress"},
}


def inputs_of(model: Model, wrong: float) -> Arrays:
    """A step from rest, in which one point cannot go."""
    inputs = {v.name: np.zeros((POINTS, *v.base_shape)) for v in model.inputs}
    inputs["t"] += 1.0
    for name in inputs.keys() & {"deformation_gradient", "material_axes"}:
        inputs[name] += np.eye(3)
    strain = inputs.get("strain", inputs.get("deformation_gradient"))
    assert strain is not None
    strain.reshape(POINTS, -1)[:, 0] += 1e-4 * np.arange(1.0, POINTS + 1.0)
    strain.reshape(POINTS, -1)[FAILED, 0] = wrong
    return inputs


def fail(model: Model, folder: Path, wrong: float, **asked: Any) -> ConvergenceError:
    model.options.update({"capsule": folder, "miters": 8})
    with pytest.raises(ConvergenceError) as caught:
        if asked:
            model.jacobian(inputs_of(model, wrong))
        else:
            model.forward(inputs_of(model, wrong))
    return caught.value


@pytest.mark.parametrize("asked", [{}, {"jacobian": True}], ids=["values", "derivatives"])
@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_a_failed_call_is_written_and_made_again(
    views: dict[str, Any], asked: dict[str, Any], tmp_path: Path
) -> None:
    """None was written under a hypothesis, and no log said so; of others the law's own call was."""
    with Model(examples.path("chaboche"), **views) as model:
        failure = fail(model, tmp_path / "c", 1e8, **asked)
        names = [f"inputs/{name}" for name in model.inputs.names]
    file = only(tmp_path / "c")
    with np.load(file) as arrays:
        assert [name for name in arrays if name.startswith("inputs/")] == names
        np.testing.assert_array_equal(arrays["report/status"], failure.report["status"])
        assert np.flatnonzero(arrays["report/status"]).tolist() == [FAILED]
    told = document_of(file)["views"]
    assert {name: value for name, value in told.items() if value} == views
    result = replayed(file)
    assert result["exact"] and result["reproduced"], result
    assert [each["point"] for each in result["points"]] == [FAILED]


def test_a_point_that_is_turned_inside_out_is_in_a_capsule(tmp_path: Path) -> None:
    with Model(examples.path("chaboche"), strain_measure="logarithmic") as model:
        failure = fail(model, tmp_path / "c", -1.0)
    assert "determinant" in str(failure)
    result = replayed(only(tmp_path / "c"))
    assert result["exact"] and "determinant" in result["message"][0]


def test_views_are_read_with_care(tmp_path: Path) -> None:
    """A capsule of an earlier library has none."""
    with Model(examples.path("chaboche")) as model:
        fail(model, tmp_path / "c", 1e8)
    file = only(tmp_path / "c")
    assert replayed(edited(file, lambda document: document.pop("views")))["exact"]

    def wrong(document: Any) -> None:
        document["views"]["hypothesis"] = 3

    told = error("replay", edited(file, wrong))
    assert "hypothesis" in told and "expected a text; got 3" in told
    other = edited(file, lambda document: document["views"].update(hypothesis="plane_stress"))
    assert "does not hold the input" in error("replay", other)
    unknown = edited(file, lambda document: document["views"].update(hypothesis="plane"))
    assert "plane_stress" in error("replay", unknown)
