"""Hosts of a plug-in are told what is beyond the bounds of its law: UMAT, VUMAT, MGIS."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generic_host import Point
from native import CC, HOSTS, PREBUILT, kept

from neml2_capi._ffi.library import library_path
from neml2_capi._ffi.logs import listening
from neml2_capi.artifact import bounds as files
from neml2_capi.plugin import make
from neml2_capi.plugin.elf import with_segment
from neml2_capi.plugin.symbols import long_double
from neml2_capi.umat import draft

pytestmark = pytest.mark.native

HARDENING = PREBUILT / "combined_hardening"
#: The strain of the program in C is beyond, in 11.
BEYOND = {"strain": (-3e-3, 3e-3)}
LOADED = np.array([4e-3, -1.2e-3, -1.2e-3, 4e-4, 0, 0])


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Calls of later tests need not look for warnings of these models."""
    yield
    listening.discard("bounds")


def library_of(
    folder: Path, bounds: Mapping[str, Any], physical: Mapping[str, Any] | None = None
) -> Path:
    """A plug-in of a law with bounds."""
    artifact = folder / "artifact"
    shutil.copytree(HARDENING, artifact)
    files.write(artifact, files.from_mappings(bounds, physical))
    make(artifact, folder / "libsteel.so")
    return folder / "libsteel.so"


def called(library: Path) -> subprocess.CompletedProcess[str]:
    """One increment of UMAT, in a program of C."""
    program = kept("program", (CC,), HOSTS / "plugin.c", "-ldl") / "program"
    return subprocess.run([program, library], capture_output=True, text=True)


def printed(done: subprocess.CompletedProcess[str], name: str) -> list[float]:
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(f"{name} "))
    return [float(word) for word in line.split()[1:]]


# ---- UMAT ----


def test_umat_warns_and_goes_on(tmp_path: Path) -> None:
    done = called(library_of(tmp_path / "bounded", BEYOND))
    assert done.returncode == 0 and "pnewdt" not in done.stdout
    assert "*WARNING: material steel:" in done.stderr
    assert "'strain', component xx, is 0.004, above 0.003, its upper bound" in done.stderr
    free = called(library_of(tmp_path / "free", {}))
    assert done.stdout == free.stdout and not free.stderr


def test_umat_asks_for_a_smaller_step_beyond_what_has_a_meaning(tmp_path: Path) -> None:
    done = called(library_of(tmp_path, {}, BEYOND))
    assert done.returncode == 0, done.stderr
    assert printed(done, "pnewdt") == [0.5] and printed(done, "stress") == [0] * 6
    assert "1 of 1 points are out of bounds" in done.stderr and "0.004" in done.stderr


def test_umat_ends_the_job_if_no_smaller_step_helps(tmp_path: Path) -> None:
    done = called(library_of(tmp_path, {}, {"E": (0, 1e5)}))
    assert done.returncode == 1
    assert "UMAT, material steel: 1 of 1 points are out of bounds" in done.stderr
    assert "the parameter 'E' is 200000, above 100000" in done.stderr


# ---- VUMAT ----


def test_vumat_tells_what_is_beyond(tmp_path: Path) -> None:
    strains = np.array([[[1e-3, 0, 0, 0, 0, 0], [4e-3, 0, 0, 0, 0, 0]]])
    np.save(tmp_path / "strains.npy", strains)

    def explicit(library: Path) -> subprocess.CompletedProcess[str]:
        told = ["2", "19", "1", str(tmp_path / "strains.npy"), str(tmp_path / "result.npy"), "1"]
        command = [sys.executable, str(HOSTS / "vumat.py"), str(library), *told]
        return subprocess.run(command, capture_output=True, text=True)

    for name in ("warned", "failed"):
        (tmp_path / name).mkdir()
    done = explicit(library_of(tmp_path / "warned", BEYOND))
    assert done.returncode == 0 and "*WARNING: material steel" in done.stderr
    assert "of point 1" in done.stderr and "is 0.004, above 0.003" in done.stderr
    assert "points of the block are counted from 0" in done.stderr
    done = explicit(library_of(tmp_path / "failed", {}, BEYOND))
    assert done.returncode == 1
    assert "VUMAT, material steel: 1 of 2 points are out of bounds" in done.stderr
    assert "points of the block are counted from 0" in done.stderr


# ---- the generic behaviour of MFront's interface ----


def number(library: Path, name: str) -> float:
    return float(ctypes.c_longdouble.in_dll(ctypes.CDLL(str(library)), name).value)


