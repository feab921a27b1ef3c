"""Plug-ins of laws in torch: tangents that are not finite, yield surfaces, damage, dashpots."""

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
from test_generic_behaviour import LOADED, hooke
from test_plugin_energies import explicit_step

from neml2_capi.plugin import PluginError, make
from neml2_capi.umat import draft

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402

pytestmark = [pytest.mark.full("laws are exported by torch"), pytest.mark.native]

YOUNG, POISSON, YIELD, HARDENING = 200e3, 0.3, 150.0, 1000.0
SHEAR_MODULUS = YOUNG / 2 / (1 + POISSON)

Tensors = Mapping[str, Any]


def stiffness(strain: Any, young: Any = YOUNG) -> Any:
    lame = young * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
    trace = torch.cat([strain[:3].sum().expand(3), torch.zeros_like(strain[3:])])
    return lame * trace + young / (1 + POISSON) * strain


def deviator(tensor: Any) -> Any:
    mean = tensor[:3].sum() / 3
    return tensor - torch.cat([mean.expand(3), torch.zeros_like(tensor[3:])])


def root(strain: Any, E: Any) -> Any:
    """Its tangent at zero is 0 / 0 for automatic differentiation, and E / 1.3 in the limit."""
    size = torch.sqrt((deviator(strain) * deviator(strain)).sum())
    return E / 1.2 * (strain - deviator(strain)) * 3 + E / 1.3 * deviator(strain) / (1 + 50 * size)


def cusp(strain: Any) -> Any:
    """Its tangent at zero is infinite."""
    return torch.sqrt(torch.abs(strain)) * torch.sign(strain)


def plasticity(inputs: Tensors, parameters: Tensors) -> dict[str, Any]:
    """Without time: linear hardening, in closed form."""
    trial = stiffness(inputs["strain"] - inputs["plastic~1"])
    size = torch.sqrt(1.5 * (deviator(trial) * deviator(trial)).sum() + 1e-12)
    over = size - YIELD - HARDENING * inputs["p~1"]
    rise = torch.where(over > 0, over / (3 * SHEAR_MODULUS + HARDENING), 0.0 * over)
    flow = rise * 1.5 * deviator(trial) / size
    return {
        "stress": trial - 2 * SHEAR_MODULUS * flow,
        "plastic": inputs["plastic~1"] + flow,
        "p": inputs["p~1"] + rise,
    }


def damage(inputs: Tensors, parameters: Tensors) -> dict[str, Any]:
    strain = inputs["strain"]
    size = torch.sqrt((strain * strain).sum() + 1e-20)
    most = torch.maximum(size, inputs["most~1"])
    return {"stress": torch.exp(-50 * most) * stiffness(strain), "most": most}


def dashpot(inputs: Tensors, parameters: Tensors) -> Any:
    rate = (inputs["strain"] - inputs["strain~1"]) / (inputs["t"] - inputs["t~1"])
    return stiffness(inputs["strain"]) + 10 * rate


def stiffening(strain: Any, porosity: Any) -> dict[str, Any]:
    square = (strain * strain).sum()
    return {
        "stress": (1 - porosity) * (1 + 1e4 * square) * stiffness(strain),
        "stored_energy": (strain * stiffness(strain)).sum() / 2,
    }


STRESS = {"stress": "SR2"}
LAWS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "root": (
        root,
        {"inputs": {"strain": "SR2"}, "outputs": STRESS, "parameters": {"E": YOUNG}},
    ),
    "cusp": (cusp, {"inputs": {"strain": "SR2"}, "outputs": STRESS}),
    "plasticity": (
        plasticity,
        {
            "inputs": {"strain": "SR2", "plastic~1": "SR2", "p~1": "Scalar"},
            "outputs": {**STRESS, "plastic": "SR2", "p": "Scalar"},
        },
    ),
    "damage": (
        damage,
        {
            "inputs": {"strain": "SR2", "most~1": "Scalar"},
            "outputs": {**STRESS, "most": "Scalar"},
        },
    ),
    "dashpot": (
        dashpot,
        {
            "inputs": {"strain": "SR2", "strain~1": "SR2", "t": "Scalar", "t~1": "Scalar"},
            "outputs": STRESS,
        },
    ),
    "stiffening": (
        stiffening,
        {
            "inputs": {"strain": "SR2", "porosity": "Scalar"},
            "outputs": {**STRESS, "stored_energy": "Scalar"},
        },
    ),
}


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("laws")

    def made(name: str) -> Path:
        if not (folder / name).exists():
            law, declared = LAWS[name]
            export.model(law, folder / name, **declared, kernels="only")
        return folder / name

    return made


