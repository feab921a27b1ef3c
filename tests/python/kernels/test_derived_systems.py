"""Laws of many sites, through the engine: Jacobians are sparse, derived, and factorised once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from neml2_capi import Model

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402
from neml2_capi._ffi.library import lib  # noqa: E402

pytestmark = pytest.mark.full("it exports graphs with torch")

CELLS, RATE = 20, 0.3


def residual(unknowns: Any, givens: Any, _: Any) -> dict[str, Any]:
    """Diffusion in a row of cells, and a source that depends on the mean of all."""
    u = unknowns["u"]
    flux = (u[1:] + u[:-1]) * (u[:-1] - u[1:])
    edge = torch.zeros(1, dtype=u.dtype)
    rate = torch.cat([flux, edge]) - torch.cat([edge, flux])
    return {"u": u - givens["g"] + RATE * (rate + u * torch.exp(-u.mean()))}


def remainder(u: NDArray[Any], g: NDArray[Any]) -> NDArray[Any]:
    """The same residual, (points, cells)."""
    flux = np.pad((u[:, 1:] + u[:, :-1]) * (u[:, :-1] - u[:, 1:]), ((0, 0), (1, 1)))
    source = u * np.exp(-u.mean(axis=1, keepdims=True))
    rest: NDArray[Any] = u - g + RATE * (np.diff(flux, axis=1) + source)
    return rest


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The law, with its Jacobian derived from its residual, as one of sites."""
    monkeypatch.setattr("neml2_capi.kernels.prepare.has_many_of_one_kind", lambda segment: True)
    monkeypatch.setattr("neml2_capi.kernels.prepare._MOST_JOINED", 0)

    def of(name: str, **options: Any) -> Path:
        return export.model(
            residual,
            tmp_path / name,
            unknowns={"u": (CELLS,)},
            givens={"g": (CELLS,)},
            derivatives=False,
            rtol=1e-13,
            kernels="only",
            **options,
        )

    return of


def solved(path: Path, kernels: str) -> tuple[NDArray[Any], NDArray[Any], Any]:
    model = Model(path)
    model.options["kernels"] = kernels
    g = 0.5 + np.random.default_rng(3).random((9, CELLS))
    outputs, report = model.evaluate({"g": g})
    assert (report["status"] == lib.NEML2_OK).all()
    return g, outputs["u"], report["iterations"]


def test_lanes_and_graphs_solve_the_same_equations(exported: Any) -> None:
    path = exported("cells")
    g, u, iterations = solved(path, "required")
    np.testing.assert_allclose(remainder(u, g), 0.0, atol=1e-12)
    assert iterations.max() < 10
    _, by_graphs, theirs = solved(path, "off")
    np.testing.assert_allclose(u, by_graphs, rtol=1e-12)
    np.testing.assert_array_equal(iterations, theirs)


def test_few_points_have_the_bits_and_reports_of_a_block(
    exported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sites of one point or two go side by side, though that gains nothing here."""
    monkeypatch.setattr("neml2_capi.kernels.abreast.MOST_TIME", np.inf)
    monkeypatch.setattr("neml2_capi.kernels.prepare.LEAST_IN_LOOPS", 0)
    path = exported("abreast")
    for kernel in ("residual", "jacobian", "solve"):
        assert "RUN_ONE" in (path / f"kernels/float64/abreast_{kernel}.c").read_text()
    model = Model(path)
    model.options.update({"kernels": "required", "miters": 8})
    g = 0.5 + np.random.default_rng(3).random((11, CELLS))
    g[4, 3], g[6], g[7] = np.nan, -1e3, 0.0
    outputs, report = model.evaluate({"g": g})
    assert set(report["status"]) == {lib.NEML2_OK, lib.NEML2_NOT_CONVERGED, lib.NEML2_NON_FINITE}
    for count in (1, 2, 3, 6):
        for first in range(len(g) - count + 1):
            few = slice(first, first + count)
            made, told = model.evaluate({"g": g[few]})
            np.testing.assert_array_equal(made["u"], outputs["u"][few])
            for what in ("status", "iterations", "residual_norm"):
                np.testing.assert_array_equal(told[what], report[what][few])


def test_pivots_that_are_not_trusted_lead_to_the_same_solution(
    exported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, expected, iterations = solved(exported("trusted"), "required")
    monkeypatch.setattr("neml2_capi.kernels.elimination.LOSS", 0.0)
    _, u, theirs = solved(exported("never"), "required")
    np.testing.assert_allclose(u, expected, rtol=1e-12)
    np.testing.assert_array_equal(iterations, theirs)


@pytest.mark.parametrize("trusted", [True, False])
def test_derivatives_take_the_factors_of_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    """u_i^3 + 3 u_i + u_(i+1) = g_i: du/dg is the inverse of a matrix of two diagonals."""
    if not trusted:
        monkeypatch.setattr("neml2_capi.kernels.elimination.GROWTH", 0.0)
    size = 48

    def law(unknowns: Any, givens: Any, _: Any) -> dict[str, Any]:
        u = unknowns["u"]
        after = torch.cat([u[1:], torch.zeros(1, dtype=u.dtype)])
        return {"u": u * u * u + 3 * u + after - givens["g"]}

    path = export.model(
        law,
        tmp_path / "band",
        unknowns={"u": (size,)},
        givens={"g": (size,)},
        rtol=1e-13,
        kernels="only",
    )
    source = (path / "kernels/float64/band_solve.c").read_text()
    assert "static void prepare(" in source
    model = Model(path)
    model.options["kernels"] = "required"
    g = 1.0 + np.random.default_rng(5).random((6, size))
    outputs, blocks = model.jacobian({"g": g})[:2]
    for u, block in zip(outputs["u"], blocks["u"]["g"], strict=True):
        matrix = np.diag(3 * u * u + 3) + np.diag(np.ones(size - 1), 1)
        np.testing.assert_allclose(block, np.linalg.inv(matrix), rtol=1e-9, atol=1e-13)
    tangent = np.random.default_rng(6).random(g.shape)
    pushed = model.jvp({"g": g}, {"g": tangent})
    expected = np.einsum("pij,pj->pi", blocks["u"]["g"], tangent)
    np.testing.assert_allclose(pushed[1]["u"], expected, rtol=1e-9)
