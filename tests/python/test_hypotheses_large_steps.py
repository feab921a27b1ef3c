"""Steps under the hypotheses of elements that go far beyond yield."""

from __future__ import annotations

import numpy as np
import pytest
from slow import later
from states import Artifacts

from neml2_capi import Model, examples

pytestmark = pytest.mark.numbers


@pytest.mark.parametrize("hypothesis", ["plane_stress", "uniaxial", "shell"])
def test_a_step_from_rest_far_beyond_yield_takes_no_rounds(hypothesis: str) -> None:
    """Its first pivots are not trusted, and the law takes 20 iterations; rounds take 50 to 100."""
    model = Model(examples.path("isotropic_hardening"), hypothesis=hypothesis)
    inputs = {v.name: np.zeros((16, *v.point_shape)) for v in model.inputs}
    shape = inputs["strain"].shape
    inputs |= {"strain": 1e-2 * np.random.default_rng(1).standard_normal(shape), "t": np.ones(16)}
    _, report = model.evaluate(inputs)
    assert (report["status"] == 0).all()
    assert report["iterations"].max() <= 40, report["iterations"]


@pytest.mark.parametrize(
    ("hypothesis", "parts"), [("plane_stress", [0, 1, 5]), ("shell", [0, 1, 3, 4, 5])]
)
@pytest.mark.parametrize("name", later(["isotropic_hardening", "chaboche"], ["chaboche"]))
def test_stresses_vanish_of_all_points_that_are_solved(
    name: str, hypothesis: str, parts: list[int]
) -> None:
    """A correction of the strains that is small beside 50 % is large beside the stresses."""
    points, random = 2000, np.random.default_rng(3)
    model, law = Model(examples.path(name), hypothesis=hypothesis), Model(examples.path(name))
    model.options.update({"kernels": "off", "atol": 1e-11, "rtol": 1e-12, "miters": 50})
    law.options.update({"rescue": 50, "atol": 1e-11, "rtol": 1e-12, "miters": 50})
    inputs = {v.name: np.zeros((points, *v.point_shape)) for v in model.inputs}
    direction = random.standard_normal(inputs["strain"].shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    inputs |= {
        "t": np.ones(points),
        "strain": random.choice([0.1, 0.3, 0.5], (points, 1)) * direction,
    }
    outputs, report = model.evaluate(inputs)
    solved = report["status"] == 0
    assert solved.sum() > points / 3
    others = [i for i in range(6) if i not in parts]
    whole = {v.name: np.zeros((points, *v.point_shape))[solved] for v in law.inputs}
    whole["t"] += 1.0
    whole["strain"][:, parts] = inputs["strain"][solved]
    whole["strain"][:, others] = outputs["strain_transverse"][solved]
    stress = np.abs(law.forward(whole)["stress"])
    np.testing.assert_array_less(stress[:, others].max(axis=1), 1e-6 * stress.max(axis=1))


@pytest.mark.parametrize("hypothesis", ["uniaxial", "plane_stress", "shell"])
def test_plastic_strains_before_the_first_step_are_relieved(
    artifacts: Artifacts, hypothesis: str
) -> None:
    """The solve begins at strains of zero, far beyond yield: its Newton steps are too long."""
    random, points = np.random.default_rng(0), 500
    path = artifacts["radial_return"]
    with Model(path, hypothesis=hypothesis, strain="total_strain") as model:
        inputs = {v.name: np.zeros((points, *v.point_shape)) for v in model.inputs}
        inputs["t"] += 1.0
        inputs["plastic_strain~1"] = random.normal(size=(points, 6)) * 1e-3
        for strain in (1e-3, 2e-2):
            inputs["total_strain"] = random.normal(size=inputs["total_strain"].shape) * strain
            assert (model.evaluate(inputs)[1]["status"] == 0).all()
