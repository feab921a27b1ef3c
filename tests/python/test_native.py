"""The programs that compiled models are for, and the examples."""

# Programs without arguments: test_programs.py.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from native import PREBUILT, run
from numpy.typing import NDArray
from programs import built

from neml2_capi import Model, drive, examples

pytestmark = pytest.mark.native

Results = dict[tuple[str, ...], NDArray[np.float64]]


def test_static_batch_is_never_run_at_another_size(artifacts: Mapping[str, Path]) -> None:
    run(built("c_test_static_batch"), artifacts["elasticity_static"])


def test_tangents_of_implicit_models(artifacts: Mapping[str, Path]) -> None:
    models = ("isotropic_hardening", "radial_return", "crystal")
    run(built("c_test_tangents"), *(artifacts[name] for name in models))


@pytest.mark.full("many graphs")
def test_graphs_of_other_kinds(graphs: Path) -> None:
    """Integer kernels, OpenMP regions, static batches, outputs that are inputs."""
    run(built("cpp_test_compiled_graphs"), NEML2_TEST_GRAPHS=str(graphs))


def test_tangents_in_fortran(artifacts: Mapping[str, Path]) -> None:
    """The part of the test that compiled models are for."""
    run(
        built("fortran_test_derivatives"),
        artifacts["isotropic_hardening"],
        artifacts["crystal"],
    )


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
    results = printed(built("example_c"))
    assert len(results) == 21
    assert_agree(results, evaluated())


def test_example_in_fortran_agrees_with_python() -> None:
    assert_agree(printed(built("example_fortran")), evaluated())


def test_example_says_what_is_wrong_and_fails() -> None:
    with pytest.raises(AssertionError, match=r"ended with 1\nelasticity: .*/nonexistent"):
        run(built("example_c"), "/nonexistent", PREBUILT / "viscoplastic")


@pytest.mark.parametrize("program", ["example_plane_stress", "example_membrane"])
def test_an_element_in_plane_stress_has_the_stress_of_a_truss(program: str) -> None:
    model = Model(examples.path("isotropic_hardening"), hypothesis="uniaxial")
    strain = 2e-3 * np.arange(6.0)
    truss = drive(model, np.arange(6.0), {"strain": strain[:, None]})["stress"]
    lines = run(built(program), examples.path("isotropic_hardening")).splitlines()
    assert len(lines) == 5
    for step, line in enumerate(lines, 1):
        before, _, stress = line.partition(" stress ")
        residuals = np.array([float(word) for word in before.split()[3:]])
        assert float(stress) == pytest.approx(truss[step, 0], rel=1e-8)
        # Newton's method converges quadratically: it has doubled its digits before round-off.
        assert len(residuals) <= 7
        assert residuals[-1] < 1e-2 * residuals[-2]


def test_three_bars_bear_their_force() -> None:
    lines = run(built("example_truss"), examples.path("isotropic_hardening")).splitlines()
    found = np.array([[float(word) for word in line.split()] for line in lines])
    assert len(found) == 8
    displacement, slanted, middle = found[:, 1:4].T
    np.testing.assert_allclose(middle + np.sqrt(2) * slanted, 50.0 * found[:, 0], rtol=1e-9)
    assert found[:, 4].max() <= 6
    model = Model(examples.path("isotropic_hardening"), hypothesis="uniaxial")
    strain = np.concatenate([[0.0], displacement])
    bars = drive(model, np.arange(9.0), {"strain": np.stack([strain, strain / 2], 1)[..., None]})
    np.testing.assert_allclose(bars["stress"][1:, :, 0], np.stack([middle, slanted], 1), rtol=1e-8)
