"""VUMAT of plug-ins, as Abaqus/Explicit calls it: blocks of points."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from native import HOSTS, PREBUILT
from numpy.typing import NDArray
from plugged import HARDENING, SHEAR

from neml2_capi import Model, drive
from neml2_capi.cli.commands import neml2_capi as command_line
from neml2_capi.plugin import make
from neml2_capi.umat import draft

pytestmark = pytest.mark.native

# Components in Abaqus/Explicit: 11, 22, 33, 12, 23, 31, shear not doubled.
EXPLICIT = [0, 1, 2, 5, 3, 4]


def explicit(
    library: Path,
    strains: NDArray[np.float64],
    depvar: int = 19,
    scale: float = 1,
    dt: float = 1,
    nblock: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Call VUMAT for each of the strains (steps, points, 6); the result is in result.npy."""
    folder = library.parent
    np.save(folder / "strains.npy", strains)
    points = strains.shape[1] if nblock is None else nblock
    numbers = map(str, (points, depvar, scale))
    files = (str(folder / name) for name in ("strains.npy", "result.npy"))
    command = [sys.executable, str(HOSTS / "vumat.py"), str(library), *numbers, *files, str(dt)]
    return subprocess.run(command, capture_output=True, text=True)


def blocks() -> NDArray[np.float64]:
    """Strains of five points in four steps, as VUMAT has them."""
    points = np.linspace(0.2, 1, 5)[:, None] * np.array([4e-3, -1e-3, -2e-3, 1e-3, -2e-3, 1e-3])
    steps: NDArray[np.float64] = np.linspace(0.25, 1, 4)[:, None, None] * points
    return steps


def test_vumat_gives_what_a_drive_gives(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    done = explicit(alone / "libsteel.so", blocks())
    assert done.returncode == 0, done.stderr
    strain = np.zeros((5, 5, 6))
    strain[1:] = (blocks() * SHEAR)[..., np.argsort(EXPLICIT)]
    found = drive(Model(HARDENING), np.arange(5.0), {"strain": strain})
    tensors = [found[name][-1][:, EXPLICIT] / SHEAR for name in ("stress", "X1", "X2")]
    plastic = found["equivalent_plastic_strain"][-1][:, None]
    wanted = np.hstack([tensors[0], plastic, *tensors[1:], blocks()[-1]])
    assert plastic.max() > 1e-3
    result = np.load(alone / "result.npy")
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-10 * abs(wanted).max())


def test_vumat_keeps_states_that_no_mapping_names(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    for depvar in (19, 22):
        done = explicit(alone / "libsteel.so", blocks(), depvar=depvar)
        assert done.returncode == 0, done.stderr
        state = np.load(alone / "result.npy")[:, 6:]
        assert np.isfinite(state).all() and (state[:, 19:] == 5).all()


def test_vumat_ends_the_job_where_it_cannot_go_on(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    done = explicit(alone / "libsteel.so", blocks(), depvar=13)
    assert done.returncode == 1 and "needs 19: set *DEPVAR to that" in done.stderr
    done = explicit(alone / "libsteel.so", blocks(), scale=1e60)
    assert done.returncode == 1 and "points did not converge (the first is point 1" in done.stderr
    assert "VUMAT, material steel" in done.stderr
    strains = blocks()
    strains[:, 3] *= 1e60
    done = explicit(alone / "libsteel.so", strains)
    told = "1 of 5 points did not converge (the first is point 4 of the block): reduce"
    assert done.returncode == 1 and told in done.stderr


def test_vumat_takes_the_constants_that_the_mapping_names(alone: Path, tmp_path: Path) -> None:
    """More of them counted for nothing, and the constants of the artifact for them."""
    file, text = tmp_path / "steel.nml", draft(HARDENING, tmp_path / "steel.nml")
    file.write_text(text.replace("&parameter name = 'yield_stress', props = 2 /\n", ""))
    make(HARDENING, alone / "libsteel.so", mapping=file)
    done = explicit(alone / "libsteel.so", blocks())
    told = "there are 2 material constants, and the material has 1 (E): give them to *USER MATERIAL"
    assert done.returncode == 1 and told in done.stderr
    file.write_text(file.read_text().replace("&parameter name = 'E', props = 1 /\n", ""))
    make(HARDENING, alone / "libsteel.so", mapping=file)
    done = explicit(alone / "libsteel.so", blocks())
    assert done.returncode == 0, done.stderr


def test_a_capsule_of_a_plug_in_names_what_to_replay(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was told of the file, and its log not of the artifact, which is in the plug-in."""
    monkeypatch.setenv("NEML2_CAPI_CAPSULE", str(tmp_path / "failed"))
    make(HARDENING, alone / "libsteel.so")
    done = explicit(alone / "libsteel.so", blocks(), scale=1e60)
    (file,) = (tmp_path / "failed").iterdir()
    told = f"the failed call was written to {file}; rerun it with: neml2-capi replay {file} --artif"
    assert f"*WARNING: material steel: {told}" in done.stderr
    again = CliRunner().invoke(
        command_line, ["replay", str(file), "--artifact", str(HARDENING)], prog_name="neml2-capi"
    )
    assert again.exit_code == 0 and "reproduced" in again.output, again.output


def test_vumat_names_its_material(alone: Path) -> None:
    make([HARDENING, PREBUILT / "elasticity"], alone / "libALLOYS.so")
    done = explicit(alone / "libALLOYS.so", blocks())
    assert done.returncode == 1 and "no material of that name" in done.stderr


def test_vumat_names_what_is_not_finite_and_no_time(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    strains = blocks()
    strains[1, 3, 0] = np.nan
    done = explicit(alone / "libsteel.so", strains)
    assert done.returncode == 1 and "reduce" not in done.stderr
    assert "strainInc of point 4, component 11, is NaN or infinite" in done.stderr
    done = explicit(alone / "libsteel.so", blocks(), dt=0)
    assert done.returncode == 1 and "dt is 0" in done.stderr and "reduce" not in done.stderr
    done = explicit(alone / "libsteel.so", blocks(), dt=np.nan)
    assert done.returncode == 1 and "dt is NaN or infinite" in done.stderr
    done = explicit(alone / "libsteel.so", 0 * blocks(), dt=0)
    assert done.returncode == 0 and not np.load(alone / "result.npy").any()


def test_vumat_of_no_points_has_nothing_to_do(alone: Path) -> None:
    """A part of a model that is divided among processes may have none."""
    make(HARDENING, alone / "libsteel.so")
    done = explicit(alone / "libsteel.so", blocks()[:, :0])
    assert done.returncode == 0, done.stderr
    done = explicit(alone / "libsteel.so", blocks()[:, :0], nblock=-1)
    assert done.returncode == 1 and "NBLOCK is -1; it is the number of points" in done.stderr


def test_vumat_refuses_a_strain_measure(alone: Path, tmp_path: Path) -> None:
    """It was left out without a word."""
    file = tmp_path / "steel.nml"
    measure = "&material strain_measure = 'green_lagrange'"
    file.write_text(draft(HARDENING, file).replace("&material", measure))
    make(HARDENING, alone / "libsteel.so", mapping=file)
    done = explicit(alone / "libsteel.so", blocks())
    assert done.returncode == 1 and "has the strain measure 'green_lagrange'" in done.stderr
    assert "leave strain_measure out of the mapping for VUMAT" in done.stderr
