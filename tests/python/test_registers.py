"""A budget of stack and spills on devices, as compilers count them: no device is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from kernel_setup import with_kernels

from neml2_capi import examples

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import device_compilers  # noqa: E402  (benchmarks is no package)
import registers  # noqa: E402

pytestmark = [pytest.mark.native, pytest.mark.full("compilers for devices take a minute")]


@cache
def law(name: str, language: str, derivatives: bool) -> str:
    folder = examples.path(name) if name in examples.NAMES else with_kernels(name)
    return registers.text(folder, language, derivatives=derivatives)


def chosen(compiler: Callable[[], device_compilers.Compiler]) -> device_compilers.Compiler:
    try:
        return compiler()
    except device_compilers.NoCompilerError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("name", "derivatives"),
    [("isotropic_hardening", False), ("isotropic_hardening", True), ("radial_return", False)],
)
def test_j2_stays_in_the_registers_of_cuda(name: str, derivatives: bool, architecture: str) -> None:
    cost = chosen(device_compilers.cuda)(law(name, "c++", derivatives), architecture)
    assert (cost.stack, cost.spills) == (0, 0), cost


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_tangents_of_several_segments_keep_few_numbers(architecture: str) -> None:
    compiler = chosen(device_compilers.cuda)
    cost = compiler(law("radial_return", "c++", True), architecture)
    assert cost.stack <= 1536 and cost.spills <= 2560, cost
    cost = compiler(law("relaxation", "c++", True), architecture)
    assert cost.stack <= 128 and cost.spills == 0, cost


def test_nvrtc_alone_compiles_a_law() -> None:
    """What a program without the toolkit has; its text includes nothing."""
    compiler = chosen(device_compilers.nvrtc)
    cost = compiler(law("elasticity", "c++", True), "sm_80")
    assert (cost.stack, cost.spills) == (0, 0), cost


@pytest.mark.parametrize("name", ["isotropic_hardening", "radial_return"])
def test_j2_stays_in_the_registers_of_amd(name: str) -> None:
    cost = chosen(device_compilers.amd)(law(name, "opencl", False), "gfx90a")
    assert (cost.stack, cost.spills) == (0, 0), cost
