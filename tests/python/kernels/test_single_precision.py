"""Kernels in float32 of laws that cut increments, or have sites.

neml2-compile 3.1.0 writes float64 packages whatever it is asked for, so these are its graphs, in
other numbers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_setup import Captured, native_target, with_kernels
from states import state_of

from neml2_capi import Model
from neml2_capi.kernels.build import build
from neml2_capi.kernels.emit import source
from neml2_capi.kernels.folder import write_sources
from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import Scalars

pytestmark = pytest.mark.numbers

POINTS = 61
#: What float32 can hold, so that both precisions cut the same increments.
TOLERANCES = {"atol": 1e-4, "rtol": 1e-5}


def in_float32(name: str, into: Path) -> Path:
    """An artifact of kernels alone."""
    source = with_kernels(name)
    root = Path(shutil.copytree(source, into / source.name, ignore=shutil.ignore_patterns("*.pt2")))
    for old in ("cpu", "kernels"):
        shutil.rmtree(root / old)
    programs = {
        package: replace(found, real="float32") if isinstance(found, Program) else found
        for package, found in Captured(name).programs.items()
    }
    metadata = json.loads((root / "metadata.json").read_text())
    folder = write_sources(root, "cpu/float32", programs, metadata, {"neml2": "3.1.0"})
    build(folder, [native_target()])
    return root


def solved(model: Model, state: dict[str, Any], rescue: int) -> dict[str, Any]:
    """Outputs of points that are given more and more of a state."""
    model.options.update(TOLERANCES | {"rescue": rescue})
    inputs = {}
    for variable in model.inputs:
        moves = "~" not in variable.name and variable.name != "t"
        factors = np.linspace(1, 10 if moves else 1, POINTS)
        value = np.multiply.outer(factors, np.asarray(state[variable.name])[0])
        inputs[variable.name] = value.astype(variable.dtype)
    return dict(model.forward(inputs))


@pytest.mark.parametrize("name", ["ramped_bar", "grains"])
def test_a_law_in_float32_gives_what_it_gives_in_float64(name: str, tmp_path: Path) -> None:
    whole, single = Model(with_kernels(name)), Model(in_float32(name, tmp_path), dtype="float32")
    state = state_of(name, whole)
    for rescue in (0, 100):
        expected, found = (solved(model, state, rescue) for model in (whole, single))
        for output, values in expected.items():
            assert found[output].dtype == np.float32
            scale = np.abs(values).max()
            np.testing.assert_allclose(found[output], values, rtol=0, atol=1e-6 * scale)


def test_a_constant_that_a_float_cannot_hold_is_infinite(built: Callable[..., Any]) -> None:
    """Compilers warn of 1e+300f, with which steps in double precision ask for finite pivots."""
    s = Scalars()
    results = [s.truth(s.gt(s.constant(1e300), s.variable(0, 0))), s.constant(-1e39)]
    results[0] = s.where(results[0], s.constant(1.0), s.constant(0.0))
    program = program_of([Array("x", (1,))], [Array("y", (2,))], [results])
    program = replace(program, real="float32")
    assert "e+300f" not in source(program, "law", "")
    (kernel,) = built({"law": program}).values()
    found = kernel(np.array([[3e38], [np.inf], [np.nan]], np.float32))[0]
    np.testing.assert_array_equal(found, [[1, -np.inf], [0, -np.inf], [0, -np.inf]])
