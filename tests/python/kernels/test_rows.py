"""Small kernels on rows of a caller: the bits of lanes, and nothing behind what is not finite."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from kernel_setup import ROOT, runs_here, with_kernels

from neml2_capi import Model, examples
from neml2_capi.cli.commands import neml2_capi as command
from neml2_capi.kernels.emit import source
from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import Scalars
from neml2_capi.kernels.simplify import simplified

pytestmark = pytest.mark.numbers

ELASTICITY = examples.path("elasticity")
ON_ROWS = [
    pytest.param(name, marks=pytest.mark.skipif(not runs_here(name), reason="other processor"))
    for name in ("x86-64-v3", "x86-64-v4")
]


def law(shape: tuple[int, ...] = (6,), many: int = 0) -> Program:
    """A stress of a strain, a modulus and a pair of numbers, and the sum of them."""
    s = Scalars()
    strain = [s.variable(0, k) for k in range(shape[0])]
    modulus, pair = s.variable(1, 0), [s.variable(2, k) for k in range(3)]
    trace = s.mul(s.add(s.add(strain[0], strain[1]), strain[2]), s.constant(1 / 3))
    stress = [s.add(s.mul(modulus, s.sub(x, trace)), s.mul(pair[0], trace)) for x in strain[:6]]
    total = s.where(s.gt(pair[1], pair[2]), s.function("sqrt", s.mul(trace, trace)), trace)
    for k in range(many):
        total = s.mul(s.add(total, strain[k % 6]), pair[1])
    inputs = [Array("strain", shape), Array("blocks", (1,)), Array("made", (3,))]
    outputs = [Array("stress", (6,)), Array("given", (1,))]
    return program_of(inputs, outputs, [stress, [total]])


@pytest.mark.parametrize("cc", ["gcc", "clang"], indirect=True)
@pytest.mark.parametrize("target", ON_ROWS)
def test_rows_have_the_bits_of_lanes(built: Callable[..., Any], target: str, cc: str) -> None:
    (kernel,) = built({"law": law()}, target, cc).values()
    random = np.random.default_rng(11)
    points = 3 * kernel.lanes
    strain = random.standard_normal((points, 6))
    modulus = random.uniform(1, 2, (points, 1))
    others = random.standard_normal((points, 3))
    expected = kernel(strain, modulus, others)
    wide = np.full((points, 11), np.nan)
    wide[:, 3:9], wide[:, 10:] = strain, modulus
    for shared in (False, True):
        if shared:
            modulus[:], others[:] = modulus[0], others[0]
            wide[:, 10:] = modulus
            expected = kernel(strain, modulus, others)
        for given in (
            [strain, modulus[:, :], others],
            [wide[:, 3:9], wide[:, 10:], others],
            [wide[:, 3:9], modulus[:1] if shared else modulus, others[:1] if shared else others],
        ):
            done, made = kernel.on_rows(*given)
            assert done == 3
            for found, values in zip(made, expected, strict=True):
                np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("target", ON_ROWS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_nothing_is_written_behind_what_is_not_finite(
    built: Callable[..., Any], target: str, bad: float
) -> None:
    """1e308 is finite: its stress is not."""
    (kernel,) = built({"law": law()}, target).values()
    random = np.random.default_rng(12)
    points = 4 * kernel.lanes
    strain, others = random.standard_normal((points, 6)), random.standard_normal((points, 3))
    modulus = np.full((points, 1), 100.0)
    expected = kernel(strain, modulus, others)
    for place in (0, kernel.lanes - 1, 2 * kernel.lanes + 1, points - 1):
        for array in (strain, others):
            kept, array[place, 1] = array[place, 1], bad
            done, made = kernel.on_rows(strain, modulus, others)
            if not np.isfinite([*map(np.sum, kernel(strain, modulus, others)), bad]).all():
                assert done == place // kernel.lanes
            for found, values in zip(made, expected, strict=True):
                end = done * kernel.lanes
                np.testing.assert_array_equal(found[: min(end, place)], values[: min(end, place)])
                assert np.isnan(found[end:]).all()
            array[place, 1] = kept


def test_large_kernels_have_no_such_function() -> None:
    assert "run_rows" in source(simplified(law()), "law", "")
    for program in (law(many=60), law(shape=(16,))):
        assert "run_rows" not in source(simplified(program), "law", "")


@pytest.mark.parametrize("file", ["header law.hpp", "header law.cl", "page law.html"])
def test_such_a_law_becomes_a_file_for_others(tmp_path: Path, file: str) -> None:
    """Its writers read the text of kernels."""
    assert "run_rows" in (ELASTICITY / "kernels/float64/elasticity.c").read_text()
    kind, name = file.split()
    if kind == "page":
        pytest.importorskip("ziglang")
    done = CliRunner().invoke(command, [kind, str(ELASTICITY), "-o", str(tmp_path / name)])
    assert done.exit_code == 0, (done.output, done.exception)


def test_such_a_law_is_linked_into_a_program(tmp_path: Path, any_cc: str) -> None:
    law = str(tmp_path / "law.c")
    done = CliRunner().invoke(command, ["static", str(ELASTICITY), "-o", law])
    assert done.exit_code == 0, (done.output, done.exception)
    flags = ["-std=c99", "-Wall", "-Werror", "-ffp-contract=off", "-Wno-psabi", "-fsyntax-only"]
    for target in ([], ["-march=x86-64-v3"]):
        source = [*target, f"-I{ROOT / 'include'}", law]
        subprocess.run([any_cc, *flags, *source], check=True)


@pytest.mark.parametrize("target", ON_ROWS)
@pytest.mark.parametrize("name", ["elasticity", "elasticity_parameters"])
def test_points_that_are_not_finite_are_alone(name: str, target: str) -> None:
    """A batch of full blocks, and the same points one by one, to the bit."""
    model = Model(with_kernels(name, target))
    model.options["kernels"] = "required"
    random = np.random.default_rng(13)
    points = 2048 + 61
    strain = 1e-3 * random.standard_normal((points, 6))
    strain[[0, 70, 71, 1000, 2047, 2048, points - 1], [0, 1, 2, 3, 4, 5, 0]] = np.nan
    strain[500, 3] = np.inf
    many, report = model.evaluate({"strain": strain})
    alone = [model.evaluate({"strain": strain[p : p + 1]}) for p in range(points)]
    for p, (values, its) in enumerate(alone):
        np.testing.assert_array_equal(many["stress"][p], values["stress"][0])
        assert report["status"][p] == its["status"][0]
    assert (report["status"] != 0).sum() == 8


@pytest.mark.parametrize("target", ON_ROWS)
def test_arrays_of_any_layout_are_taken(target: str) -> None:
    """Also one array for inputs and outputs."""
    model = Model(with_kernels("elasticity", target))
    model.options["kernels"] = "required"
    random = np.random.default_rng(14)
    strain = 1e-3 * random.standard_normal((101, 6))
    expected = model.forward({"strain": strain})["stress"]
    for stride, begin in ((6, 1), (7, 0), (12, 3)):
        memory = np.zeros(101 * stride + 8)
        view = np.lib.stride_tricks.as_strided(memory[begin:], (101, 6), (8 * stride, 8))
        view[:] = strain
        for made in (np.empty((101, 6)), np.empty((101, 9))[:, 2:8], view):
            model.bind({"strain": view}, {"stress": made}).run()
            np.testing.assert_array_equal(made, expected)
