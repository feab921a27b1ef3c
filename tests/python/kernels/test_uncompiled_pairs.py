"""What neml2-capi compile says of a derivative by a parameter that cannot be compiled."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full("it traces models")

#: The backward of a power uses its result.
SAVED = """\
[Models]
  [law]
    type = PowerDegradationFunction
    phase = 'd'
    power = 2.5
    degradation = 'g'
  []
[]
"""
#: By its coefficient it can be derived, and not by its order.
NUCLEATION = """\
[Models]
  [law]
    type = AvramiErofeevNucleation
    coef = 0.7
    order = 2.75
    conversion_degree = 'alpha'
    reaction_rate = 'out'
  []
[]
"""
#: An output that the parameter does not move.
APART = """\
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
  [hardening]
    type = LinearIsotropicHardening
    hardening_modulus = 100
    equivalent_plastic_strain = 'ep'
    isotropic_hardening = 'k'
  []
  [law]
    type = ComposedModel
    models = 'elasticity hardening'
  []
[]
"""

#: torch does not trace its derivative.
STIFFNESS = """
[Tensors]
  [C]
    type = Python
    expr = "SSR4(2e5 * torch.eye(6, dtype=torch.float64))"
  []
[]
[Models]
  [law]
    type = GeneralElasticity
    elastic_stiffness_tensor = 'C'
  []
[]
"""
#: NEML2 promotes its parameter and reads it where there is none.
VOLUME = """
[Models]
  [law]
    type = EffectiveVolume
    reference_mass = 4
    open_volume_fraction = 'pores'
    mass_fractions = 'binder solid'
    densities = '1000 2000'
    composite_volume = 'V'
  []
[]
"""


def refused(folder: Path, law: str, *options: str) -> str:
    """The line of the error."""
    if not os.environ.get("NEML2_CAPI_COMPILER") and not importlib.util.find_spec("neml2"):
        pytest.skip("there is no neml2 to compile with")
    (folder / "law.i").write_text(law)
    program = [sys.executable, "-m", "neml2_capi.cli", "compile", str(folder / "law.i")]
    program += ["--model", "law", "-o", str(folder), "--kernels", "only", *options]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error")]
    return line


def test_a_result_without_a_value_is_told_with_its_pair_and_ways_out(tmp_path: Path) -> None:
    line = refused(tmp_path, SAVED, "-p", "p", "-d", "g:law.p")
    assert "the derivative of g with respect to law.p cannot be compiled" in line
    for way in ("others alone, with -d OUT:IN", "neml2/types/functions.py", "neml2.eager"):
        assert way in line


def test_pairs_that_can_be_compiled_are_told_apart(tmp_path: Path) -> None:
    line = refused(tmp_path, NUCLEATION, "-p", "k", "-p", "n", "-d", "out:k", "-d", "out:n")
    assert "the derivative of out with respect to law.n cannot be compiled: torch takes" in line
    assert "Ask for the others alone, with -d out:law.k; or write" in line


def test_an_output_that_depends_on_no_parameter_is_named(tmp_path: Path) -> None:
    pairs = ("-d", "stress:elasticity.E", "-d", "k:elasticity.E")
    line = refused(tmp_path, APART, "-p", "elasticity.E", *pairs)
    assert "the derivative of k with respect to elasticity.E cannot be compiled: k " in line
    assert line.endswith(
        "k depends on none of the parameters. Ask for the others alone, with -d stress:elasticity.E"
    )


def test_what_torch_cannot_trace_is_told_in_a_line_with_its_pair(tmp_path: Path) -> None:
    line = refused(tmp_path, STIFFNESS, "-p", "T", "-d", ":T")
    assert "the derivative of stress with respect to law.T cannot be compiled: " in line
    assert re.search(r", at .*\.py:\d+: `.+`\. Ask for the others alone, with -d", line)


def test_a_parameter_that_neml2_does_not_take_is_named(tmp_path: Path) -> None:
    line = refused(tmp_path, VOLUME, "-p", "M")
    assert "EffectiveVolume of NEML2 takes no values of its parameters (M)" in line
    assert "sites" not in line and "Leave out -p" in line
