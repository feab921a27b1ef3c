"""neml2-capi compile keeps the sub-batch sites that neml2-compile loses between segments."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_setup import ROOT, native_target, require_compiler

from neml2_capi import FatalError, Model

pytestmark = pytest.mark.full("it compiles models")

RATE, WIDTH = np.array([-1.0, -2.0, -4.0]), np.array([0.5, 0.25, 2.0])
VOLUME = 4 / 3 * np.pi * np.array([1.0, 2.0, 3.0]) ** 3
DENSITY = np.array([[1.0, 2.0, 3.0], [4.0, 0.5, 1.0], [2.0, 2.0, 5.0], [1.0, 7.0, 1.0]])
IN_BINS = ("--example-batch-shape", "density=(2;3)")


def compiled(model: str, into: Path, *options: str) -> subprocess.CompletedProcess[str]:
    if not os.environ.get("NEML2_CAPI_COMPILER") and not importlib.util.find_spec("neml2"):
        pytest.skip("there is no neml2 to compile with")
    require_compiler("cc")
    command = [sys.executable, "-m", "neml2_capi.cli", "compile"]
    command += [str(ROOT / "tests" / "models" / "bins.i"), "--model", model, "--kernels", "only"]
    command += ["--output-dir", str(into), "--target", native_target(), *options]
    return subprocess.run(command, capture_output=True, text=True)


def artifact(model: str, into: Path, *options: str) -> Path:
    done = compiled(model, into, *options)
    assert done.returncode == 0, done.stderr
    return into / model


@pytest.mark.parametrize("inflow", ["(2;3)", "(2,)"])
def test_every_segment_has_the_sites_of_its_values(tmp_path: Path, inflow: str) -> None:
    """A segment before the implicit one, and one after it, have constants in each bin."""
    root = artifact("bins", tmp_path, *IN_BINS, "--example-batch-shape", f"inflow={inflow}")
    told = {v["name"]: v["sub_batch_shape"] for v in _metadata(root)["outputs"]}
    assert told.pop("fraction") == []
    assert told == {name: [3] for name in ("density", "count", "supply", "turnover")}
    flow = np.full((4, 3) if inflow == "(2;3)" else 4, 0.3)
    state = {"density~1": DENSITY, "inflow": flow, "t": np.full(4, 0.1), "t~1": np.zeros(4)}
    got = Model(root).forward(state)
    supply = np.broadcast_to(0.3 * WIDTH, (4, 3))
    density = (DENSITY + 0.1 * supply) / (1 - 0.1 * RATE)
    np.testing.assert_allclose(got["density"], density, rtol=1e-10)
    np.testing.assert_allclose(got["count"], WIDTH * density, rtol=1e-10)
    np.testing.assert_allclose(got["turnover"], supply + WIDTH * density, rtol=1e-10)
    np.testing.assert_allclose(got["fraction"], (WIDTH * density) @ VOLUME, rtol=1e-10)


def test_derivatives_have_them_too(tmp_path: Path) -> None:
    root = artifact("after", tmp_path, *IN_BINS, "-d", ":")
    model = Model(root)
    outputs, blocks = model.jacobian({"density": DENSITY})
    np.testing.assert_allclose(outputs["fraction"], (WIDTH * DENSITY) @ VOLUME, rtol=1e-12)
    by_bin = np.broadcast_to(blocks["count"]["density"], (4, 3))
    np.testing.assert_allclose(by_bin, np.broadcast_to(WIDTH, (4, 3)), rtol=1e-12)
    _, along = model.jvp({"density": DENSITY}, {"density": np.full((4, 3), 0.5)})
    np.testing.assert_allclose(along["fraction"], np.full(4, 0.5 * WIDTH @ VOLUME), rtol=1e-12)
    with pytest.raises(FatalError, match=r"fraction:density.*same change at all 3"):
        model.jvp({"density": DENSITY}, {"density": DENSITY})


def test_a_derivative_between_cells_and_edges_is_one_change_of_all_cells(tmp_path: Path) -> None:
    model = Model(artifact("between", tmp_path, *IN_BINS, "-d", ":"))
    count = WIDTH * DENSITY
    expected = (count[:, 1:] + count[:, :-1]) / 2
    np.testing.assert_allclose(model.forward({"density": DENSITY})["edges"], expected, rtol=1e-12)
    _, along = model.jvp({"density": DENSITY}, {"density": np.full((4, 3), 2.0)})
    np.testing.assert_allclose(along["edges"], np.tile(WIDTH[1:] + WIDTH[:-1], (4, 1)), rtol=1e-12)
    with pytest.raises(FatalError, match=r"edges:density.*same change at all 3"):
        model.jvp({"density": DENSITY}, {"density": DENSITY})


def test_sites_that_were_not_declared_are_asked_for(tmp_path: Path) -> None:
    done = compiled("bins", tmp_path)
    assert done.returncode != 0
    words = " ".join(done.stderr.split())
    assert "equations of density have 3 components, and the unknowns 1" in words
    assert "--example-batch-shape 'density=(2;8)'" in words


def test_a_parameter_with_sites_cannot_change_at_run_time(tmp_path: Path) -> None:
    done = compiled("after", tmp_path, *IN_BINS, "-p", "count.scaling")
    assert done.returncode != 0
    assert "count.scaling has the shape (3,)" in " ".join(done.stderr.split())


def _metadata(root: Path) -> dict[str, list[dict[str, object]]]:
    document: dict[str, list[dict[str, object]]] = json.loads((root / "metadata.json").read_text())
    return document
