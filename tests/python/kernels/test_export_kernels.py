"""Kernels of laws and residuals that are written in torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Model

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402
from neml2_capi._ffi.library import lib  # noqa: E402

pytestmark = pytest.mark.full("it exports graphs with torch")

STRAIN = np.random.default_rng(1).standard_normal((11, 6)) * 1e-3


def on(model: Model, kernels: str) -> Model:
    model.options["kernels"] = kernels
    return model


def test_a_law_runs_on_kernels_alone(tmp_path: Path) -> None:
    def law(strain: Any, E: Any) -> dict[str, Any]:
        return {"stress": E * strain * (1.0 + (strain * strain).sum())}

    path = export.model(
        law,
        tmp_path / "law",
        inputs={"strain": "SR2"},
        outputs={"stress": "SR2"},
        parameters={"E": 200e3},
        kernels="only",
    )
    assert not list(path.rglob("*.pt2"))
    outputs, blocks = on(Model(path), "required").jacobian({"strain": STRAIN})[:2]
    size = 1.0 + (STRAIN**2).sum(axis=1)[:, None]
    np.testing.assert_allclose(outputs["stress"], 200e3 * STRAIN * size, rtol=1e-14)
    expected = 2.0 * STRAIN[:, :, None] * STRAIN[:, None, :] + size[:, :, None] * np.eye(6)
    np.testing.assert_allclose(blocks["stress"]["strain"], 200e3 * expected, rtol=1e-12)


@pytest.mark.parametrize("G", [0.8, 80e3, 80e9])
def test_results_that_are_rounding_errors_are_no_other_results(tmp_path: Path, G: float) -> None:
    """The pressure of an isochoric law, and its derivatives: zero, in any units."""

    def law(strain: Any, G: Any) -> dict[str, Any]:
        trace = strain[0] + strain[1] + strain[2]
        one = torch.cat([torch.ones(3), torch.zeros(3)]).to(strain)
        stress = 2.0 * G * torch.sqrt(1.0 + (strain * strain).sum()) * (strain - trace / 3.0 * one)
        return {"stress": stress, "pressure": -(stress * one).sum() / 3.0}

    before = torch.random.get_rng_state()
    path = export.model(
        law,
        tmp_path / "law",
        inputs={"strain": "SR2"},
        outputs={"stress": "SR2", "pressure": "Scalar"},
        parameters={"G": G},
        kernels="only",
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    outputs, blocks = Model(path).jacobian({"strain": STRAIN})[:2]
    assert np.abs(outputs["pressure"]).max() < 1e-14 * G
    assert np.abs(blocks["pressure"]["strain"]).max() < 1e-14 * G


def swapped(diagonal: float) -> Any:
    """y^2 = b and x^3 + diagonal y = a: the diagonal of the Jacobian is zero, or nearly."""

    def residual(unknowns: Any, givens: Any, _: Any) -> dict[str, Any]:
        x, y = unknowns["x"], unknowns["y"]
        return {"x": y * y - givens["b"], "y": x * x * x - givens["a"] + diagonal * y}

    return residual


@pytest.mark.parametrize("diagonal", [0.0, 1e-20, 1e-9, 1e-3])
def test_equations_in_another_order_than_their_unknowns_are_solved(
    tmp_path: Path, diagonal: float
) -> None:
    scalars = dict.fromkeys(("a", "b", "x~1", "y~1"), "Scalar")
    path = export.model(
        swapped(diagonal),
        tmp_path / "swapped",
        unknowns={"x": "Scalar", "y": "Scalar"},
        givens=scalars,
        rtol=1e-14,
        kernels="only",
    )
    a, b = np.linspace(1.0, 8.0, 11), np.linspace(1.0, 4.0, 11)
    inputs = {"a": a, "b": b, "x~1": np.ones(11), "y~1": np.ones(11)}
    inputs["x~1"][3] = 0.0  # where the Jacobian is singular, except for the diagonal
    inputs["a"][7] = np.nan
    outputs, report = on(Model(path), "required").evaluate(inputs)
    theirs, by_tensors = on(Model(path), "off").evaluate(inputs)
    for key in ("status", "iterations"):
        np.testing.assert_array_equal(report[key], by_tensors[key], err_msg=key)
    assert report["status"][7] == lib.NEML2_NON_FINITE
    good = report["status"] == lib.NEML2_OK
    assert good.sum() >= 9
    for name, value in theirs.items():
        np.testing.assert_allclose(outputs[name], value, rtol=1e-10)
    y = np.sqrt(b[good])
    np.testing.assert_allclose(outputs["y"][good], y, rtol=1e-7)
    np.testing.assert_allclose(outputs["x"][good], np.cbrt(a[good] - diagonal * y), rtol=1e-7)


def test_kernels_that_no_compiler_takes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(FatalError, match="false does not compile"):
        export.model(
            lambda strain: {"stress": 2.0 * strain},
            tmp_path / "law",
            inputs={"strain": "SR2"},
            outputs={"stress": "SR2"},
            kernels="only",
        )
    assert not (tmp_path / "law").exists()


def test_another_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match="'auto', 'only' or 'no', not 'yes'"):
        export.model(
            swapped(0.0),
            tmp_path / "m",
            unknowns={"x": "Scalar", "y": "Scalar"},
            givens={"a": "Scalar", "b": "Scalar"},
            kernels="yes",
        )
