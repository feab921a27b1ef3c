"""Laws under a hypothesis with what else a model can do: cuts, rescues and so on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from states import Artifacts

from neml2_capi import Model, Results, drive, examples

pytestmark = pytest.mark.numbers

TIMES = np.linspace(0, 6, 7)
#: The strain grows and turns back.
PATH = np.array([0, 0.3, 0.6, 1.0, 0.7, 0.4, 0.1])
STRAIN = 8e-3 * PATH[:, None] * [1, -0.4, 0.6 * np.sqrt(2)]


def plane(path: Any, **options: Any) -> Model:
    model = Model(path, hypothesis="plane_stress")
    model.options.update(options)
    return model


def in_three_dimensions(path: Any, **options: Any) -> NDArray[np.float64]:
    """Return xx, yy and xy of the stress, by drive(), which finds the other strains."""
    model = Model(path)
    model.options.update(options)
    given = {"xx": STRAIN[:, 0], "yy": STRAIN[:, 1], "xy": STRAIN[:, 2] / np.sqrt(2)}
    control = {"stress:strain": dict.fromkeys(("zz", "yz", "xz"), 0.0)}
    results = drive(model, TIMES, {"strain": given}, control=control)
    return np.asarray(results["stress"])[:, [0, 1, 5]]


def assert_near(found: Any, expected: Any, tolerance: float) -> None:
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def test_single_precision(tmp_path: Path) -> None:
    """A law that stiffens, in both precisions."""
    torch = pytest.importorskip("torch")
    export = pytest.importorskip("neml2_capi.export")

    def law(strain: Any) -> Any:
        mean = strain[..., :3].mean(-1, keepdim=True)
        volume = torch.cat([mean, mean, mean, 0 * strain[..., 3:]], -1)
        deviator = strain - volume
        stiffness = 150e3 * (1 + 400 * (deviator * deviator).sum(-1, keepdim=True))
        return stiffness * deviator + 500e3 * volume

    results, products = {}, {}
    for dtype in ("float32", "float64"):
        export.model(
            law,
            tmp_path / dtype,
            inputs={"strain": "SR2"},
            outputs={"stress": "SR2"},
            derivatives=["stress:strain"],
            dtype=dtype,
            kernels="only",
        )
        model = Model(tmp_path / dtype, dtype=dtype, hypothesis="plane_stress")
        strain = {"strain": STRAIN.astype(dtype)}
        results[dtype] = model.jacobian(strain)
        ones = np.ones_like(strain["strain"])
        along = model.jvp(strain, {"strain": ones})[1]["stress"]
        products[dtype] = along, model.vjp(strain, {"stress": ones})[1]["strain"]
    (found, blocks), (expected, tangents) = results["float32"], results["float64"]
    assert found["stress"].dtype == np.float32
    assert_near(found["stress"], expected["stress"], 1e-6)
    assert_near(blocks["stress"]["strain"], tangents["stress"]["strain"], 1e-6)
    for found, expected in zip(products["float32"], products["float64"], strict=True):
        assert found.dtype == np.float32
        assert_near(found, expected, 1e-6)
    assert_near(products["float64"][0], tangents["stress"]["strain"].sum(-1), 1e-12)
    assert_near(products["float64"][1], tangents["stress"]["strain"].sum(-2), 1e-12)


@pytest.fixture(scope="module")
def creeping(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Maxwell body in both precisions: its deviator relaxes, and it takes the time."""
    torch = pytest.importorskip("torch")
    export = pytest.importorskip("neml2_capi.export")

    def law(unknowns: Any, givens: Any, parameters: Any) -> Any:
        def deviator(tensor: Any) -> Any:
            return tensor - torch.cat([(tensor[:3].sum() / 3).expand(3), 0 * tensor[3:]])

        E, eta = parameters["E"], parameters["eta"]
        stress, strain = unknowns["stress"], givens["strain"] - givens["strain~1"]
        elastic = E / 1.3 * (strain + 0.75 * (strain - deviator(strain)) / 0.6)
        flow = deviator(stress) * (givens["t"] - givens["t~1"]) * E / eta
        return {"stress": (stress - givens["stress~1"] - elastic + flow) / E}

    folder = tmp_path_factory.mktemp("creeping")
    for dtype, tolerance in (("float32", 1e-8), ("float64", 1e-14)):
        export.model(
            law,
            folder / dtype,
            unknowns={"stress": "SR2"},
            givens=dict.fromkeys(("strain", "strain~1", "stress~1"), "SR2")
            | {"t": "Scalar", "t~1": "Scalar"},
            parameters={"E": 200e3, "eta": 400e3},
            atol=tolerance,
            dtype=dtype,
            kernels="only",
        )
    return folder


