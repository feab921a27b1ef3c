"""The programs of examples/hosts: libraries of other people, whose material is a compiled model.

Their equations are the same: where the mesh and the elements are, too, so must the forces be.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from native import PREBUILT, ROOT, installed
from patience import PATIENCE
from programs import built

pytestmark = [pytest.mark.hosts, pytest.mark.full("libraries of finite elements")]

ARTIFACT = PREBUILT / "combined_hardening"
NEEDS = {
    "scikit_fem": ("skfem",),
    "fenicsx": ("mpi4py", "dolfinx_external_operator"),
    "petsc_snes": ("skfem", "petsc4py"),
    "sundials": ("sksundae",),
}
# mpich's wheel has its library there, and dolfinx does not look for it.
ENVIRONMENT = {**os.environ, "LD_LIBRARY_PATH": f"{sys.prefix}/lib"}

# Reactions have seven digits.
PRINTED = 2e-7
# r_next <= CONSTANT r^2 / r_first, as in examples/fem; below ROUND_OFF nothing falls any more.
CONSTANT, ROUND_OFF = 1000, 1e-12


@dataclass(frozen=True)
class Step:
    """A step that was accepted, as it was printed."""

    time: float
    reaction: float
    residuals: list[float]


@cache
def printed(name: str, *arguments: str) -> str:
    installed(*NEEDS[name])
    program = ROOT / "examples" / "hosts" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, program, ARTIFACT, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def steps(output: str) -> list[Step]:
    found = re.findall(r"^ *([\d.]+) s +([\d.]+) N +(.+)$", output, re.MULTILINE)
    return [Step(float(t), float(f), [float(r) for r in rest.split()]) for t, f, rest in found]


def example_fem(steps: int) -> list[float]:
    """The reactions of the program in C++, with each point's own dilatation."""
    program = built("example_fem", "Eigen was not found (Debian: libeigen3-dev)")
    options = ["--first-step", "1", "--dilatation", "local"]
    reactions: list[float] = []
    with subprocess.Popen(
        ["stdbuf", "-oL", program, ARTIFACT, *options], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if not line.startswith("#"):
                reactions.append(float(line.split()[3]))
            if len(reactions) == steps:
                process.kill()
                break
    return reactions


@pytest.mark.parametrize("name", ["scikit_fem", "fenicsx", "petsc_snes"])
def test_newton_converges_quadratically(name: str) -> None:
    accepted = steps(printed(name, *(("1", "3") if name == "petsc_snes" else ("3",))))
    assert len(accepted) == 3
    for step in accepted:
        # SNES counts what held displacements lack first, which is in mm.
        norms = np.array(step.residuals[name == "petsc_snes" :])
        norms /= norms[0]
        before, after = norms[:-1], norms[1:]
        falling = after > ROUND_OFF
        assert np.count_nonzero(falling) >= 2
        assert (after[falling] <= CONSTANT * before[falling] ** 2).all(), step


def test_all_agree_on_the_plate() -> None:
    expected = example_fem(3)
    for name, arguments in (("scikit_fem", "3"), ("fenicsx", "3"), ("petsc_snes", "1 3")):
        found = [step.reaction for step in steps(printed(name, *arguments.split()))]
        np.testing.assert_allclose(found, expected, rtol=PRINTED, err_msg=name)


def test_a_step_in_which_points_fail_is_cut() -> None:
    output = printed("petsc_snes", "10")
    assert "the step to 10 s is cut by" in output
    assert steps(output)[-1].time == 10


def test_the_steps_of_the_model_tend_to_the_solution_of_ida() -> None:
    rows = np.array([line.split()[0::1] for line in printed("sundials").splitlines()[2:]])
    times, ida, *curves = rows[:, [0, 2, 4, 5, 6]].astype(float).T
    assert len(times) == 5
    errors = [np.abs(curve - ida).max() for curve in curves]
    np.testing.assert_allclose(errors[1], errors[0] / 10, rtol=0.35)
    np.testing.assert_allclose(errors[2], errors[1] / 10, rtol=0.1)
    assert errors[2] < 3e-4 * ida.max()