@pytest.fixture
def plug_in(artifact: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """The library of a law; of a mapping, if edits change the draft."""

    def made(name: str, *edits: tuple[str, str]) -> Path:
        stem = f"{name}{len(list(tmp_path.glob('*.so')))}"  # an open library is not made again
        library, mapping = tmp_path / f"lib{stem}.so", tmp_path / f"{stem}.nml"
        text = draft(artifact(name), mapping)
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        mapping.write_text(text)
        make(artifact(name), library, mapping=mapping if edits else None)
        return library

    return made


# ---- a tangent is a result ----


def root_in_the_limit() -> Array:
    """The tangent of `root` beside zero."""
    mean = np.zeros((6, 6))
    mean[:3, :3] = 1 / 3
    tangent: Array = YOUNG / 1.2 * 3 * mean + YOUNG / 1.3 * (np.eye(6) - mean)
    return tangent


def test_mgis_gets_the_tangent_beside_one_that_is_not_finite(plug_in: Callable[..., Path]) -> None:
    point = Point(plug_in("root"), np.array([YOUNG]))
    for code in (4, 3, 1, -1, -3):
        result = point.call(code, np.zeros(6))
        assert result.status == 1, result.message
        assert not result.forces.any()
        np.testing.assert_allclose(result.operator, root_in_the_limit(), rtol=0, atol=1e-4 * YOUNG)


def test_umat_gets_the_tangent_beside_one_that_is_not_finite(
    plug_in: Callable[..., Path], tmp_path: Path
) -> None:
    files = [tmp_path / "arguments.npz", tmp_path / "result.npz"]
    zero = np.zeros(6)
    np.savez(
        files[0],
        stress=zero,
        stran=zero,
        dstran=zero,
        statev=np.zeros(0),
        props=np.array([YOUNG]),
        pnewdt=np.ones(1),
        cmname=np.array("root"),
    )
    subprocess.run([sys.executable, HOSTS / "umat.py", plug_in("root"), *files], check=True)
    found = np.load(files[1])
    assert found["pnewdt"] == 1 and not found["stress"].any()
    expected = root_in_the_limit() / np.array([1, 1, 1, 2, 2, 2])
    np.testing.assert_allclose(found["ddsdde"], expected, rtol=0, atol=1e-4 * YOUNG)


def test_a_tangent_without_a_limit_is_told(plug_in: Callable[..., Path]) -> None:
    point = Point(plug_in("cusp"))
    result = point.call(4, np.zeros(6))
    assert result.status == -1 and result.rdt == 1
    assert "the derivative of 'stress' with respect to 'strain'" in result.message
    assert "A smaller step does not mend that" in result.message
    assert point.call(0, np.zeros(6)).status == 1  # whose stress alone is asked for


# ---- operators ----


def test_a_law_without_time_is_elastic_behind_its_yield_surface(
    plug_in: Callable[..., Path],
) -> None:
    point = Point(plug_in("plasticity")).after(LOADED)
    assert point.call(4, 1.1 * LOADED).operator[0, 0] < 0.9 * hooke()[0, 0]
    for code, strain in ((-1, LOADED), (-2, LOADED), (1, LOADED), (1, 1.1 * LOADED), (2, LOADED)):
        result = point.call(code, strain)
        assert result.status == 1, result.message
        np.testing.assert_allclose(result.operator, hooke(), rtol=0, atol=1e-9 * YOUNG)


def test_damage_leaves_a_smaller_stiffness_that_is_secant(plug_in: Callable[..., Path]) -> None:
    point = Point(plug_in("damage")).after(LOADED)
    left = np.exp(-50 * np.linalg.norm(LOADED)) * hooke()
    for code in (-2, -1, 1, 2):
        result = point.call(code, LOADED)
        assert result.status == 1, result.message
        np.testing.assert_allclose(result.operator, left, rtol=0, atol=1e-6 * YOUNG)
        np.testing.assert_allclose(result.operator @ LOADED, point.forces, rtol=1e-6, atol=1e-3)


def test_a_dashpot_has_no_elastic_operator(plug_in: Callable[..., Path]) -> None:
    point = Point(plug_in("dashpot"), density=1.0)
    for code in (-1, 1, 2, 104):
        result = point.call(code, LOADED)
        assert result.status == -1 and "no elastic operator" in result.message
        assert not result.forces.any() and result.rdt == 1
    tangent = point.call(4, LOADED, dt=0.5).operator
    np.testing.assert_allclose(tangent, hooke() + 20 * np.eye(6), rtol=0, atol=1e-6)


def test_a_stress_out_of_proportion_has_no_secant_operator(plug_in: Callable[..., Path]) -> None:
    constant = ("predef = 0", "value = 0.25")
    point = Point(plug_in("stiffening", constant))
    assert point.table("nExternalStateVariables") == 0
    elastic, tangent = point.call(1, LOADED), point.call(4, LOADED)
    np.testing.assert_allclose(elastic.operator, tangent.operator, rtol=1e-9)
    result = point.call(2, LOADED)
    assert result.status == -1 and "no secant operator" in result.message
    np.testing.assert_allclose(point.call(2, 0 * LOADED).operator, 0.75 * hooke(), atol=1e-4)


# ---- energies, and inputs that are constant ----


@pytest.mark.parametrize("named", [True, False])
def test_a_law_with_energies_gives_them_and_says_so(
    plug_in: Callable[..., Path], named: bool
) -> None:
    edits = [("predef = 0", "value = 0.25")]
    if not named:
        edits.append(("stored_energy = 'stored_energy'", ""))
    whole = Point(plug_in("stiffening", *edits))
    assert whole.table("ComputesInternalEnergy") == named
    assert whole.table("ComputesDissipatedEnergy") == 0
    stored, dissipated = whole.call(4, LOADED).energies
    expected = LOADED @ hooke() @ LOADED / 2
    assert stored == pytest.approx(expected if named else 0, rel=1e-12)
    assert dissipated == 0


def test_vumat_gives_the_energies_of_a_law_per_mass(plug_in: Callable[..., Path]) -> None:
    vumat = ctypes.CDLL(str(plug_in("stiffening", ("predef = 0", "value = 0.25")))).vumat_
    density = np.array([7.8e-9, 2.0e-9])
    strain = np.outer([1.0, 0.5], [1e-3, -4e-4, -3e-4, 2e-4, 5e-4, -1e-4])  # 11, 22, 33, 12, 23, 31
    before = (np.zeros((2, 6)), np.zeros((2, 6)), np.zeros((2, 2)))  # the state has the strain
    energies = explicit_step(vumat, np.zeros(0), density, strain, before, 1.0)[2]
    mandel = strain[:, [0, 1, 2, 4, 5, 3]] * np.array([1, 1, 1, *[np.sqrt(2)] * 3])
    stored = np.einsum("pi,ij,pj->p", mandel, hooke(), mandel) / 2
    np.testing.assert_allclose(energies[0] * density, stored, rtol=1e-12)
    np.testing.assert_array_equal(energies[1], 0)


@pytest.mark.parametrize(
    "value, told",
    [("1, 2", "must be 1 finite number"), ("'much'", "must be 1 finite number")],
)
def test_a_value_that_is_none_is_told(plug_in: Callable[..., Path], value: str, told: str) -> None:
    with pytest.raises(PluginError, match=told):
        plug_in("stiffening", ("predef = 0", f"value = {value}"))


def test_libraries_of_laws_stand_in_one_process(plug_in: Callable[..., Path]) -> None:
    for name in ("root", "plasticity", "damage"):
        ctypes.CDLL(str(plug_in(name)), mode=ctypes.RTLD_GLOBAL)
    assert Point(plug_in("damage")).table("nInternalStateVariables") == 1
    assert Point(plug_in("root"), np.array([YOUNG])).table("nInternalStateVariables") == 0
