"""Derivatives of forward laws by inputs with sites: answered if no site sees another one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_setup import require_compiler
from numpy.typing import NDArray

from neml2_capi import FatalError, Model

pytestmark = pytest.mark.full("it compiles models")

Array = NDArray[np.float64]

#: Values at the edges between cells; the last one is given.
EDGES = """
[Settings]
  [example_batch_shape]
    q = '(2; 3)'
  []
[]
[Tensors]
  [centers]
    type = Python
    expr = 'Scalar(torch.tensor([0.0, 0.5, 1.5], dtype=torch.float64), sub_batch_ndim=1)'
  []
  [edges]
    type = Python
    expr = 'Scalar(torch.tensor([0.0, 0.2, 1.0, 2.0], dtype=torch.float64), sub_batch_ndim=1)'
  []
[]
[Models]
  [inner]
    type = LinearlyInterpolateToCellEdges
    cell_values = 'q'
    cell_centers = 'centers'
    cell_edges = 'edges'
    edge_values = 'inner'
  []
  [right]
    type = FiniteVolumeAppendBoundaryCondition
    input = 'inner'
    bc_value = 0.0
    side = 'right'
  []
  [edge]
    type = ComposedModel
    models = 'inner right'
  []
[]
"""
#: A rate at each site, and how it differs from their mean.
RATES = """
[Settings]
  [example_batch_shape]
    x = '(2; 3)'
  []
[]
[Models]
  [rate]
    type = SR2VariableRate
    variable = 'x'
  []
  [mean]
    type = SR2IntermediateMean
    from = 'x_rate'
    to = 'mean_rate'
    reduces = 'grain'
  []
  [difference]
    type = SR2LinearCombination
    from = 'x_rate mean_rate'
    to = 'deviation'
    weights = '1 -1'
  []
  [deviation]
    type = ComposedModel
    models = 'rate mean difference'
  []
[]
"""

#: A phase that begins at a temperature, and how it differs from the mean.
PHASES = """
[Settings]
  [example_batch_shape]
    T = '(2; 5)'
  []
[]
[Models]
  [step]
    type = HermiteSmoothStep
    argument = 'T'
    value = 'phase'
    lower_bound = 800
    upper_bound = 1100
  []
  [tensor]
    type = ScalarToDiagonalSR2
    input = 'phase'
    output = 'x'
  []
  [mean]
    type = SR2IntermediateMean
    from = 'x'
    to = 'mean_x'
    reduces = 'grain'
  []
  [difference]
    type = SR2LinearCombination
    from = 'x mean_x'
    to = 'phases'
    weights = '1 -1'
  []
  [phases]
    type = ComposedModel
    models = 'step tensor mean difference'
  []
[]
"""
#: A law that has a number for parts of one only.
PARTS = """
[Settings]
  [example_batch_shape]
    c = '(2; 8)'
  []
[]
[Models]
  [part]
    type = AvramiErofeevNucleation
    coef = 0.5
    order = 0.7
    conversion_degree = 'c'
    reaction_rate = 'f'
  []
[]
"""


def compiled(folder: Path, law: str, name: str, pair: str) -> Path:
    pytest.importorskip("neml2")
    require_compiler("cc")
    (folder / "law.i").write_text(law)
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(folder / "law.i")]
    command += ["--model", name, "--output-dir", str(folder), "-d", pair]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / name


def inputs_of(model: Model, least: float = 0.5, most: float = 1.5) -> dict[str, Array]:
    random = np.random.default_rng(0)
    return {v.name: random.uniform(least, most, (2, *v.point_shape)) for v in model.inputs}


@pytest.mark.parametrize(
    ("law", "name", "output", "by", "within"),
    [
        (EDGES, "edge", "inner_with_bc_right", "q", (0.5, 1.5)),
        (RATES, "deviation", "deviation", "x", (0.5, 1.5)),
        (PHASES, "phases", "phases", "T", (850.0, 1050.0)),
    ],
    ids=["edges", "mean", "threshold"],
)
def test_what_couples_sites_is_refused(
    tmp_path: Path, law: str, name: str, output: str, by: str, within: tuple[float, float]
) -> None:
    root = compiled(tmp_path, law, name, f"{output}:{by}")
    for engine in ("native", "python"):
        model = Model(root, engine=engine)
        inputs = inputs_of(model, *within)
        along = np.zeros_like(inputs[by])
        along[:, 0] = 1.0
        with pytest.raises(FatalError, match="not the same at all of them"):
            model.jvp(inputs, {by: along})
        with pytest.raises(FatalError, match="an adjoint at each of them cannot be told"):
            model.vjp(inputs, {output: np.ones_like(model.forward(inputs)[output])})
        size = 1e-6 * within[1]
        step = size * np.ones_like(along)
        above, below = (
            model.forward({**inputs, by: inputs[by] + s})[output] for s in (step, -step)
        )
        product = model.jvp(inputs, {by: np.ones_like(along)})[1][output]
        np.testing.assert_allclose(product, (above - below) / (2 * size), atol=1e-7)


def test_sites_that_are_apart_have_products(tmp_path: Path) -> None:
    """Though a rate is no number if all inputs are equal."""
    root = compiled(tmp_path, RATES, "rate", "x_rate:x")
    for engine in ("native", "python"):
        model = Model(root, engine=engine)
        inputs: dict[str, Any] = inputs_of(model)
        along = np.random.default_rng(1).standard_normal(inputs["x"].shape)
        length = (inputs["t"] - inputs["t~1"])[:, np.newaxis, np.newaxis]
        product = model.jvp(inputs, {"x": along})[1]["x_rate"]
        np.testing.assert_allclose(product, along / length, rtol=1e-12)
        adjoint = model.vjp(inputs, {"x_rate": along})[1]["x"]
        np.testing.assert_allclose(adjoint, along / length, rtol=1e-12)


def test_a_law_that_is_defined_for_few_values_is_answered(tmp_path: Path) -> None:
    root = compiled(tmp_path, PARTS, "part", "f:c")
    for engine in ("native", "python"):
        model = Model(root, engine=engine)
        c = inputs_of(model, 0.1, 0.9)["c"]
        along = np.random.default_rng(1).standard_normal(c.shape)
        above, below = (model.forward({"c": c + h * along})["f"] for h in (1e-6, -1e-6))
        product = model.jvp({"c": c}, {"c": along})[1]["f"]
        np.testing.assert_allclose(product, (above - below) / 2e-6, rtol=1e-5, atol=1e-7)
