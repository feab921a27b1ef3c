"""Plug-ins of laws with a strain measure, as hosts of UMAT and MGIS call them, beside the model."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import HOSTS, PREBUILT
from numpy.typing import NDArray
from test_large_strain import rotation, shear

from neml2_capi import Model, mandel
from neml2_capi.plugin import PluginError, make
from neml2_capi.umat import draft

pytestmark = pytest.mark.native

Array = NDArray[np.float64]

HARDENING = PREBUILT / "combined_hardening"
PROPS = np.array([200e3, 150.0])
#: MFront's order of a tensor and of a symmetric one, as positions of NEML2's.
NINE, SIX = [0, 4, 8, 1, 3, 2, 6, 5, 7], [0, 1, 2, 5, 4, 3]
STRESSES = ("cauchy", "pk2", "pk1")
NAMES = {
    "cauchy": "cauchy_stress",
    "pk2": "pk2_stress",
    "pk1": "pk1_stress",
    "kirchhoff": "kirchhoff_stress",
}

#: A pull and a shear, while the whole turns.
PATH = [
    rotation(0.3 * s, 0) @ rotation(0.8 * s) @ shear(0.1 * s) @ np.diag([1 + 0.05 * s, 1, 1])
    for s in (0.0, 0.3, 0.7, 1.0)
]


def plug_in(folder: Path, *lines: str, artifact: Path = HARDENING) -> Path:
    """A library whose mapping has these lines in &material."""
    file, library = folder / "steel.nml", folder / "libsteel.so"
    text = draft(artifact, file)
    file.write_text(
        text.replace("&material\n", "&material\n" + "".join(f"  {line}\n" for line in lines))
    )
    make(artifact, library, mapping=file)
    return library


@pytest.fixture(scope="module")
def steel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plug_in(tmp_path_factory.mktemp("large"), "strain_measure = 'logarithmic'")


def reference(stress: str) -> tuple[list[Array], list[Array]]:
    """The stress and the tangent by F of each step, by the model."""
    model = Model(HARDENING, strain_measure="logarithmic", stress_measure=stress)
    state, stresses, tangents = model.state(), [], []
    for step, gradient in enumerate(PATH[1:]):
        inputs = state.inputs(deformation_gradient=gradient, t=1.0 * (step + 1))
        outputs, blocks = model.jacobian(inputs)
        state.advance(outputs)
        stresses.append(np.asarray(outputs[NAMES[stress]]))
        tangents.append(np.asarray(blocks[NAMES[stress]]["deformation_gradient"]))
    return stresses, tangents


# ---- MGIS ----


class _State(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p)
        for name in (
            "gradients",
            "forces",
            "density",
            "properties",
            "states",
            "stored",
            "dissipated",
            "external",
        )
    ]


class _View(ctypes.Structure):
    _fields_ = [
        ("message", ctypes.c_void_p),
        ("dt", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("K", "rdt", "speed")),
        ("s0", _State),
        ("s1", _State),
    ]


class Behaviour:
    """A point that MGIS would drive."""

    def __init__(self, library: Path, forces: int = 6, gradients: int = 9) -> None:
        self.library = ctypes.CDLL(str(library))
        self.gradient = np.eye(3).ravel()[NINE] if gradients == 9 else np.zeros(6)
        self.forces, self.states = np.zeros(forces), np.zeros(200)
        self.message = ctypes.create_string_buffer(512)

    def call(
        self, gradient: Array, code: float = 4, stress: float = 0, operator: float = 0
    ) -> tuple[int, Array]:
        """Integrate a step of 1 s. The status, and K."""
        K, rdt = np.zeros(81), np.ones(1)
        K[:3] = code, stress, operator
        forces, states = self.forces.copy(), self.states.copy()
        view = _View(ctypes.addressof(self.message), 1.0, K.ctypes.data, rdt.ctypes.data)
        for target, arrays in (
            (view.s0, {"gradients": self.gradient, "forces": self.forces, "states": self.states}),
            (view.s1, {"gradients": gradient, "forces": forces, "states": states}),
        ):
            target.properties = PROPS.ctypes.data
            for name, array in arrays.items():
                setattr(target, name, array.ctypes.data)
        status = self.library.NEML2_Tridimensional(ctypes.byref(view))
        if status == 1:
            self.gradient, self.forces, self.states = gradient, forces, states
        return status, K


@pytest.mark.parametrize("stress", STRESSES)
def test_mgis_gets_the_stress_that_it_asks_for(steel: Path, stress: str) -> None:
    behaviour = Behaviour(steel, 9 if stress == "pk1" else 6)
    for gradient, expected in zip(PATH[1:], reference(stress)[0], strict=True):
        status, _ = behaviour.call(gradient.ravel()[NINE], stress=STRESSES.index(stress))
        assert status == 1, behaviour.message.value
        ordered = expected.ravel()[NINE] if stress == "pk1" else expected[SIX]
        np.testing.assert_allclose(
            behaviour.forces, ordered, rtol=0, atol=1e-9 * abs(expected).max()
        )


def test_mgis_gets_the_operator_that_it_asks_for(steel: Path) -> None:
    def last(operator: int) -> Array:
        behaviour = Behaviour(steel)
        for gradient in PATH[1:]:
            status, K = behaviour.call(gradient.ravel()[NINE], operator=operator)
            assert status == 1, behaviour.message.value
        return K

    def assert_close(found: Array, expected: Array) -> None:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * abs(expected).max())

    by = {name: reference(name)[1][-1].reshape(-1, 9) for name in NAMES}
    before, now = PATH[-2], PATH[-1]
    assert_close(last(0)[:54].reshape(6, 9), by["cauchy"][SIX][:, NINE])
    assert_close(last(2).reshape(9, 9), by["pk1"][NINE][:, NINE])
    basis = mandel.to_tensor(np.eye(6))
    by_green = by["pk2"] @ (np.linalg.inv(now).T @ basis).reshape(6, 9).T
    assert_close(last(1)[:36].reshape(6, 6), by_green[SIX][:, SIX])
    of_increments = np.eye(9).reshape(9, 3, 3) @ before
    assert_close(
        last(3)[:54].reshape(6, 9), (by["kirchhoff"] @ of_increments.reshape(9, 9).T)[SIX][:, NINE]
    )


def test_mgis_is_told_that_a_point_is_turned_inside_out(steel: Path) -> None:
    behaviour = Behaviour(steel)
    assert behaviour.call(np.diag([-1.0, 1, 1]).ravel()[NINE])[0] == -1
    assert b"determinant of the deformation gradient is -1" in behaviour.message.value


def test_tables_of_mgis_tell_a_behaviour_of_large_strain(steel: Path) -> None:
    library = ctypes.CDLL(str(steel))

    def table(kind: Any, name: str) -> Any:
        return kind.in_dll(library, f"NEML2_{name}").value

    assert table(ctypes.c_ushort, "BehaviourType") == 2
    assert table(ctypes.c_ushort, "BehaviourKinematic") == 3
    assert table(ctypes.c_char_p, "Gradients") == b"DeformationGradient"
    assert table(ctypes.c_int, "GradientsTypes") == 3
    assert table(ctypes.c_ushort, "SymmetryType") == 0
    assert table(ctypes.c_ushort, "nModellingHypotheses") == 1


# ---- material axes of MGIS ----


def rotated(library: ctypes.CDLL, name: str, values: Array, axes: Array) -> Array:
    """Return values as the behaviour rotates them; columns are the material's axes."""
    turn, to = getattr(library, f"NEML2_Tridimensional_rotate{name}"), np.empty_like(values)
    matrix = np.ascontiguousarray(axes)
    turn(*(ctypes.c_void_p(a.ctypes.data) for a in (to, np.ascontiguousarray(values), matrix)))
    return to


