"""A value that a later segment makes again has the derivatives of that segment alone."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_setup import native_target, require_compiler

from neml2_capi import Model

#: x = 2 a, from which y = -x / 3 is solved for; and then x = 5 b.
INPUT = """
[Models]
  [trial]
    type = ScalarLinearCombination
    from = 'a'
    to = 'x'
    weights = '2'
  []
  [balance]
    type = ScalarLinearCombination
    from = 'y x'
    to = 'y_residual'
    weights = '3 1'
  []
  [solve]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
  [update]
    type = ComposedModel
    models = 'trial solve'
    additional_outputs = 'y'
  []
  [after]
    type = ScalarLinearCombination
    from = 'b'
    to = 'x'
    weights = '5'
  []
  [remade]
    type = ComposedModel
    models = 'update after'
    additional_outputs = 'y'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'balance'
    unknowns = 'y'
  []
[]
[Solvers]
  [newton]
    type = Newton
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
"""
DERIVATIVES = {("x", "a"): 0.0, ("x", "b"): 5.0, ("y", "a"): -2 / 3, ("y", "b"): 0.0}

pytestmark = pytest.mark.full("it compiles a model")


def test_only_the_last_value_of_a_name_is_derived(tmp_path: Path) -> None:
    if not os.environ.get("NEML2_CAPI_COMPILER") and not importlib.util.find_spec("neml2"):
        pytest.skip("there is no neml2 to compile with")
    require_compiler("cc")
    source = tmp_path / "remade.i"
    source.write_text(INPUT)
    words = ["--model", "remade", "--output-dir", str(tmp_path), "--kernels", "only", "-d", ":"]
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(source), *words]
    subprocess.run([*command, "--target", native_target()], check=True)
    inputs = {name: np.array([1.0, 2.0]) for name in ("a", "b", "y")}
    with Model(tmp_path / "remade") as model:
        for some in *([each] for each in DERIVATIVES), [("x", "a"), ("y", "a")], [*DERIVATIVES]:
            asked: dict[str, dict[str, bool]] = {}
            for output, variable in some:
                asked.setdefault(output, {})[variable] = True
            call = model.bind(inputs, derivatives=asked)
            call()
            for output, variable in some:
                found = call.derivatives[output][variable]
                np.testing.assert_allclose(found, DERIVATIVES[output, variable], rtol=1e-14)
        for name in ("a", "b"):
            along = model.jvp(inputs, {name: np.ones(2)})[1]
            for output in ("x", "y"):
                np.testing.assert_allclose(along[output], DERIVATIVES[output, name], rtol=1e-14)
