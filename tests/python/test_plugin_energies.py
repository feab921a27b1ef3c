"""Energies that a plug-in integrates by the trapezoidal rule, as UMAT, VUMAT and MGIS are told."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generic_host import Point
from numpy.typing import NDArray

from neml2_capi import examples
from neml2_capi.plugin import PluginError, make
from neml2_capi.umat import draft

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
HOSTS = Path(__file__).parent.parent / "hosts"

YOUNG, POISSON = 200e3, 0.3
PROPS = np.array([YOUNG, 150.0])
#: The strain grows and turns back.
PATH = np.array([0, 0.25, 0.5, 0.75, 1.0, 0.8, 0.6, 0.1, -0.4])
STRAIN = 6e-3 * np.array([1, -0.4, -0.3, 0.8, -0.2, 0.4])  # 11, 22, 33, 12, 13, 23, shears doubled


@pytest.fixture
def plug_in(tmp_path: Path) -> Callable[[str], Path]:
    def made(law: str, extra: str = "") -> Path:
        library, mapping = tmp_path / f"lib{law}.so", tmp_path / f"{law}.nml"
        text = draft(examples.path(law), mapping)
        mapping.write_text(text.replace("&material", f"&material energies = 'integrated' {extra}"))
        make(examples.path(law), library, mapping=mapping)
        return library

    return made


def pointer(array: Array) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def explicit_step(
    vumat: Any,
    props: Array,
    density: Array,
    increment: Array,
    before: tuple[Array, ...],
    now: float,
    dt: float = 1.0,
) -> tuple[Array, Array, Array]:
    """One call of VUMAT for some points: their stress, state and two energies per mass."""
    old = [np.asfortranarray(values) for values in before]
    new = [np.zeros_like(values) for values in old]
    points, components = increment.shape
    sizes = (points, 3, components - 3, old[1].shape[1], 0, len(props), 0)
    counts = [ctypes.byref(ctypes.c_int(k)) for k in sizes]
    none, time, increment = pointer(np.zeros(64)), np.array([now]), np.asfortranarray(increment)
    into = np.zeros((2, points))
    vumat(
        *counts, *map(pointer, (time, time, np.array([dt]))), b"STEEL".ljust(80), none, none,
        *map(pointer, (props, density, increment)), *[none] * 5,
        *map(pointer, (old[0], old[1], before[2][0], before[2][1])), *[none] * 4,
        *map(pointer, (new[0], new[1], into[0], into[1])),
    )  # fmt: skip
    return new[0], new[1], into


@pytest.mark.parametrize("ndi, nshr", [(3, 3), (2, 1), (1, 0)])
def test_umat_has_the_work_of_the_stress(
    plug_in: Callable[[str], Path], ndi: int, nshr: int
) -> None:
    """The elastic part is that of the stress, and what is dissipated never goes down."""
    umat = ctypes.CDLL(str(plug_in("chaboche"))).umat_
    n = ndi + nshr
    kept = [*range(ndi), *range(3, 3 + nshr)]
    target, size = STRAIN[kept], 13 + {6: 0, 3: 3, 1: 5}[n]
    stress, statev, tangent = np.zeros(n), np.zeros(size), np.zeros((n, n))
    zero, axes, pnewdt = np.zeros(1), np.eye(3), np.ones(1)
    sse, spd, work = np.zeros(1), np.zeros(1), 0.0
    counts = [ctypes.byref(ctypes.c_int(k)) for k in (ndi, nshr, n, size)]
    of_props = ctypes.byref(ctypes.c_int(2))
    shear = 2 * (1 + POISSON)
    elastic = np.diag([1.0 + POISSON] * ndi + [shear] * nshr)
    elastic[:ndi, :ndi] -= POISSON
    elastic /= YOUNG
    name = ctypes.create_string_buffer(b"STEEL".ljust(80))
    none = pointer(zero)
    for step in range(len(PATH) - 1):
        strain, increment = target * PATH[step], target * (PATH[step + 1] - PATH[step])
        before, lost = stress.copy(), spd[0]
        time, dtime = np.full(2, float(step)), np.ones(1)
        umat(
            *map(pointer, (stress, statev, tangent, sse, spd)), *[none] * 5,
            *map(pointer, (strain, increment, time, dtime)), *[none] * 4, name, *counts,
            pointer(PROPS), of_props, none, pointer(axes), pointer(pnewdt),
        )  # fmt: skip
        work += (before + stress) @ increment / 2
        assert pnewdt[0] == 1
        assert sse[0] + spd[0] == pytest.approx(work, rel=1e-9)
        assert sse[0] == pytest.approx(stress @ elastic @ stress / 2, rel=1e-5, abs=1e-8)
        assert spd[0] >= lost - 1e-6 * abs(work)
    assert spd[0] > 2 * sse[0] > 0


@pytest.mark.parametrize("nshr", [1, 3])
def test_vumat_has_the_work_per_mass(plug_in: Callable[[str], Path], nshr: int) -> None:
    """The work of two points is their internal energy, and its plastic part the inelastic one."""
    vumat = ctypes.CDLL(str(plug_in("chaboche"))).vumat_
    n, points, density = 3 + nshr, 2, np.array([7.8e-9, 2.0e-9])
    strains = np.stack([0.7 * STRAIN, STRAIN])[:, [0, 1, 2, 3, 5, 4]]  # 11, 22, 33, 12, 23, 31
    strains = (strains * [1, 1, 1, 0.5, 0.5, 0.5])[:, :n]
    stress, state, energies = np.zeros((points, n)), np.zeros((points, 19)), np.zeros((2, points))
    work, before = np.zeros(points), np.zeros(points)
    twice = np.array([1, 1, 1, *[2.0] * nshr])
    for step in range(len(PATH) - 1):
        increment, old = strains * (PATH[step + 1] - PATH[step]), stress
        stress, state, energies = explicit_step(
            vumat, PROPS, density, increment, (old, state, energies), step + 1.0
        )
        work += ((old + stress) / 2 * increment * twice).sum(axis=1)
        np.testing.assert_allclose(energies[0] * density, work, rtol=1e-9)
        shears = 1 + POISSON
        elastic = (np.square(stress * np.sqrt(twice)).sum(axis=1) * shears) / YOUNG / 2
        elastic -= POISSON * np.square(stress[:, :3].sum(axis=1)) / YOUNG / 2
        np.testing.assert_allclose(
            (energies[0] - energies[1]) * density, elastic, rtol=1e-5, atol=1e-8
        )
        assert (energies[1] >= before - 1e-6 * np.abs(energies[0])).all()
        before = energies[1].copy()
    assert (energies[1] > 0.6 * energies[0]).all()


@pytest.fixture
def plug_in_of_state(tmp_path: Path) -> Path:
    """A law with a state that stands for dissipation which adds up, as its own history."""
    library, mapping = tmp_path / "libsteel.so", tmp_path / "steel.nml"
    text = draft(examples.path("isotropic_hardening"), mapping)
    energy = "dissipated_energy = 'equivalent_plastic_strain'"
    mapping.write_text(text.replace("&material", f"&material {energy}"))
    make(examples.path("isotropic_hardening"), library, mapping=mapping)
    return library


def test_an_energy_that_is_a_state_is_in_both_places(plug_in_of_state: Path) -> None:
    """The state was bound twice, and stayed at zero where the host keeps it."""
    point = Point(plug_in_of_state, properties=PROPS)
    result = point.call(4, STRAIN)
    assert result.status == 1, result.message
    assert result.states[0] == result.energies[1] > 1e-4
    vumat = ctypes.CDLL(str(plug_in_of_state)).vumat_
    size, density = point.states.size + 6, np.array([2.0, 4.0])
    _, state, energies = explicit_step(
        vumat, PROPS, density, np.stack([STRAIN, STRAIN / 2]),
        (np.zeros((2, 6)), np.zeros((2, size)), np.zeros((2, 2))), 1.0,
    )  # fmt: skip
    assert (state[:, 0] > 1e-4).all()
    np.testing.assert_array_equal(energies[1] * density, state[:, 0])


def test_vumat_asks_for_a_density(plug_in: Callable[[str], Path], tmp_path: Path) -> None:
    library, strains = plug_in("chaboche"), tmp_path / "strains.npy"
    np.save(strains, np.zeros((1, 1, 6)))
    host = [sys.executable, str(HOSTS / "vumat.py"), str(library), "1", "19", "1"]
    done = subprocess.run(
        [*host, str(strains), str(tmp_path / "result.npy"), "1"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "the density of point 1 is 0" in done.stderr and "above 0" in done.stderr


def test_mgis_is_told_that_energies_are_integrated(plug_in: Callable[[str], Path]) -> None:
    point = Point(plug_in("elasticity"), properties=np.array([YOUNG]))
    for table in ("IntegratesEnergies", "ComputesInternalEnergy", "ComputesDissipatedEnergy"):
        assert point.table(table) == 1
    strain = 1e-3 * np.arange(1.0, 7.0)
    result = point.call(4, strain)
    assert result.status == 1, result.message
    stored, dissipated = result.energies
    assert stored == pytest.approx(strain @ result.operator @ strain / 2, rel=1e-9)
    assert dissipated == pytest.approx(0, abs=1e-9 * stored)


def test_an_energy_of_the_law_is_not_integrated_too(tmp_path: Path) -> None:
    mapping: Any = tmp_path / "steel.nml"
    text = draft(examples.path("chaboche"), mapping)
    for extra, told in (
        ("energies = 'integrated' stored_energy = 'X1'", "X1"),
        ("energies = 'guessed'", "There is no energies 'guessed'; it can be integrated"),
    ):
        mapping.write_text(text.replace("&material", f"&material {extra}"))
        with pytest.raises(PluginError, match=told):
            make(examples.path("chaboche"), tmp_path / "libsteel.so", mapping=mapping)
