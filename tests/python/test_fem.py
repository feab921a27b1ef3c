"""The finite-element example: its checks pass, they can fail, and a step that fails is cut."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from native import PREBUILT, ROOT, command
from numpy.typing import NDArray
from patience import PATIENCE
from programs import built

pytestmark = [pytest.mark.native, pytest.mark.full("the finite-element program")]

SOURCES = ROOT / "examples" / "fem"
ARTIFACT = PREBUILT / "combined_hardening"


@pytest.fixture(scope="module")
def program() -> Path:
    """The program that was built with the library."""
    return built("example_fem", "Eigen was not found (Debian: libeigen3-dev)")


@dataclass(frozen=True)
class Run:
    """What the program printed, and how it ended."""

    status: int
    printed: str
    error: str

    @property
    def rows(self) -> list[str]:
        """The lines of the table, one per step."""
        return [line for line in self.printed.splitlines() if not line.startswith("#")]

    @property
    def table(self) -> NDArray[np.float64]:
        """Step, time, time step, reaction, force on the sections, plastic increment."""
        return np.array([row.split()[:6] for row in self.rows], dtype=float)

    def noted(self, pattern: str) -> tuple[float, ...]:
        """The numbers in a line that begins with #."""
        found = re.search(f"^# {pattern}$", self.printed, re.M)
        assert found, f"no line is like: {pattern}\n{self.printed}{self.error}"
        return tuple(float(number) for number in found.groups())


@cache
def run(program: Path, *arguments: str, artifact: Path = ARTIFACT) -> Run:
    done = subprocess.run(
        [program, artifact, *arguments], capture_output=True, text=True, timeout=PATIENCE
    )
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def vtk_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vtk")


@pytest.fixture(scope="module")
def plate(program: Path, vtk_folder: Path) -> Run:
    """The whole history with all checks, and its files."""
    done = run(program, "--check", "--vtk", str(vtk_folder / "plate"))
    assert done.status == 0, done.error
    return done


def test_newton_converges_quadratically_in_every_plastic_step(plate: Run) -> None:
    constant, plastic = plate.noted(r"quadratic convergence: r_next <= (\d+) r\^2 in all (\d+) .*")
    assert 1 < constant < 1000
    # All but the elastic steps: the first ones, and the one in which the load turns.
    assert plastic >= 25
    assert plastic == np.count_nonzero(plate.table[:, 5] > 1e-6)


def test_a_distorted_patch_has_the_stress_of_one_point(plate: Run) -> None:
    (difference,) = plate.noted(r"patch test: stresses equal to (\S+)")
    assert difference < 1e-12


def test_the_reaction_is_the_stress_on_the_sections(plate: Run) -> None:
    _, time, _, reaction, sections, _ = plate.table.T
    assert np.allclose(reaction, sections, rtol=0, atol=2e-3)  # three digits are printed
    (balance,) = plate.noted(r"balance of reactions and stresses: to (\S+)")
    assert balance < 1e-10
    # Pulled, relaxed, pushed.
    assert time[-1] == 30
    peak, relaxed = reaction[time == 10], reaction[time == 20]
    assert 0 < relaxed < peak == reaction.max()
    assert reaction[-1] == reaction.min() < 0


@pytest.mark.parametrize("tangent", ["elastic", "transposed"])
def test_a_wrong_tangent_is_noticed(program: Path, tangent: str) -> None:
    noticed = run(program, "--check", "--tangent", tangent)
    assert noticed.status == 1
    assert "residuals do not fall quadratically" in noticed.error


def test_a_step_that_fails_is_cut_and_leaves_no_trace(program: Path) -> None:
    load = ("--displacement", "0.3", "--check")
    cut = run(program, *load, "--first-step", "10")
    assert cut.status == 0, cut.error
    assert cut.table[-1, 1] == 30, "the history is finished"
    (points,) = cut.noted(r"step 1 to 10\.000 s is cut: (\d+) points did not converge")
    assert 0 < points < 1728
    # As if it had begun with the step that converged.
    first = cut.table[0, 2]
    assert first < 10
    assert cut.rows == run(program, *load, "--first-step", str(first)).rows


def test_a_parameter_of_the_call_changes_the_plate(program: Path, plate: Run) -> None:
    """Twice the yield stress: the elastic steps stay, the plate bears more later."""
    strong = run(program, "--yield-stress", "300")
    assert strong.status == 0, strong.error
    assert strong.rows[:3] == plate.rows[:3]
    assert strong.table[:, 3].max() > 1.3 * plate.table[:, 3].max()


def test_results_are_written_for_paraview(plate: Run, vtk_folder: Path) -> None:
    files = sorted(vtk_folder.iterdir())
    assert len(files) == len(plate.rows)
    assert files[0].name == "plate001.vtk"
    lines = files[-1].read_text().splitlines()
    nodes, elements = 364, 216
    assert lines[4] == f"POINTS {nodes} double"
    begin = lines.index("VECTORS displacement double") + 1
    displacement = np.array([line.split() for line in lines[begin : begin + nodes]], dtype=float)
    assert displacement[:, 1].min() == pytest.approx(-0.25 * 0.08)
    begin = lines.index(f"equivalent_plastic_strain 1 {elements} double") + 1
    assert len(lines) == begin + elements
    assert np.array(lines[begin:], dtype=float).max() > 0.02


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--tangent", "secant"], 2, "no option --tangent secant"),
        (["--first-step", "-1"], 2, "--first-step must be a number above 0"),
        (["--vtk"], 2, "--vtk needs a value"),
        (["--vtk", "/nowhere/plate"], 1, "/nowhere/plate001.vtk cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said(
    program: Path, arguments: list[str], status: int, message: str
) -> None:
    refused = run(program, *arguments)
    assert refused.status == status
    assert message in refused.error


def test_a_model_without_the_tangent_is_refused(program: Path) -> None:
    refused = run(program, artifact=PREBUILT / "viscoplastic")
    assert refused.status == 1
    assert "stress:strain" in refused.error


@pytest.mark.everything("compiles the finite-element program again")
def test_a_project_of_its_own_finds_what_it_needs(program: Path, tmp_path: Path) -> None:
    """Away from the tree, against the installed package; without optimisation, to be quick."""
    cache = (program.parents[1] / "CMakeCache.txt").read_text()
    found = dict(re.findall(r"^(CMAKE_COMMAND|Eigen3_DIR):\w+=(.+)$", cache, re.M))
    cmake_package = command(sys.executable, "-m", "neml2_capi", "--cmakedir", cwd=tmp_path).strip()
    command(
        found["CMAKE_COMMAND"],
        *("-S", shutil.copytree(SOURCES, tmp_path / "fem"), "-B", tmp_path / "build"),
        f"-Dneml2_capi_DIR={cmake_package}",
        f"-DEigen3_DIR={found['Eigen3_DIR']}",
        "-DCMAKE_BUILD_TYPE=Debug",
    )
    command(found["CMAKE_COMMAND"], "--build", tmp_path / "build")
    assert (
        "usage: example_fem"
        in subprocess.run(
            [tmp_path / "build" / "example_fem"], capture_output=True, text=True
        ).stderr
    )
