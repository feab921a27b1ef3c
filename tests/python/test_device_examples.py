"""Programs of examples/device, which inline a law, have the results of the library."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from native import CXX, ROOT, command, folder, run
from programs import cmake

from neml2_capi import Model, examples
from neml2_capi.header import header

pytestmark = [pytest.mark.native, pytest.mark.full("programs around the header of a law")]

PROGRAMS = ROOT / "examples" / "device"
POINTS, STEPS = 40, 10
WARNINGS = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror")


@cache
def steel() -> Path:
    """The folder of steel.hpp."""
    root = examples.path("isotropic_hardening")
    with Model(root) as model:
        (folder() / "steel.hpp").write_text(header(root, model, "c++", "steel"))
    return folder()


@cache
def expected() -> str:
    """What each program prints: strain, stress and tangent of points that are pulled."""
    model = Model(examples.path("isotropic_hardening"))
    model.options["kernels"] = "required"
    strain = np.zeros((STEPS + 1, POINTS, 6))
    axial = np.outer(np.arange(STEPS + 1), np.arange(POINTS))
    strain[:, :, 0] = 0.01 * axial / (POINTS * STEPS)
    strain[:, :, 1] = strain[:, :, 2] = -0.5 * strain[:, :, 0]
    state = model.state(POINTS)
    for step in range(1, STEPS + 1):
        outputs, tangent = model.jacobian(state.inputs(strain=strain[step], t=float(step)))
        state.advance(outputs)
    found = zip(strain[-1, :, 0], outputs["stress"], tangent["stress"]["strain"], strict=True)
    lines = [f"{e:.5f} {s[0]:.17g} MPa, tangent {c[0, 0]:.17g} MPa\n" for e, s, c in found]
    return "".join(lines)


def test_openmp_on_the_host_has_the_bits_of_the_library() -> None:
    program = steel() / "openmp"
    source = PROGRAMS / "openmp.cpp"
    command(CXX, *WARNINGS, "-fopenmp", source, f"-I{steel()}", "-o", program)
    assert run(program, str(POINTS)) == expected()


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_a_quadrature_loop_in_cuda_has_them_on_the_host(architecture: str) -> None:
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("nvcc is not installed")
    program = steel() / f"quadrature_{architecture}"
    command(
        *(nvcc, "-std=c++17", "-O2", f"-arch={architecture}", "-Xcompiler", "-Wall"),
        *(PROGRAMS / "quadrature.cu", f"-I{steel()}", "-o", program),
    )
    assert run(program, str(POINTS)) == expected()  # on a GPU, if there is one


def test_kokkos_has_them_on_what_it_was_built_for() -> None:
    root = os.environ.get("KOKKOS_ROOT")
    if not root:
        pytest.skip("KOKKOS_ROOT names no installation of Kokkos")
    build = steel() / "kokkos"
    options = [f"-DKokkos_ROOT={root}", f"-DSTEEL={steel()}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra"]
    command(cmake(), "-S", PROGRAMS, "-B", build, *options)
    command(cmake(), "--build", build)
    assert run(build / "tension", str(POINTS)) == expected()


def test_the_material_for_moose_compiles_in_an_application() -> None:
    flags = os.environ.get("MOOSE_CXXFLAGS")
    if not flags:
        pytest.skip("MOOSE_CXXFLAGS holds no flags of an application: make echo_include shows them")
    source = PROGRAMS / "moose" / "ComputeSteelStress.C"
    command(CXX, "-fsyntax-only", *flags.split(), f"-I{steel()}", source)