def test_mgis_turns_an_orthotropic_behaviour(tmp_path: Path) -> None:
    library = plug_in(tmp_path, "symmetry = 'orthotropic'", "strain_measure = 'logarithmic'")
    loaded, axes = ctypes.CDLL(str(library)), rotation(np.pi / 6, 0) @ rotation(np.pi / 6)
    assert ctypes.c_ushort.in_dll(loaded, "NEML2_SymmetryType").value == 1
    there = axes.T @ PATH[2] @ axes
    turned = rotated(loaded, "Gradients", PATH[2].ravel()[NINE], axes)
    np.testing.assert_allclose(turned, there.ravel()[NINE], atol=1e-15)
    # An isotropic law does not see where its axes are.
    for stress, operator, names, shape in (
        (0, 0, ("CauchyStress", "dsig_dF"), (6, 9)),
        (1, 1, ("PK2Stress", "dPK2_dEGL"), (6, 6)),
        (2, 2, ("PK1Stress", "dPK1_dF"), (9, 9)),
        (0, 3, ("CauchyStress", "dtau_ddF"), (6, 9)),
    ):
        straight, moved = (Behaviour(library, 9 if stress == 2 else 6) for _ in range(2))
        _, expected = straight.call(PATH[2].ravel()[NINE], stress=stress, operator=operator)
        status, found = moved.call(turned, stress=stress, operator=operator)
        assert status == 1
        size = shape[0] * shape[1]
        forces = rotated(loaded, f"ThermodynamicForces_{names[0]}", moved.forces, axes)
        block = rotated(loaded, f"TangentOperatorBlocks_{names[1]}", found[:size], axes)
        np.testing.assert_allclose(forces, straight.forces, atol=1e-9 * abs(straight.forces).max())
        np.testing.assert_allclose(block, expected[:size], atol=1e-9 * abs(expected).max())


# ---- UMAT ----

#: Abaqus' order, as positions of NEML2's, and the factors of its stresses.
FACTORS = np.array([1, 1, 1, np.sqrt(2), np.sqrt(2), np.sqrt(2)])


