"""The table of docs/design/lane-engine.md: what models lack in kernels and lanes, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from kernel_setup import ROOT, Captured, model_names, with_kernels
from states import state_of
from test_kernels_only import kernels_only

from neml2_capi import Error, Model

pytestmark = pytest.mark.numbers

PAGE = ROOT / "docs" / "design" / "lane-engine.md"
_LONG = {"crystal", "crystal_powers"}
NAMES = [
    pytest.param(
        name, marks=[pytest.mark.full("its kernels take long to compile")] * (name in _LONG)
    )
    for name in model_names()
    if name != "crystal_powers"  # it has no packages to compare with
]


def without_kernels(graphs: Captured) -> Iterator[str]:
    """The graphs that have no kernel and are no linear solve of the engine's own, with reasons."""
    for package, found in graphs.programs.items():
        if isinstance(found, str) and "linalg_solve" not in found:
            reason = re.sub(" [(].*?[)]", "", found).partition(";")[0]
            reason = reason.partition(", at ")[0]  # the line of NEML2
            yield f"`{package.removesuffix('.pt2')}`: {reason}"


def against_lanes(model: Model, name: str) -> Iterator[str]:
    """Why values, a Jacobian and a product with tangents do not run in lanes."""
    inputs = state_of(name, model)
    directions = {key: np.ones_like(value) for key, value in inputs.items()}
    asked: dict[str, Callable[[], object]] = {"": lambda: model.forward(inputs)}
    if model.derivatives:
        asked["Jacobian: "] = lambda: model.jacobian(inputs)[0]
        asked["products: "] = lambda: model.jvp(inputs, directions)[0]
    model.options["kernels"] = "required"
    for what, evaluate in asked.items():
        try:
            evaluate()
        except Error as error:
            found = re.search(r"cannot run in lanes: (.*)\.", str(error))
            assert found, error
            yield what + found[1]
            if not what:
                return


def against_kernels_alone(root: Path, dtype: str) -> str:
    try:
        model = Model(root, dtype=dtype)
        model.forward(state_of(root.name, model))
    except Error as error:
        needed = re.search(r"(\w+)\.pt2", str(error))
        assert needed, error
        return f"needs `{needed[1]}`"
    return "yes"


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_what_a_model_lacks(
    name: str, captured: Callable[[str], Captured], tmp_path: Path
) -> None:
    root = with_kernels(name)
    dtype = "float32" if name.endswith("float32") else "float64"
    missing = ", ".join(without_kernels(captured(name))) or "none"
    lanes = "; ".join(against_lanes(Model(root, dtype=dtype), name)) or "yes"
    alone = against_kernels_alone(kernels_only(name, tmp_path), dtype)
    row = f"| {name} | {missing} | {lanes} | {alone} |"
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {name} |")]
    lacks = [row] if (missing, lanes, alone) != ("none", "yes", "yes") else []
    assert rows == lacks, f"write to {PAGE.name}: {row if lacks else 'nothing of ' + name}"
