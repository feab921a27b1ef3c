"""Elements of hosts that load a plug-in: UMAT by NDI and NSHR, MGIS by its hypotheses."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generic_host import _View
from numpy.typing import NDArray
from test_large_strain_hosts import plug_in

from neml2_capi import Model, Results, drive, examples
from neml2_capi.plugin import make

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]

ROOT = np.sqrt(2)
NAMES = ("xx", "yy", "zz", "yz", "xz", "xy")
STEPS = 4
STRAIN = {"xx": 8e-3, "yy": -3e-3, "zz": 1e-3, "yz": 1e-3, "xz": -2e-3, "xy": 4e-3}
#: The components of a host, 11, 22, 33, 12, 13, 23, of elements by NDI and NSHR.
UMAT = {
    (2, 1): ("plane_stress", "xx yy xy"),
    (1, 0): ("uniaxial", "xx"),
    (1, 1): ("plane_beam", "xx xy"),
    (1, 2): ("beam", "xx xy xz"),
    (2, 3): ("shell", "xx yy xy xz yz"),
    (3, 0): ("axisymmetrical_generalised_plane_strain", "xx yy zz"),
}
MGIS = {
    "PlaneStress": ("plane_stress", "xx yy zz xy"),
    "PlaneStrain": ("plane_strain", "xx yy zz xy"),
    "Axisymmetrical": ("axisymmetrical", "xx yy zz xy"),
    "GeneralisedPlaneStrain": ("generalised_plane_strain", "xx yy zz xy"),
    "AxisymmetricalGeneralisedPlaneStrain": (
        "axisymmetrical_generalised_plane_strain",
        "xx yy zz",
    ),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("plugin") / "libsteel.so"
    make(examples.path("chaboche"), path)
    return ctypes.CDLL(str(path))


def expected(hypothesis: str) -> tuple[Results, list[str]]:
    """Return the results of the law under the hypothesis, and the components of its strain."""
    model = Model(examples.path("chaboche"), hypothesis=hypothesis)
    names = model.inputs["strain"].type.partition("(")[2].rstrip(")").split(", ")
    path = np.arange(STEPS + 1) / STEPS
    strain = {name: STRAIN[name] * path for name in names}
    tangent = {"stress": {"strain": True}}
    return drive(model, np.arange(STEPS + 1.0), {"strain": strain}, derivatives=tangent), names


def factors(names: list[str], shear: float) -> Array:
    return np.array([1.0 if name[0] == name[1] else shear for name in names])


@pytest.mark.parametrize("ndi, nshr", UMAT)
def test_umat_chooses_the_hypothesis_by_its_components(library: Any, ndi: int, nshr: int) -> None:
    hypothesis, parts = UMAT[ndi, nshr]
    host = parts.split()
    results, names = expected(hypothesis)
    order = [names.index(name) for name in host]
    n, states = len(host), 13 + 5
    stress, statev, tangent = np.zeros(n), np.zeros(states), np.zeros((n, n))
    target = np.array([STRAIN[name] for name in host]) * factors(host, 2.0)
    for step in range(STEPS):
        umat(library, stress, statev, tangent, target * step / STEPS, target / STEPS, step, ndi)
        own = np.asarray(results["stress"])[step + 1, order] / factors(host, ROOT)
        np.testing.assert_allclose(stress, own, rtol=0, atol=1e-9 * np.abs(own).max())
        block = np.asarray(results["stress:strain"])[step + 1][np.ix_(order, order)]
        block = block / factors(host, ROOT)[:, None] / factors(host, ROOT)
        np.testing.assert_allclose(tangent.T, block, rtol=0, atol=1e-6 * np.abs(block).max())
    if "strain_transverse" in results:
        free = np.asarray(results["strain_transverse"])[STEPS]
        np.testing.assert_allclose(statev[13 : 13 + len(free)], free, rtol=0, atol=1e-12)


def umat(
    library: Any,
    stress: Array,
    statev: Array,
    tangent: Array,
    strain: Array,
    increment: Array,
    step: int,
    ndi: int,
) -> None:
    """Call UMAT as Abaqus does."""
    n, zero = len(stress), np.zeros(1)
    props, drot, pnewdt = np.array([200e3, 150.0]), np.eye(3), np.ones(1)
    time, dtime = np.full(2, float(step)), np.ones(1)
    count = [ctypes.c_int(k) for k in (ndi, n - ndi, n, len(statev), len(props))]
    p = [a.ctypes.data_as(ctypes.c_void_p) for a in (stress, statev, tangent)]
    none = zero.ctypes.data_as(ctypes.c_void_p)
    given = [a.ctypes.data_as(ctypes.c_void_p) for a in (strain, increment, time, dtime)]
    name = ctypes.create_string_buffer(b"STEEL".ljust(80))
    sizes = [ctypes.byref(c) for c in count]
    library.umat_(
        *p, *[none] * 7, *given, *[none] * 4, name, *sizes[:4],
        props.ctypes.data_as(ctypes.c_void_p), sizes[4], none,
        drot.ctypes.data_as(ctypes.c_void_p), pnewdt.ctypes.data_as(ctypes.c_void_p),
    )  # fmt: skip
    assert pnewdt[0] == 1


@pytest.mark.parametrize("name", MGIS)
def test_mgis_has_the_hypotheses_that_it_looks_up(library: Any, name: str) -> None:
    hypothesis, parts = MGIS[name]
    host = parts.split()
    results, names = expected(hypothesis)
    order = [host.index(part) for part in names]
    n = len(host)
    count = ctypes.c_ushort.in_dll(library, f"NEML2_{name}_nInternalStateVariables").value
    listed = (ctypes.c_char_p * 1000).in_dll(library, f"NEML2_{name}_InternalStateVariables")
    words = [(listed[i] or b"").decode() for i in range(count)]
    added = 3 if name == "PlaneStress" else 3 if n == 3 else 2
    assert count == 13 + added and "transverse[0]" in words[13]
    states = [np.zeros(count), np.zeros(count)]
    forces = [np.zeros(n), np.zeros(n)]
    target = np.array([STRAIN[part] for part in host]) * factors(host, ROOT)
    properties, operator = np.array([200e3, 150.0]), np.zeros((n, n))
    for step in range(STEPS):
        gradients = [target * step / STEPS, target * (step + 1) / STEPS]
        view = _View(dt=1.0)
        operator[0, 0] = 4
        view.K = operator.ctypes.data
        for at, state in enumerate((view.s0, view.s1)):
            state.gradients = gradients[at].ctypes.data
            state.forces = forces[at].ctypes.data
            state.states = states[at].ctypes.data
            state.properties = properties.ctypes.data
        assert getattr(library, f"NEML2_{name}")(ctypes.byref(view)) == 1
        own = np.asarray(results["stress"])[step + 1]
        np.testing.assert_allclose(forces[1][order], own, rtol=0, atol=1e-9 * np.abs(own).max())
        block = np.asarray(results["stress:strain"])[step + 1]
        ours = operator[np.ix_(order, order)]
        np.testing.assert_allclose(ours, block, rtol=0, atol=1e-6 * np.abs(block).max())
        forces[0][:], states[0][:] = forces[1], states[1]
    if name == "PlaneStress":
        assert forces[1][2] == 0 and not operator[2].any() and not operator[:, 2].any()


def test_large_strain_is_of_solids_only(tmp_path: Path) -> None:
    loaded = ctypes.CDLL(str(plug_in(tmp_path, "strain_measure = 'logarithmic'")))
    assert ctypes.c_ushort.in_dll(loaded, "NEML2_nModellingHypotheses").value == 1
    text = ctypes.create_string_buffer(512)
    view = _View(dt=1.0, error_message=ctypes.addressof(text))
    assert loaded.NEML2_PlaneStress(ctypes.byref(view)) == -1
    assert b"load the hypothesis Tridimensional" in text.value


def test_mgis_is_told_all_hypotheses(library: Any) -> None:
    listed = (ctypes.c_char_p * 6).in_dll(library, "NEML2_ModellingHypotheses")
    assert {(word or b"").decode() for word in listed} == {"Tridimensional", *MGIS}
