"""A nonlinear model in float32: u^2 = a, one unknown per point.

neml2-compile 3.1.0 writes float64 packages whatever it is asked for, so this model is put together
from graphs of torch."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import ConvergenceError, FatalError, Model, drive

pytestmark = pytest.mark.numbers


def scalar(name: str) -> dict[str, Any]:
    shapes: dict[str, Any] = {"sub_batch_shape": [], "base_shape": []}
    return {"name": name, "var_size": 1, "var_type": "Scalar", **shapes}


def group(name: str) -> list[dict[str, Any]]:
    shapes = {"structure": "dense", "sub_batch_shape": []}
    return [{**shapes, "var_names": [name], "per_var_info": [scalar(name)]}]


@pytest.fixture(scope="module")
def root(graphs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    leaf = folder / "cpu" / "float32"
    leaf.mkdir(parents=True)
    packages = {}
    for kind in ("residual", "jacobian", "solve"):
        packages[f"{kind}_package"] = f"root_{kind}.pt2"
        shutil.copy(graphs / f"root_{kind}.pt2", leaf)
    segment = {
        "kind": "implicit",
        **packages,
        "unknowns": [scalar("u")],
        "givens": [scalar("a")],
        "residuals": [scalar("r")],
        "unknown_group_infos": group("u"),
        "given_group_infos": group("a"),
        "residual_group_infos": group("r"),
        "param_inputs": [],
        "max_substepping_level": 0,
    }
    # Newton starts from the caller's u: an unknown that is an input, too, is a warm start.
    metadata = {
        "schema_version": 14,
        "type": "composed",
        "inputs": [scalar("a"), scalar("u")],
        "outputs": [scalar("u")],
        "segments": [segment],
        "parameters": [],
        "derivatives": [],
        "parameter_derivatives": [],
        "solver_config": {
            "atol": 1e-6,
            "rtol": 1e-6,
            "miters": 25,
            "substep_del_tol": 1e-6,
            "ls_type": "BACKTRACKING",
            "ls_max_iters": 1,
            "ls_cutback": 2.0,
            "ls_c": 1e-3,
            "solver_kind": "direct",
        },
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return folder


def test_roots_are_found_to_the_precision_of_float32(root: Path) -> None:
    model = Model(root, dtype="float32")
    assert model.dtype == np.float32
    a = np.linspace(0.5, 9.0, 1000, dtype=np.float32)
    result = model.forward({"a": a, "u": np.ones_like(a)})["u"]
    assert result.dtype == np.float32
    # rtol 1e-6 of a first residual below 8, over the slope 2 u
    np.testing.assert_allclose(result, np.sqrt(a), rtol=1e-5)


def test_the_callers_guess_chooses_the_root(root: Path) -> None:
    model = Model(root, dtype="float32")
    guess = np.array([1.0, -1.0], dtype=np.float32)
    result = model.forward({"a": np.float32(4.0), "u": guess})["u"]
    np.testing.assert_allclose(result, [2.0, -2.0], rtol=1e-6)


def test_the_times_of_a_history_are_converted(root: Path) -> None:
    """drive() keeps times in float64, and takes many steps at once."""
    times = np.linspace(1.0, 9.0, 9)
    results = drive(Model(root, dtype="float32"), times, {}, initial={"u": 1.0}, time="a")
    np.testing.assert_allclose(results["u"], np.sqrt(times), rtol=1e-5)


def test_a_failed_point_is_nan_and_told(root: Path) -> None:
    model = Model(root, dtype="float32")
    a = np.array([4.0, -1.3, 4.0, 9.0], dtype=np.float32)
    guess = np.array([1.0, 1.0, 0.0, 1.0], dtype=np.float32)  # the slope vanishes at u = 0
    with pytest.raises(ConvergenceError) as caught:
        model.forward({"a": a, "u": guess})
    assert caught.value.converged_mask.tolist() == [True, False, False, True]
    result = caught.value.outputs["u"]
    np.testing.assert_allclose(result[[0, 3]], [2.0, 3.0], rtol=1e-6)
    assert np.isnan(result[1:3]).all()


def test_float64_is_refused(root: Path) -> None:
    model = Model(root, dtype="float32")
    with pytest.raises(FatalError, match="'a' must be float32; got float64"):
        model.forward({"a": np.ones(2), "u": np.ones(2, dtype=np.float32)})


@pytest.mark.parametrize("convergence", ["point", "batch"])
def test_the_python_engine_agrees_on_singular_points(root: Path, convergence: str) -> None:
    a, u = np.array([[4, 4, -1, 9], [1, 0, 1, 2]], dtype=np.float32)
    results = []
    for engine in ("python", "native"):
        model = Model(root, dtype="float32", engine=engine)
        model.options.update({"convergence": convergence, "collect_history": 1})
        outputs, report = model.evaluate({"a": a, "u": u})
        results.append({**outputs, **report})
    assert results[1]["status"].tolist() == (
        [0, 3, 3, 0] if convergence == "point" else [2, 3, 2, 2]
    )
    for name, value in results[1].items():
        np.testing.assert_array_equal(results[0][name], value, err_msg=name)


@pytest.mark.parametrize("engine", ["python", "native"])
def test_a_homotopy_goes_from_root_to_root(root: Path, tmp_path: Path, engine: str) -> None:
    """From 1 to 10,000 takes many iterations; with fewer, a goes there from what it was."""
    shutil.copytree(root, tmp_path / "moving")
    metadata = json.loads((root / "metadata.json").read_text())
    metadata["inputs"].append(scalar("a~1"))
    (tmp_path / "moving" / "metadata.json").write_text(json.dumps(metadata))
    model = Model(tmp_path / "moving", dtype="float32", engine=engine)
    model.options.update({"miters": 6, "rescue": 60})
    a = np.array([1e8, 1.5, 1e8, -1e8], dtype=np.float32)
    before = np.array([1, 1, 1e8, 1], dtype=np.float32)  # the third does not move
    outputs, report = model.evaluate({"a": a, "u": np.ones(4, np.float32), "a~1": before})
    assert report["status"].tolist() == [0, 0, 2, 2]
    np.testing.assert_allclose(outputs["u"][:2], np.sqrt(a[:2]), rtol=1e-5)
    assert np.isnan(outputs["u"][2:]).all()
    solves = report["rescue_solves"].tolist()
    assert solves[0] > 2 and solves[1] == 0 and solves[2] == 11 and 11 <= solves[3] <= 60
