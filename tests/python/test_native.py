"""The C and Fortran programs: the scenarios of tests/c and tests/fortran, and the examples."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from native import (
    PREBUILT,
    ROOT,
    TESTS,
    c_program,
    fortran_program,
    needs_fortran,
    run,
)
from numpy.typing import NDArray

from neml2_capi import Model

Results = dict[tuple[str, ...], NDArray[np.float64]]

# These take arguments: test_static_batch and test_tangents below, test_cycles in test_leaks.py,
# test_signatures in test_graphs.py.
WITH_ARGUMENTS = {"test_static_batch", "test_tangents", "test_cycles", "test_signatures"}
C_TESTS, FORTRAN_TESTS = (
    [path for path in sorted(TESTS.glob(pattern)) if path.stem not in WITH_ARGUMENTS]
    for pattern in ("c/test_*.c", "fortran/test_*.f90")
)

EXAMPLE_C = ROOT / "examples" / "c" / "example.c"
EXAMPLE_FORTRAN = ROOT / "examples" / "fortran" / "example.f90"


@pytest.mark.parametrize("source", C_TESTS, ids=lambda path: path.stem)
def test_c_program_passes(source: Path) -> None:
    run(c_program(source))


def test_static_batch_is_never_run_at_another_size(artifacts: Mapping[str, Path]) -> None:
    program = c_program(TESTS / "c" / "test_static_batch.c")
    run(program, artifacts["elasticity_static"])


def test_tangents_of_implicit_models(artifacts: Mapping[str, Path]) -> None:
    models = ("isotropic_hardening", "radial_return", "crystal")
    run(c_program(TESTS / "c" / "test_tangents.c"), *(artifacts[name] for name in models))


def test_graphs_of_other_kinds(graphs: Path) -> None:
    """Integer kernels, OpenMP regions, static batches, outputs that are inputs."""
    programs = os.environ.get("NEML2_CAPI_PROGRAMS")
    if not programs:
        pytest.skip("the C++ tests are built by: python3 build.py test")
    run(Path(programs) / "lib" / "cpp_test_compiled_graphs", NEML2_TEST_GRAPHS=str(graphs))


@needs_fortran
@pytest.mark.parametrize("source", FORTRAN_TESTS, ids=lambda path: path.stem)
def test_fortran_program_passes(source: Path) -> None:
    traps = ("-ffpe-trap=invalid,zero,overflow",) if "floating_point" in source.stem else ()
    run(fortran_program(source, TESTS / "fortran" / "checks.f90", flags=traps))


@needs_fortran
def test_tangents_in_fortran(artifacts: Mapping[str, Path]) -> None:
    """The part of the test that compiled models are for."""
    program = fortran_program(
        TESTS / "fortran" / "test_derivatives.f90", TESTS / "fortran" / "checks.f90"
    )
    run(program, artifacts["isotropic_hardening"], artifacts["crystal"])


def printed(program: Path) -> Results:
    """What an example printed: values by the words before them, ("viscoplastic", "7")."""
    results: Results = {}
    for line in run(program, PREBUILT / "elasticity", PREBUILT / "viscoplastic").splitlines():
        words = line.split()
        results[tuple(words[:-6])] = np.array([float(word) for word in words[-6:]])
    return results


def evaluated() -> Results:
    """The same from Python: what examples/c/example.c says that it does."""
    elasticity = Model(PREBUILT / "elasticity")
    viscoplastic = Model(PREBUILT / "viscoplastic")
    strain = np.array([1e-3, -3e-4, -3e-4, 2e-4, -1e-4, 5e-5])
    results: Results = {("elasticity",): elasticity.forward({"strain": strain})["stress"]}
    amplitudes = np.array([1.0, 0.5, 0.25])
    state: dict[str, NDArray[np.float64]] = {
        name: np.zeros((3, 6)) for name in ("strain", "stress", "X1", "X2")
    }
    state["equivalent_plastic_strain"] = np.zeros(3)
    for k in range(1, 21):
        strain = np.zeros((3, 6))
        strain[:, 0] = amplitudes * 0.01 * np.sin(2 * np.pi * k / 20)
        strain[:, 1] = strain[:, 2] = -0.3 * strain[:, 0]
        old = {f"{name}~1": value for name, value in state.items()}
        outputs = viscoplastic.forward({"strain": strain, "t": float(k), "t~1": k - 1.0, **old})
        state = {**outputs, "strain": strain}
        results["viscoplastic", str(k)] = outputs["stress"][0]
    return results


def assert_agree(results: Results, expected: Results) -> None:
    assert results.keys() == expected.keys()
    for key, values in expected.items():
        # The strains may differ in the last bit: each language has its own sine.
        np.testing.assert_allclose(results[key], values, rtol=0, atol=1e-11 * np.abs(values).max())


def test_example_in_c_agrees_with_python() -> None:
    results = printed(c_program(EXAMPLE_C))
    assert len(results) == 21
    assert_agree(results, evaluated())


@needs_fortran
def test_example_in_fortran_agrees_with_python() -> None:
    assert_agree(printed(fortran_program(EXAMPLE_FORTRAN)), evaluated())


def test_example_says_what_is_wrong_and_fails() -> None:
    with pytest.raises(AssertionError, match=r"ended with 1\nelasticity: .*/nonexistent"):
        run(c_program(EXAMPLE_C), "/nonexistent", PREBUILT / "viscoplastic")
