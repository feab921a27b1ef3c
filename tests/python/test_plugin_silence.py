"""Plug-ins refuse to forget shears, to relax in no time and to write energies of NaN."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generic_host import Array, Point
from native import HOSTS
from test_plugin_energies import explicit_step

from neml2_capi.plugin import PluginError, make
from neml2_capi.umat import draft

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402

pytestmark = [pytest.mark.full("laws are exported by torch"), pytest.mark.native]

YOUNG = 200e3
#: Couples the plane to the shears out of it, in Mandel notation: 23 with 11, 13 with 22.
LEANING = YOUNG * np.eye(6)
LEANING[0, 3] = LEANING[3, 0] = LEANING[1, 4] = LEANING[4, 1] = 0.2 * YOUNG
#: Symmetric to the plane, except for the round-off of a turn.
TURNED = YOUNG * np.eye(6)
TURNED[0, 3] = TURNED[3, 0] = 1e-16 * YOUNG

Tensors = Mapping[str, Any]


def rate_form(stiffness: Array) -> Callable[[Tensors, Tensors], dict[str, Any]]:
    def law(inputs: Tensors, parameters: Tensors) -> dict[str, Any]:
        before = inputs["stress~1"]
        step = torch.tensor(stiffness).to(before) @ (inputs["strain"] - inputs["strain~1"])
        return {"stress": before + step}

    return law


def fast(inputs: Tensors, parameters: Tensors) -> dict[str, Any]:
    """Relaxes in 1e-10; without time its rate is 0 / 0."""
    step = inputs["t"] - inputs["t~1"]
    rate = (inputs["strain"] - inputs["strain~1"]) / step
    stress = (inputs["stress~1"] + YOUNG * rate * step) / (1 + step / 1e-10)
    return {"stress": stress, "w": inputs["w~1"] + 1e10 * step, "stored_energy": 1e10 * step}


def dashpot(inputs: Tensors, parameters: Tensors) -> dict[str, Any]:
    rate = (inputs["strain"] - inputs["strain~1"]) / (inputs["t"] - inputs["t~1"])
    return {"stress": YOUNG * inputs["strain"] + 10 * rate}


def root(strain: Any, T: Any) -> dict[str, Any]:
    return {"stress": YOUNG * strain, "stored_energy": torch.sqrt(T)}


def eigen(strain: Any, eigen: Any) -> dict[str, Any]:
    return {"stress": YOUNG * (strain - eigen)}


STRESS = {"stress": "SR2"}
OF_STRAIN = {"strain": "SR2", "strain~1": "SR2", "stress~1": "SR2"}
LAWS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "leaning": (rate_form(LEANING), {"inputs": OF_STRAIN, "outputs": STRESS}),
    "turned": (rate_form(TURNED), {"inputs": OF_STRAIN, "outputs": STRESS}),
    "fast": (
        fast,
        {
            "inputs": {**OF_STRAIN, "w~1": "Scalar", "t": "Scalar", "t~1": "Scalar"},
            "outputs": {**STRESS, "w": "Scalar", "stored_energy": "Scalar"},
        },
    ),
    "dashpot": (
        dashpot,
        {
            "inputs": {"strain": "SR2", "strain~1": "SR2", "t": "Scalar", "t~1": "Scalar"},
            "outputs": STRESS,
        },
    ),
    "root": (
        root,
        {
            "inputs": {"strain": "SR2", "T": "Scalar"},
            "outputs": {**STRESS, "stored_energy": "Scalar"},
        },
    ),
    "eigen": (eigen, {"inputs": {"strain": "SR2", "eigen": "SR2"}, "outputs": STRESS}),
}

PlugIn = Callable[..., Path]


@pytest.fixture(scope="module")
def plug_in(tmp_path_factory: pytest.TempPathFactory) -> PlugIn:
    """The library of a law, with lines more in its mapping."""
    folder = tmp_path_factory.mktemp("laws")

    def made(name: str, *lines: str, material: str = "") -> Path:
        law, declared = LAWS[name]
        if not (folder / name).exists():
            export.model(law, folder / name, **declared, kernels="only")
        stem = f"{name}{len(list(folder.glob('*.so')))}"
        mapping, library = folder / f"{stem}.nml", folder / f"lib{stem}.so"
        if name == "eigen":
            mapping.write_text("&material stress = 'stress', strain = 'strain' /\n")
        else:
            mapping.write_text(draft(folder / name, mapping))
        text = mapping.read_text().replace("&material", f"&material {material}")
        mapping.write_text("\n".join([text, *lines]))
        make(folder / name, library, mapping=mapping)
        return library

    return made


@pytest.fixture
def umat(tmp_path: Path) -> Callable[..., tuple[str, dict[str, Array]]]:
    """Call a UMAT once; the message that ended the job, or the results."""

    def call(library: Path, **given: Any) -> tuple[str, dict[str, Array]]:
        arguments: dict[str, Any] = {
            "statev": np.zeros(0),
            "props": np.zeros(0),
            "dtime": np.ones(1),
            "pnewdt": np.ones(1),
            "dfgrd0": np.eye(3),
            "dfgrd1": np.eye(3),
            "cmname": "law",
        } | given
        for name in ("stress", "stran", "dstran"):
            arguments.setdefault(name, np.zeros(len(given["dstran"])))
        files = [tmp_path / name for name in ("arguments.npz", "result.npz")]
        files[1].unlink(missing_ok=True)
        np.savez(files[0], **arguments)
        command = [sys.executable, str(HOSTS / "umat.py"), str(library), *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stderr, dict(np.load(files[1])) if done.returncode == 0 else {}

    return call


Umat = Callable[..., tuple[str, dict[str, Array]]]

# ---- shears that a host does not keep ----

PLANE = np.array([1e-3, -4e-4, 2e-4, 3e-4])  # 11, 22, 33, 12
TOLD = "has shears that the host does not keep for this element"
CURE = "&state name = 'stress', kind = 'symmetric', statev = 1 /"


def test_umat_does_not_forget_shears(plug_in: PlugIn, umat: Umat) -> None:
    told, results = umat(plug_in("leaning"), dstran=PLANE)
    assert not results and TOLD in told and CURE in told and "add 6 to *DEPVAR" in told
    told, results = umat(plug_in("leaning"), dstran=np.append(PLANE, [0, 0]))
    assert results, told  # which a solid keeps
    library = plug_in("leaning", CURE)
    told, results = umat(library, dstran=PLANE, statev=np.zeros(6))
    assert results, told
    shears = 0.2 * YOUNG * PLANE[[1, 0]] / np.sqrt(2)
    np.testing.assert_allclose(results["statev"][4:], shears, rtol=1e-12)


def test_umat_of_large_strain_does_not_forget_shears(plug_in: PlugIn, umat: Umat) -> None:
    large, now = "strain_measure = 'logarithmic'", np.diag(np.exp([1e-3, 0, 0]))
    told, results = umat(plug_in("leaning", material=large), dstran=PLANE, dfgrd1=now)
    assert not results and TOLD in told and CURE in told
    library = plug_in("leaning", CURE, material=large)
    told, results = umat(library, dstran=PLANE, dfgrd1=now, statev=np.zeros(6))
    assert results, told
    told, results = umat(plug_in("turned", material=large), dstran=PLANE, dfgrd1=now)
    assert results, told


def vumat(library: Path, increment: Array, states: int = 6) -> subprocess.CompletedProcess[str]:
    """Call VUMAT of one point in two steps: there and back."""
    folder = library.parent
    np.save(folder / "strains.npy", np.array([[increment], [0 * increment]]))
    numbers, files = ("1", str(states), "1"), ("strains.npy", "result.npy")
    command = [sys.executable, str(HOSTS / "vumat.py"), str(library), *numbers]
    command += [*(str(folder / name) for name in files), "1"]
    return subprocess.run(command, capture_output=True, text=True)


def test_vumat_does_not_forget_shears(plug_in: PlugIn) -> None:
    done = vumat(plug_in("leaning"), PLANE)
    assert done.returncode == 1 and TOLD in done.stderr and CURE in done.stderr
    done = vumat(plug_in("leaning"), np.append(PLANE, [0, 0]))
    assert done.returncode == 0, done.stderr
    done = vumat(plug_in("leaning", CURE), PLANE, 12)
    assert done.returncode == 0, done.stderr


def test_round_off_is_no_shear(plug_in: PlugIn, umat: Umat) -> None:
    """Back at rest the stress is round-off, too; what cancelled in it counts."""
    told, there = umat(plug_in("turned"), dstran=PLANE)
    assert there, told
    back = {"stress": there["stress"] * (1 + 1e-16), "stran": PLANE}
    told, results = umat(plug_in("turned"), dstran=-PLANE, **back)
    assert results, told
    done = vumat(plug_in("turned"), PLANE)
    assert done.returncode == 0, done.stderr


# ---- tensors as predefined fields ----


def test_a_predefined_field_has_one_number(plug_in: PlugIn, umat: Umat) -> None:
    """The first component was passed, and zeros for the others."""
    told = "The input 'eigen' has 6 numbers, and a predefined field has one"
    with pytest.raises(PluginError, match=told):
        plug_in("eigen", "&field name = 'eigen', predef = 1 /")


def test_a_value_is_in_the_notation_of_neml2(plug_in: PlugIn, umat: Umat) -> None:
    """11, 22, 33, 23, 13, 12 with shears times sqrt(2), unlike STATEV."""
    library = plug_in("eigen", "&field name = 'eigen', value = 1, 2, 3, 4, 5, 6 /")
    told, results = umat(library, dstran=np.zeros(6))
    assert results, told
    shears = np.array([6, 5, 4]) / np.sqrt(2)
    np.testing.assert_allclose(results["stress"], -YOUNG * np.array([1, 2, 3, *shears]))


# ---- at rest in no time ----

STRESS_BEFORE = np.array([50.0, -20, 10, 5, 6, 7])


def test_umat_keeps_stress_and_states_in_no_time(plug_in: PlugIn, umat: Umat) -> None:
    for time in (0.0, 1e11):  # whose moment is long
        told, results = umat(
            plug_in("fast"),
            stress=STRESS_BEFORE,
            statev=np.array([3.0]),
            stran=np.full(6, 1e-4),
            dstran=np.zeros(6),
            time=np.full(2, time),
            dtime=np.zeros(1),
        )
        assert results, told
        np.testing.assert_allclose(results["stress"], STRESS_BEFORE, rtol=1e-15)
        assert results["statev"] == [3.0] and results["sse"] == [-1.0]
        assert np.isfinite(results["ddsdde"]).all() and results["ddsdde"][0, 0] > 0


def test_umat_names_a_stress_that_cannot_stay(plug_in: PlugIn, umat: Umat) -> None:
    """Nor does a law without history of the stress say what it is."""
    given = {"stress": np.full(6, np.nan), "dtime": np.zeros(1)}
    told, results = umat(plug_in("dashpot"), dstran=np.zeros(6), **given)
    assert not results and "STRESS" in told and "is NaN or infinite" in told


def test_mgis_keeps_stress_and_states_in_no_time(plug_in: PlugIn) -> None:
    point = Point(plug_in("fast"), states=np.array([3.0]), forces=STRESS_BEFORE)
    for code in (4, 0):
        result = point.call(code, np.zeros(6), dt=0)
        assert result.status == 1, result.message
        np.testing.assert_array_equal(result.forces, STRESS_BEFORE)
        assert result.states == [3.0] and result.energies[0] == 0


def test_vumat_keeps_stress_and_states_in_no_time(plug_in: PlugIn) -> None:
    called = ctypes.CDLL(str(plug_in("fast"))).vumat_
    before = (np.outer([1, 2], STRESS_BEFORE), np.full((2, 7), 3.0), np.full((2, 2), 4.0))
    none = np.zeros(0)
    found = explicit_step(called, none, np.ones(2), np.zeros((2, 6)), before, 1.0, dt=0.0)
    for now, old in zip(found, before, strict=True):
        np.testing.assert_array_equal(now, old)


# ---- energies ----


def test_an_energy_that_is_not_finite_ends_the_job(plug_in: PlugIn, umat: Umat) -> None:
    """SSE became NaN, and the job went on."""
    strain = np.full(6, 1e-4)
    told, results = umat(plug_in("root"), dstran=strain, temp=np.array([-1.0]))
    assert not results and "the output 'stored_energy', an energy of the mapping, is not" in told
    told, results = umat(plug_in("root"), dstran=strain, temp=np.array([4.0]))
    assert results["sse"] == [2.0], told
    result = Point(plug_in("root"), external=np.array([-1.0])).call(4, strain)
    assert result.status == -1 and "the output 'stored_energy'" in result.message