def umat(
    library: Path,
    before: Array,
    now: Array,
    stress: Array,
    statev: Array,
    turn: Array,
    time: float,
    *,
    dstran: Array | None = None,
    props: Array = PROPS,
    asked: float = 1.0,
) -> tuple[Array, float]:
    """A step of 1 s, in place. DDSDDE, and PNEWDT, which was `asked`."""
    zeros, dtime, pnewdt = np.zeros(9), np.ones(1), np.array([asked])
    ddsdde = np.zeros((6, 6), order="F")
    drot, dfgrd0, dfgrd1 = (np.asfortranarray(each) for each in (turn, before, now))
    ndi, nshr, ntens, nstatv, nprops = (
        np.array(size, np.int32) for size in (3, 3, 6, statev.size, props.size)
    )
    name = np.frombuffer(b"STEEL".ljust(80), np.uint8)
    arguments: list[Any] = [
        stress,
        statev,
        ddsdde,
        *[zeros] * 8,
        zeros if dstran is None else dstran,
    ]
    arguments += [np.array([time, time]), dtime, *[zeros] * 4, name, ndi, nshr, ntens, nstatv]
    arguments += [props, nprops, zeros, drot, pnewdt, zeros, dfgrd0, dfgrd1]
    ctypes.CDLL(str(library)).umat_(*(ctypes.c_void_p(a.ctypes.data) for a in arguments))
    return ddsdde, float(pnewdt[0])


def test_umat_gets_cauchys_stress_and_the_tangent_of_jaumann(steel: Path) -> None:
    stresses, _ = reference("cauchy")
    _, tangents = reference("kirchhoff")
    stress, statev, turn = np.zeros(6), np.zeros(13), rotation(0.2)
    for step in range(3):
        # Abaqus passes the stress turned by DROT.
        tensor = turn @ mandel.to_tensor(stress[SIX] * FACTORS) @ turn.T
        stress = np.asarray(mandel.from_tensor(tensor) / FACTORS)[SIX]
        ddsdde, pnewdt = umat(steel, PATH[step], PATH[step + 1], stress, statev, turn, float(step))
        assert pnewdt == 1
        np.testing.assert_allclose(
            stress, (stresses[step] / FACTORS)[SIX], rtol=0, atol=1e-9 * abs(stresses[step]).max()
        )
        now = PATH[step + 1]
        motion = (mandel.to_tensor(np.eye(6)) @ now).reshape(6, 9).T
        of_jaumann = tangents[step].reshape(6, 9) @ motion / np.linalg.det(now)
        expected = (of_jaumann / FACTORS[:, np.newaxis] / FACTORS)[SIX][:, SIX]
        np.testing.assert_allclose(ddsdde, expected, rtol=0, atol=1e-7 * abs(expected).max())


@pytest.mark.parametrize("asked, wanted", [(1.0, 0.5), (1e36, 0.5), (0.1, 0.1)])
def test_umat_asks_for_a_smaller_step_if_a_point_is_turned_inside_out(
    steel: Path, asked: float, wanted: float
) -> None:
    stress, statev, unit = np.full(6, 7.0), np.zeros(13), np.eye(3)
    inside_out = np.diag([-1.0, 1, 1])
    _, pnewdt = umat(steel, unit, inside_out, stress, statev, unit, 0.0, asked=asked)
    assert pnewdt == wanted
    np.testing.assert_array_equal(stress, np.full(6, 7.0))


@pytest.mark.parametrize("asked", [0.7, 1.5, 1e36])
def test_umat_leaves_pnewdt_as_it_is_if_a_point_is_solved(steel: Path, asked: float) -> None:
    """It was 1 after each point, more than which no host would make of it."""
    stress, statev, unit = np.zeros(6), np.zeros(13), np.eye(3)
    _, pnewdt = umat(steel, unit, PATH[1], stress, statev, unit, 0.0, asked=asked)
    assert pnewdt == asked and stress.any()


@pytest.mark.parametrize("name", ["dfgrd0", "dfgrd1"])
def test_umat_names_a_deformation_gradient_that_is_nan(
    steel: Path, tmp_path: Path, name: str
) -> None:
    """A smaller step was asked for, again and again, or the strain was blamed."""
    given: dict[str, Any] = {
        "stress": np.zeros(6),
        "stran": np.zeros(6),
        "statev": np.zeros(13),
        "props": PROPS,
    }
    given |= {"dtime": np.ones(1), "pnewdt": np.ones(1), "cmname": np.array("steel")}
    given |= {"dfgrd0": np.eye(3), "dfgrd1": np.eye(3), name: np.diag([1, np.nan, 1])}
    np.savez(tmp_path / "given.npz", **given)
    files = [steel, tmp_path / "given.npz", tmp_path / "result.npz"]
    done = subprocess.run(
        [sys.executable, HOSTS / "umat.py", *files], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"{name.upper()} is NaN or infinite. A smaller step does not mend that" in done.stderr


def test_a_mapping_that_cannot_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="strain_measure 'log'"):
        plug_in(tmp_path, "strain_measure = 'log'")
    with pytest.raises(PluginError, match="symmetry 'cubic'"):
        plug_in(tmp_path, "symmetry = 'cubic'")
    with pytest.raises(PluginError, match="calculix passes no deformation gradient"):
        plug_in(tmp_path, "strain_measure = 'logarithmic'", "host = 'calculix'")
