"""The functions of kernels in a header, beside lanes: negative bases, masks, large angles."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from header_hosts import FUSING, assert_same_bits, built, evaluated, in_lanes, text_of
from kernel_setup import native_target, require_compiler

from neml2_capi import Model
from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import write_sources
from neml2_capi.kernels.folding import FUNCTIONS
from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import Node, Scalars

pytestmark = pytest.mark.numbers

SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1 / 3, -7.0, 2.0**53, -(2.0**53) - 2),
    *(1e300, -1e300, 1e22, -1e22, 5e-324, -5e-324, np.inf, -np.inf, np.nan, 2.0**20, 1e5, 80.25),
)


def program(real: str) -> Program:
    """All functions of x and y, and choices by truth values."""
    s = Scalars()
    x, y = s.variable(0, 0), s.variable(0, 1)
    results = [s.function(name, x) for name in sorted(FUNCTIONS)]
    results += [s.binary(name, x, y) for name in ("atan2", "hypot", "fmod", "copysign")]
    results += [s.pow(x, y), s.greatest(x, y), s.least(x, y)]
    results += [s.pow(x, s.constant(value)) for value in (-2.0, 0.5, 2.5, 3.0, 7.0)]
    results += [choice(s, x, y), s.div(x, y), s.add(s.mul(x, y), x)]
    made = program_of([Array("x", (2,))], [Array("z", (len(results),))], [results])
    made.real = real
    return made


def choice(s: Scalars, x: Node, y: Node) -> Node:
    """Of truth values that are joined and denied."""
    first, second = s.not_(s.gt(x, y)), s.and_(s.ge(x, s.constant(0)), s.not_(s.eq(y, x)))
    return s.where(s.or_(first, s.not_(second)), s.add(x, y), s.sub(x, y))


def model(root: Path, real: str) -> Model:
    """An artifact of the program alone."""
    made = program(real)
    size = made.outputs[0].components
    variables = [
        {"name": name, "var_size": n, "var_type": "Vec", "base_shape": [n]}
        for name, n in (("x", 2), ("z", size))
    ]
    metadata = {
        "schema_version": 14,
        "type": "composed",
        "inputs": variables[:1],
        "outputs": variables[1:],
        "segments": [
            {
                "kind": "forward",
                "package": "functions.pt2",
                "inputs": [{"name": "x"}],
                "outputs": [{"name": "z"}],
                "param_inputs": [],
            }
        ],
        "parameters": [],
        "derivatives": [],
        "parameter_derivatives": [],
    }
    (root / "cpu" / real).mkdir(parents=True)
    (root / "metadata.json").write_text(json.dumps(metadata))
    versions = {"neml2": "none"}
    folder = write_sources(root, f"cpu/{real}", {"functions.pt2": made}, metadata, versions)
    build(folder, [native_target()])
    return Model(root, dtype=real)


def values(real: str) -> np.ndarray:
    random = np.random.default_rng(5)
    with np.errstate(over="ignore"):
        special = np.array([*itertools.product(SPECIAL, repeat=2)]).astype(real)
    wide = random.standard_normal((2000, 2)) * 10.0 ** random.uniform(-20, 20, (2000, 2))
    return np.concatenate([special, wide.astype(real), random.uniform(-9, 9, (2000, 2))])


@pytest.mark.full("functions of kernels are compiled")
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("real", ["float64", "float32"])
def test_functions_have_the_bits_of_lanes(real: str, compiler: str, tmp_path: Path) -> None:
    law = model(tmp_path / "functions", real)
    law.options["kernels"] = "required"
    inputs = {"x": values(real).astype(law.dtype)}
    theirs = in_lanes(law, inputs)
    for number, options in enumerate(((), FUSING)):
        folder = tmp_path / str(number)
        host = built(text_of(law), folder, require_compiler(compiler), *options)
        assert_same_bits(evaluated(host, law, inputs), theirs)
