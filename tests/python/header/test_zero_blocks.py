"""Laws of several groups of unknowns, of which some do not depend on each other."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from header_hosts import assert_same_bits, built, evaluated, in_lanes, text_of
from kernel_setup import ROOT, require_compiler

from neml2_capi import Model

pytestmark = pytest.mark.full("it compiles a model")

POINTS, GRAINS = 9, 3


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A polycrystal without packages: the residual of the mean stress does not see the strain."""
    if not os.environ.get("NEML2_CAPI_COMPILER") and not importlib.util.find_spec("neml2"):
        pytest.skip("there is no neml2 to compile with")
    require_compiler("cc")
    folder = tmp_path_factory.mktemp("zero")
    law = ROOT / "tests" / "models" / "polycrystal.i"
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(law), "--kernels", "only"]
    command += ["--model", "polycrystal", "--output-dir", str(folder)]
    command += ["-d", "strain:applied_stress", "-d", "strain:strain~1"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "polycrystal"


def test_a_block_that_is_zero_is_left_out(root: Path, tmp_path: Path) -> None:
    model = Model(root)
    random = np.random.default_rng(0)
    inputs = {
        "strain~1": 1e-3 * random.standard_normal((POINTS, 6)),
        "t": np.full(POINTS, 0.02),
        "t~1": np.zeros(POINTS),
        "strength": 150 + 50 * random.random((POINTS, GRAINS)),
        "applied_stress": 200 * random.standard_normal((POINTS, 6)),
        "stress~1": 150 * random.standard_normal((POINTS, GRAINS, 6)),
    }
    text = text_of(model)
    for compiler in ("g++", "clang++"):
        folder = tmp_path / compiler
        folder.mkdir()
        ours = evaluated(built(text, folder, require_compiler(compiler)), model, inputs)
        assert (ours.status == 0).any()
        assert_same_bits(ours, in_lanes(model, inputs))
