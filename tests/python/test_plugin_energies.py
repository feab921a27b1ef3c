"""Energies that a plug-in integrates by the trapezoidal rule, as UMAT and MGIS are told them."""

from __future__ import annotations

import ctypes
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
