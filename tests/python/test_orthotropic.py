"""An orthotropic elastic law turned by 30 degrees is the turned loading: C's way, UMAT and MGIS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_large_strain import Array, rotation, shear
from test_large_strain_hosts import FACTORS, NINE, SIX, Behaviour, plug_in, rotated, umat

from neml2_capi import Model, mandel

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402

pytestmark = [pytest.mark.full("the law is exported by torch"), pytest.mark.native]

#: In Mandel notation, in the axes of the material.
STIFFNESS = np.zeros((6, 6))
STIFFNESS[:3, :3] = [[170e3, 60e3, 40e3], [60e3, 100e3, 30e3], [40e3, 30e3, 60e3]]
STIFFNESS[[3, 4, 5], [3, 4, 5]] = 20e3, 40e3, 70e3
#: Columns are the unit vectors of the material's axes.
AXES = rotation(np.pi / 6)
STRAIN = np.array([1e-3, -4e-4, 2e-4, 3e-4, -1e-4, 6e-4])


def turned(six: Array, turn: Array) -> Array:
    return np.asarray(mandel.from_tensor(turn @ mandel.to_tensor(six) @ turn.T))


def stiffness_there() -> Array:
    """In the global axes, by tensors of fourth order."""
    to_material = np.stack([turned(unit, AXES.T) for unit in np.eye(6)], axis=-1)
    result: Array = to_material.T @ STIFFNESS @ to_material
    return result


@pytest.fixture(scope="module")
def law(tmp_path_factory: pytest.TempPathFactory) -> Path:
    matrix = torch.tensor(STIFFNESS)

    def elasticity(strain: Any) -> Any:
        return matrix @ strain

    folder = tmp_path_factory.mktemp("orthotropic") / "steel"
    variables = ({"strain": "SR2"}, {"stress": "SR2"})
    export.model(elasticity, folder, inputs=variables[0], outputs=variables[1], kernels="only")
    return folder


def test_a_model_with_material_axes(law: Path) -> None:
    model = Model(law, material_axes=True)
    outputs, blocks = model.jacobian({"strain": STRAIN, "material_axes": AXES.T})
    there = stiffness_there()
    np.testing.assert_allclose(outputs["stress"], there @ STRAIN, rtol=0, atol=1e-9)
    np.testing.assert_allclose(blocks["stress"]["strain"], there, rtol=0, atol=1e-7)


def test_large_strain_turns_with_the_axes(law: Path) -> None:
    gradient = shear(0.7) @ np.diag([1.2, 0.9, 1.1])
    model = Model(law, material_axes=True, strain_measure="logarithmic")
    plain = Model(law, strain_measure="logarithmic")
    found = model(deformation_gradient=gradient, material_axes=AXES.T)["pk1_stress"]
    there = plain(deformation_gradient=AXES.T @ gradient @ AXES)["pk1_stress"]
    np.testing.assert_allclose(found, AXES @ there @ AXES.T, rtol=0, atol=1e-9 * abs(there).max())


def test_umat_with_an_orientation(law: Path, tmp_path: Path) -> None:
    """Abaqus passes all tensors in the axes of *ORIENTATION, and turns what comes back."""
    library, local = plug_in(tmp_path, artifact=law), turned(STRAIN, AXES.T)
    stress, unit = np.zeros(6), np.eye(3)
    dstran = (local * FACTORS)[SIX]
    props = np.zeros(1)
    ddsdde, _ = umat(
        library, unit, unit, stress, np.zeros(1), unit, 0.0, dstran=dstran, props=props
    )
    there = turned(stress[SIX] * FACTORS, AXES)
    np.testing.assert_allclose(there, stiffness_there() @ STRAIN, rtol=0, atol=1e-9)
    expected = (STIFFNESS / FACTORS[:, np.newaxis] / FACTORS)[SIX][:, SIX]
    np.testing.assert_allclose(ddsdde, expected, rtol=0, atol=1e-7)


def test_mgis_turns_gradients_forces_and_operators(law: Path, tmp_path: Path) -> None:
    library = plug_in(tmp_path, "symmetry = 'orthotropic'", artifact=law)
    behaviour = Behaviour(library, gradients=6)
    loaded = behaviour.library
    local = rotated(loaded, "Gradients", STRAIN[SIX], AXES)
    np.testing.assert_allclose(local, turned(STRAIN, AXES.T)[SIX], atol=1e-18)
    status, operator = behaviour.call(local)
    assert status == 1, behaviour.message.value
    there = stiffness_there()
    forces = rotated(loaded, "ThermodynamicForces", behaviour.forces, AXES)
    block = rotated(loaded, "TangentOperatorBlocks", operator[:36], AXES).reshape(6, 6)
    np.testing.assert_allclose(forces, (there @ STRAIN)[SIX], rtol=0, atol=1e-9)
    np.testing.assert_allclose(block, there[SIX][:, SIX], rtol=0, atol=1e-7)


def test_mgis_turns_large_strain(law: Path, tmp_path: Path) -> None:
    library = plug_in(
        tmp_path, "symmetry = 'orthotropic'", "strain_measure = 'logarithmic'", artifact=law
    )
    gradient = shear(0.7) @ np.diag([1.2, 0.9, 1.1])
    behaviour = Behaviour(library, forces=9)
    local = rotated(behaviour.library, "Gradients", gradient.ravel()[NINE], AXES)
    status, operator = behaviour.call(local, stress=2, operator=2)
    assert status == 1, behaviour.message.value
    model = Model(law, material_axes=True, strain_measure="logarithmic")
    outputs, blocks = model.jacobian({"deformation_gradient": gradient, "material_axes": AXES.T})
    forces = rotated(behaviour.library, "ThermodynamicForces_PK1Stress", behaviour.forces, AXES)
    block = rotated(behaviour.library, "TangentOperatorBlocks_dPK1_dF", operator, AXES)
    expected = np.asarray(outputs["pk1_stress"]).ravel()[NINE]
    np.testing.assert_allclose(forces, expected, rtol=0, atol=1e-9 * abs(expected).max())
    tangent = np.asarray(blocks["pk1_stress"]["deformation_gradient"]).reshape(9, 9)
    np.testing.assert_allclose(
        block.reshape(9, 9), tangent[NINE][:, NINE], rtol=0, atol=1e-8 * abs(tangent).max()
    )