@pytest.mark.parametrize("hypothesis", [None, "plane_stress", "uniaxial", "shell"])
def test_histories_in_single_precision(creeping: Path, hypothesis: str | None) -> None:
    """Results, derivatives by parameters and gradients agree with double precision."""
    found = {}
    for dtype in ("float32", "float64"):
        model = Model(creeping / dtype, dtype=dtype, hypothesis=hypothesis)
        size = int(np.prod(model.inputs["strain"].point_shape))
        strain = (8e-3 * PATH[:, None] * np.linspace(1, -0.5, size)).astype(dtype)
        results = drive(model, TIMES, {"strain": strain}, derivatives=["E", "eta"])
        weights = np.linspace(1, 2, results["stress"].size, dtype=dtype)
        gradient = results.gradient({"stress": weights.reshape(results["stress"].shape)})
        found[dtype] = [results["stress"]]
        for name in ("E", "eta"):
            found[dtype] += [results.derivative("stress", name), gradient[name]]
    for single, double in zip(found["float32"], found["float64"], strict=True):
        assert_near(single, double, 2e-5)


def test_increments_that_are_cut(artifacts: Artifacts) -> None:
    """Of a law that takes steps in parts, what is solved for follows the law's parts."""
    path = artifacts["substepping"]
    found = drive(plane(path), TIMES, {"strain": STRAIN})["stress"]
    assert_near(found, in_three_dimensions(path), 1e-8)


def test_a_rescue() -> None:
    path = examples.path("isotropic_hardening")
    few: dict[str, Any] = {"miters": 6}
    found = drive(plane(path, rescue=100, **few), TIMES, {"strain": STRAIN})["stress"]
    assert_near(found, drive(plane(path), TIMES, {"strain": STRAIN})["stress"], 1e-8)


def test_a_checkpoint(tmp_path: Path) -> None:
    """A job that goes on has the bits of one that was not stopped."""

    def go_on(steps: int, **options: Any) -> Results:
        model = plane(examples.path("chaboche"))
        return drive(model, TIMES[:steps], {"strain": STRAIN[:steps]}, **options)

    whole = go_on(7)
    go_on(4, checkpoint=tmp_path / "state", checkpoint_steps=1)
    again = go_on(7, checkpoint=tmp_path / "state", checkpoint_steps=1)
    for name in ("stress", "strain_transverse", "X1"):
        np.testing.assert_array_equal(again[name][-1], whole[name][-1])


def test_derivatives_of_a_history() -> None:
    model = plane(examples.path("isotropic_hardening"), rtol=1e-12, atol=1e-13)
    (name, *_) = model.parameters.names
    results = drive(model, TIMES, {"strain": STRAIN}, derivatives=[name])
    value = float(np.asarray(model.named_parameters()[name]))

    def stress(factor: float) -> NDArray[np.float64]:
        other = plane(examples.path("isotropic_hardening"), rtol=1e-12, atol=1e-13)
        other.set_parameter(name, factor * value)
        return np.asarray(drive(other, TIMES, {"strain": STRAIN})["stress"])

    expected = (stress(1 + 1e-4) - stress(1 - 1e-4)) / (2e-4 * value)
    assert_near(np.asarray(results.derivative("stress", name)).reshape(7, 3), expected, 1e-6)
