"""The programs of examples/hosts: libraries of other people, whose material is a compiled model.

Their equations are the same: if the mesh and the elements are, too, so must the forces be.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import HOSTS, PREBUILT, ROOT, installed
from patience import PATIENCE
from programs import built
from tracing import opened, tracer

from neml2_capi import Model, drive, examples, experiments
from neml2_capi.plugin import make

pytestmark = [pytest.mark.hosts, pytest.mark.full("libraries of finite elements")]

ARTIFACT = PREBUILT / "combined_hardening"
NEEDS = {
    "scikit_fem": ("skfem",),
    "cook_membrane": ("skfem",),
    "fenicsx": ("mpi4py", "dolfinx_external_operator"),
    "fenicsx_large_strain": ("mpi4py", "dolfinx_external_operator"),
    "petsc_snes": ("skfem", "petsc4py"),
    "sundials": ("sksundae",),
    "simcoon_law": ("simcoon",),
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
def printed(name: str, *arguments: str, artifact: Path = ARTIFACT) -> str:
    installed(*NEEDS[name])
    program = ROOT / "examples" / "hosts" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, program, artifact, *arguments],
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
        assert_quadratic(step.residuals[name == "petsc_snes" :])


def assert_quadratic(residuals: list[float]) -> None:
    norms = np.array(residuals)
    norms /= norms[0]
    before, after = norms[:-1], norms[1:]
    falling = after > ROUND_OFF
    assert np.count_nonzero(falling) >= 2
    assert (after[falling] <= CONSTANT * before[falling] ** 2).all(), residuals


def test_a_membrane_in_plane_stress_converges_quadratically() -> None:
    output = printed("cook_membrane", "4")
    found = [line.split() for line in output.splitlines()]
    tip = [float(row[2]) for row in found]
    assert tip[3] > 5 * tip[1] > 0  # plastic
    for row in found:
        assert_quadratic([float(r) for r in row[4:]])


def test_an_elastic_membrane_is_the_one_of_scikit_fem() -> None:
    """In plane stress: lambda becomes 2 lambda mu / (lambda + 2 mu)."""
    script = """
import numpy as np, skfem
from skfem.models.elasticity import linear_elasticity
from cook_membrane import Membrane
from neml2_capi import Model, examples

body = Membrane(examples.path("elasticity"))
u, residuals = body.step(body.basis.zeros(), 1.0, 100.0)
law = Model(examples.path("elasticity"))
c = law.jacobian({"strain": np.zeros(6)})[1]["stress"]["strain"]
lame, mu = c[0, 1], c[5, 5] / 2
stiffness = linear_elasticity(2 * lame * mu / (lame + 2 * mu), mu).assemble(body.basis)
expected = skfem.solve(*skfem.condense(stiffness, 100.0 * body.load, D=body.clamped))
np.testing.assert_allclose(u, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
assert len(residuals) == 2, residuals
"""
    installed("skfem")
    subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT / "examples" / "hosts", check=True, env=ENVIRONMENT
    )


@pytest.mark.parametrize("end", ["free", "held"])
def test_a_bar_in_large_strain_has_the_force_of_a_tension_test(end: str) -> None:
    """If its end is free, the strain is uniform, and the force tau / lambda of the section."""
    count = "10" if end == "free" else "40"
    law = examples.path("isotropic_hardening")
    output = printed("fenicsx_large_strain", count, end, artifact=law)
    found = re.findall(r"([\d.]+) N, uniform ([\d.]+) N +(.+)$", output, re.MULTILINE)
    assert found
    force, uniform = np.array([row[:2] for row in found], float).T
    if end == "free":
        np.testing.assert_allclose(force, uniform, rtol=PRINTED)
    else:
        assert (force > 1.01 * uniform)[:5].all()
    for *_, residuals in found:
        assert_quadratic([float(r) for r in residuals.split()])


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


def test_simcoon_pulls_as_the_driver_does() -> None:
    found = re.findall(r"([\d.]+) s +([\d.]+)% +([\d.]+) MPa +(\S+)%", printed("simcoon_law"))
    strain, stress, lateral = np.array([row[1:] for row in found], float).T
    assert len(found) == 10
    expected = experiments.tension(Model(ARTIFACT), np.linspace(0, 10, 11), 0.01)
    np.testing.assert_allclose(strain, 100 * expected["strain"][1:, 0])
    np.testing.assert_allclose(stress, expected["stress"][1:, 0], atol=2e-4)
    np.testing.assert_allclose(lateral, 100 * expected["strain"][1:, 1], atol=2e-5)


# ---- Kratos ----


def kratos(
    folder: Path,
    *wrappers: str,
    props: str = "200000,150",
    states: int = 13,
    strain: float = 1e-2,
) -> subprocess.CompletedProcess[str]:
    """Run one hexahedron on a plug-in alone in a folder; the result is in result.npy."""
    installed("KratosMultiphysics")
    make(ARTIFACT, folder / "libsteel.so")
    return subprocess.run(
        [
            *wrappers,
            sys.executable,
            HOSTS / "kratos.py",
            "./libsteel.so",
            props,
            str(states),
            "4",
            str(strain),
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=PATIENCE,
    )


def test_kratos_gets_what_a_drive_gives(tmp_path: Path) -> None:
    done = kratos(tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    recorded = np.load(tmp_path / "result.npy")  # (steps, strain and stress, points, 6)
    order, shear = [0, 1, 2, 4, 5, 3], np.array([1, 1, 1, *[np.sqrt(2)] * 3])
    strain = recorded[:, 0][..., order] / np.array([1, 1, 1, 2, 2, 2]) * shear
    expected = drive(Model(ARTIFACT), np.arange(5.0), {"strain": strain})
    stress = expected["stress"] / shear
    assert np.abs(stress[-1, :, 3:]).max() > 1 and stress[-1, :, 0].min() > 100
    difference = np.abs(recorded[:, 1][..., order] - stress).max()
    assert difference < 1e-10 * np.abs(stress).max()
    norms = re.findall(r"Absolute norm = (\S+);", done.stdout)
    last = np.array([float(norm) for norm in norms[-4:]])
    assert last[2] < CONSTANT * last[1] ** 2 and last[2] < 1e-6


def test_kratos_opens_no_file_of_ours_but_the_plug_in(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    done = kratos(tmp_path, *tracer(trace))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    found = opened(trace, tmp_path)
    assert tmp_path / "libsteel.so" in found
    assert not [path for path in found if "neml2" in path.name or path.suffix in (".nml", ".pt2")]


WRONG = {
    "few states": ({"states": 12}, "needs 13: set *DEPVAR"),
    "few constants": ({"props": "200000"}, "needs 2: give them"),
    "too far": ({"strain": 1e60}, "did not converge, and kratos cannot be asked"),
}


@pytest.mark.parametrize("changes, message", WRONG.values(), ids=WRONG.keys())
def test_kratos_ends_where_the_material_cannot_go_on(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    done = kratos(tmp_path, **changes)
    assert done.returncode == 1
    assert message in done.stderr and "UMAT, material steel" in done.stderr
