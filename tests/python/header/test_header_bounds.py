"""Bounds of a law in its header: points beyond fail as in the library, with its reports."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from bounded import bounded, quiet  # noqa: F401  (a fixture)
from click.testing import CliRunner
from header_hosts import assert_same_bits, built, evaluated, in_lanes, points_of, text_of
from kernel_setup import require_compiler

from neml2_capi import Model, examples
from neml2_capi._ffi.library import lib
from neml2_capi.cli.commands import neml2_capi as command

pytestmark = pytest.mark.numbers

LAW = "isotropic_hardening"
VALID = {"strain": (-0.05, 0.05), "stress~1": (-1e4, None)}
PHYSICAL = {"E": (0, None), "t": (0, 1e3)}


@pytest.mark.parametrize("policy", ["warn", "fail"])
def test_points_beyond_are_those_of_the_library(policy: str, tmp_path: Path) -> None:
    model = Model(bounded(tmp_path, examples.path(LAW), VALID, PHYSICAL))
    model.options.update({"kernels": "required", "bounds": policy})
    inputs = points_of(f"example {LAW}", model)
    inputs["t"][5] = -1.0
    inputs["t"][6] = 1e3  # on the bound, which is within
    inputs["stress~1"][7, 3] = -2e4
    inputs["strain"][8, 1] = 0.06
    inputs["strain"][9], inputs["t"][9] = np.nan, -2.0
    inputs["strain"][10], inputs["stress~1"][10] = 1.0, -1e5
    host = built(text_of(model), tmp_path, require_compiler("g++"), "-O1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library alone
        theirs = in_lanes(model, inputs)
    ours = evaluated(host, model, inputs)
    assert_same_bits(ours, theirs)
    np.testing.assert_array_equal(ours.cut, theirs.cut)
    beyond = np.flatnonzero(ours.status == lib.NEML2_OUT_OF_BOUNDS)
    assert {5, 9} <= {*beyond} and 6 not in beyond
    assert ({7, 8, 10} <= {*beyond}) == (policy == "fail")


def test_the_command_says_whether_points_beyond_fail(tmp_path: Path) -> None:
    root = bounded(tmp_path, examples.path(LAW), VALID)
    for asked, value in (([], 0), (["--bounds", "fail"], 1)):
        for name, text in (
            ("steel.hpp", f"int fail_beyond_bounds = {value};"),
            ("steel.cl", f"rules.fail_beyond_bounds = {value};"),
        ):
            done = CliRunner().invoke(
                command, ["header", str(root), "-o", str(tmp_path / name), *asked]
            )
            assert done.exit_code == 0, done.output
            assert text in (tmp_path / name).read_text()


def test_a_law_without_bounds_has_no_word_of_them() -> None:
    with Model(examples.path(LAW)) as model:
        text = text_of(model)
    assert "beyond_bounds" not in text