def test_mgis_finds_a_number_for_each_bound(tmp_path: Path) -> None:
    bounds = {
        "E": (1e5, 3e5),
        "equivalent_plastic_strain~1": (None, 0.2),
        "X1~1": (-80.5, [80.5, 80.5, 80.5, 60, 60, 60]),
        **BEYOND,
    }
    library = library_of(tmp_path, bounds, {"E": (0, None), "yield_stress": (1e-310, 7e307)})
    assert number(library, "NEML2_E_LowerBound") == 1e5
    assert number(library, "NEML2_E_UpperBound") == 3e5
    assert number(library, "NEML2_E_LowerPhysicalBound") == 0
    assert number(library, "NEML2_equivalent_plastic_strain_UpperBound") == 0.2
    assert number(library, "NEML2_X1_LowerBound") == -80.5
    assert number(library, "NEML2_X1__3___UpperBound") == 60
    assert number(library, "NEML2_yield_stress_LowerPhysicalBound") == 1e-310
    assert number(library, "NEML2_yield_stress_UpperPhysicalBound") == 7e307
    loaded = ctypes.CDLL(str(library))
    for absent in ("E_UpperPhysicalBound", "X1_UpperBound", "equivalent_plastic_strain_LowerBound"):
        assert not hasattr(loaded, f"NEML2_{absent}")
    for present in ("umat_", "vumat_", "NEML2_Tridimensional", "NEML2_nMaterialProperties"):
        assert hasattr(loaded, present)
    assert ctypes.c_ushort.in_dll(loaded, "NEML2_nMaterialProperties").value == 2


@pytest.mark.parametrize("count", [1, 2, 7, 300])
def test_every_name_is_found_however_many_there_are(tmp_path: Path, count: int) -> None:
    names = {f"NEML2_name_{i}": float(i) for i in range(count)}
    made = tmp_path / "libmany.so"
    shell = Path(library_path()).with_name("libneml2_plugin.so").read_bytes()
    made.write_bytes(with_segment(shell, b"content", names))
    for name, value in names.items():
        assert number(made, name) == value
    loaded = ctypes.CDLL(str(made))
    assert hasattr(loaded, "umat_") and not hasattr(loaded, "NEML2_name")


@pytest.mark.parametrize("value", [0.0, 1.0, -1.5, 1e5, 5e-324, 1.7976931348623157e308, -2.5e-308])
def test_a_number_is_the_same_as_a_long_double_of_each_processor(value: float) -> None:
    extended = int.from_bytes(long_double(62, value)[:10], "little")
    sign, exponent = extended >> 79, extended >> 64 & 0x7FFF
    mantissa = extended & ((1 << 64) - 1)
    exact = Fraction(mantissa) * Fraction(2) ** (exponent - 16383 - 63) if mantissa else Fraction(0)
    assert (-exact if sign else exact) == Fraction(value)
    quad = int.from_bytes(long_double(183, value), "little")
    fraction, head = quad & ((1 << 112) - 1), quad >> 112
    assert head == (extended >> 64) and fraction == (mantissa << 49) & ((1 << 112) - 1)


def test_a_policy_of_mfront_decides(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    library = library_of(tmp_path, BEYOND)
    point = Point(library, np.array([200e3, 150.0]))
    policy = ctypes.CDLL(str(library)).NEML2_setOutOfBoundsPolicy
    policy(0)  # before the law was opened
    assert point.call(4, LOADED).status == 1 and not capfd.readouterr().err
    policy(1)
    warned = point.call(4, LOADED)
    assert warned.status == 1 and "is 0.004, above 0.003" in capfd.readouterr().err
    policy(2)
    failed = point.call(4, LOADED)
    assert failed.status == -1 and failed.rdt == 0.5
    assert "'strain', component xx, is 0.004, above 0.003" in failed.message
    policy(7)
    assert "there is no policy 7" in capfd.readouterr().err
    assert point.call(4, LOADED).status == -1  # as before
    policy(0)
    assert point.call(4, LOADED).status == 1


def test_a_policy_holds_under_a_hypothesis_that_is_open(tmp_path: Path) -> None:
    library = library_of(tmp_path, BEYOND)
    loaded = ctypes.CDLL(str(library))
    assert loaded.NEML2_PlaneStress_setParameter(b"atol", ctypes.c_double(1e-9)) == 1  # opens it
    loaded.NEML2_setOutOfBoundsPolicy(2)
    point = Point(library, np.array([200e3, 150.0]))
    failed = point.call(4, LOADED)
    assert failed.status == -1 and "out of bounds" in failed.message


def test_an_option_of_the_mapping_file_is_a_text(tmp_path: Path) -> None:
    artifact = tmp_path / "artifact"
    shutil.copytree(HARDENING, artifact)
    files.write(artifact, files.from_mappings(BEYOND, None))
    mapping = tmp_path / "steel.nml"
    mapping.write_text(draft(artifact) + "&option name = 'bounds', value = 'fail' /\n")
    make(artifact, tmp_path / "libsteel.so", mapping=mapping)
    assert printed(called(tmp_path / "libsteel.so"), "pnewdt") == [0.5]
