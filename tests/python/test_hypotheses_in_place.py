"""Under a hypothesis, an output may lie over its own history, whatever else is asked for."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounded import bounded, quiet  # noqa: F401  (a fixture)
from numpy.typing import NDArray

from neml2_capi import Model, examples

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
POINTS = 5


def inputs_of(model: Model) -> dict[str, Array]:
    random = np.random.default_rng(0)
    inputs: dict[str, Array] = {
        v.name: (20.0 if v.name[0] in "sX" and "~" in v.name else 2e-3)
        * random.standard_normal((POINTS, *v.point_shape))
        for v in model.inputs
    }
    for name in ("strain~1", "strain_transverse~1"):
        if name in inputs:
            inputs[name] *= 1e-4
    inputs["t"], inputs["t~1"] = np.ones(POINTS), np.zeros(POINTS)
    inputs["equivalent_plastic_strain~1"] = np.abs(inputs["equivalent_plastic_strain~1"])
    return inputs


@pytest.mark.parametrize("kernels", ["auto", "off"])
@pytest.mark.parametrize("hypothesis", ["plane_strain", "plane_stress", "uniaxial"])
def test_products_do_not_see_where_outputs_are_written(hypothesis: str, kernels: str) -> None:
    model = Model(examples.path("chaboche"), hypothesis=hypothesis)
    model.options["kernels"] = kernels
    shape = (POINTS, *model.inputs["strain"].point_shape)

    def products(over: list[str]) -> dict[str, Any]:
        inputs = inputs_of(model)
        call = model.bind(
            inputs,
            {name: inputs[f"{name}~1"] if name in over else True for name in model.outputs.names},
            tangents={"strain": np.ones(shape)},
            jvps={"stress": True},
            cotangents={"stress": np.ones(shape)},
            adjoints={"strain": True},
            derivatives={"stress": {"strain": True}},
        )
        call()
        block = np.asarray(call.derivatives["stress"]["strain"])
        found = {"jvp": call.jvps["stress"], "adjoint": call.adjoints["strain"], "block": block}
        return {k: np.array(v) for k, v in {**found, **call.outputs}.items()}

    apart = products([])
    scale = np.abs(apart["block"]).max()
    np.testing.assert_allclose(apart["jvp"], apart["block"].sum(axis=2), atol=1e-8 * scale)
    np.testing.assert_allclose(apart["adjoint"], apart["block"].sum(axis=1), atol=1e-8 * scale)
    for name, value in products(["stress", "X1", "equivalent_plastic_strain"]).items():
        np.testing.assert_array_equal(value, apart[name], err_msg=name)


@pytest.mark.parametrize("view", [{}, {"hypothesis": "plane_stress"}, {"material_axes": True}])
@pytest.mark.parametrize("setting", ["warn", "fail"])
def test_bounds_are_of_what_was_given(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, setting: str, view: dict[str, Any]
) -> None:
    """The stress at the end is beyond the bounds of the stress at the beginning."""
    law = bounded(tmp_path, examples.path("isotropic_hardening"), {"stress~1": (-50.0, 50.0)})
    model = Model(law, **view)
    model.options["bounds"] = setting
    inputs = {v.name: np.zeros((POINTS, *v.point_shape)) for v in model.inputs}
    inputs["t"] += 1.0
    inputs["strain"][:, 0] = 1e-3
    if view.get("material_axes"):
        inputs["material_axes"] = np.broadcast_to(np.eye(3), (POINTS, 3, 3))
    call = model.bind(inputs, {"stress": inputs["stress~1"]}, report=True)
    with caplog.at_level(logging.WARNING, "neml2_capi"):
        call()
    assert (np.asarray(call.report["status"]) == 0).all()
    assert (np.asarray(call.outputs["stress"])[:, 0] > 60).all()
    assert not caplog.records


@pytest.mark.parametrize("hypothesis", ["plane_stress", "shell"])
def test_points_that_are_solved_have_products(hypothesis: str) -> None:
    """The law alone needs more iterations than kernels that find free strains, too."""
    random, points = np.random.default_rng(0), 600
    model = Model(examples.path("chaboche"), hypothesis=hypothesis)
    inputs = {v.name: np.zeros((points, *v.point_shape)) for v in model.inputs}
    size = 10.0 ** random.uniform(-2, -0.5, (points, 1))
    inputs["strain"] = random.standard_normal(inputs["strain"].shape) * size
    inputs["t"] = 10.0 ** random.uniform(-3, 2, points)
    ones = np.ones(inputs["strain"].shape)
    blocks = model.bind(inputs, derivatives={"stress": {"strain": True}}, report=True)
    products = model.bind(inputs, tangents={"strain": ones}, jvps={"stress": True}, report=True)
    blocks.run(), products.run()
    status = np.asarray(blocks.report["status"])
    np.testing.assert_array_equal(products.report["status"], status)
    good = status == 0
    assert good.sum() > points / 2
    expected = np.asarray(blocks.derivatives["stress"]["strain"])[good].sum(axis=2)
    scale = np.abs(expected).max(axis=1)
    error = np.abs(products.jvps["stress"][good] - expected).max(axis=1)
    np.testing.assert_array_less(error, 1e-6 * scale)
