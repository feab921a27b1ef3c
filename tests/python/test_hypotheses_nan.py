"""Laws under a hypothesis of which something beside the stress is not finite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neml2_capi import ConvergenceError, Model

pytest.importorskip("torch")
export = pytest.importorskip("neml2_capi.export")
import torch  # noqa: E402

NON_FINITE = 1
STRAIN = np.array([[1e-3], [2e-3]])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hooke's law, beside a root and a ratio of other inputs."""

    def law(strain: torch.Tensor, d: torch.Tensor, e: torch.Tensor) -> dict[str, torch.Tensor]:
        trace = strain[..., :3].sum(-1, keepdim=True)
        volume = torch.cat([trace, trace, trace, 0 * strain[..., 3:]], -1)
        return {"stress": 100e3 * (strain + volume), "ratio": e / e, "root": torch.sqrt(d)}

    folder = tmp_path_factory.mktemp("laws") / "beside"
    export.model(
        law,
        folder,
        inputs={"strain": "SR2", "d": "Scalar", "e": "Scalar"},
        outputs={"stress": "SR2", "ratio": "Scalar", "root": "Scalar"},
        kernels="only",
    )
    return folder


@pytest.mark.parametrize("axes", [False, True])
@pytest.mark.parametrize("kernels", ["auto", "off"])
def test_the_stress_is_of_strains_that_were_found(path: Path, kernels: str, axes: bool) -> None:
    """E = 4/3 100e3 and nu = 1/3."""
    model = Model(path, hypothesis="uniaxial", material_axes=axes)
    model.options["kernels"] = kernels
    inputs = {"strain": STRAIN, "d": np.ones(2), "e": np.array([0.0, 1.0])}
    if axes:
        inputs["material_axes"] = np.eye(3)
    outputs, report = model.evaluate(inputs)
    assert report["status"].tolist() == [NON_FINITE, 0]
    np.testing.assert_array_equal(outputs["ratio"], [np.nan, 1.0])
    with pytest.raises(ConvergenceError, match="is not finite, though its values are") as caught:
        model.jacobian(inputs | {"d": np.array([1.0, 0.0]), "e": np.ones(2)})
    for found in (outputs, caught.value.outputs):
        np.testing.assert_allclose(found["stress"], 4e5 / 3 * STRAIN, rtol=1e-12)
        transverse = found["strain_transverse"][:, :2]
        np.testing.assert_allclose(transverse, -np.repeat(STRAIN, 2, axis=1) / 3, rtol=1e-12)


@pytest.mark.parametrize("kernels", ["auto", "off"])
def test_nothing_is_a_result_if_no_strains_are_found(path: Path, kernels: str) -> None:
    model = Model(path, hypothesis="uniaxial")
    model.options["kernels"] = kernels
    strain = np.array([[np.nan], [1e-3]])
    outputs, report = model.evaluate({"strain": strain, "d": np.ones(2), "e": np.ones(2)})
    assert report["status"].tolist() == [NON_FINITE, 0]
    for name, value in outputs.items():
        assert np.isnan(value[0]).all() and np.isfinite(value[1]).all(), name
