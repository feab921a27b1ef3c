"""A plate with a hole in scikit-fem, whose material is a compiled model.

python scikit_fem.py ARTIFACT [STEPS]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import plate
import skfem
from skfem.helpers import grad

from neml2_capi import Model

MANDEL = np.zeros((6, 3, 3))  # strain = MANDEL : grad u
for row, (i, j) in enumerate([(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]):
    MANDEL[row, i, j] += 1 if i == j else np.sqrt(0.5)
    MANDEL[row, j, i] = MANDEL[row, i, j]


class Plate:
    """The mesh, the material at its Gauss points, and what Newton's method asks of them."""

    def __init__(self, artifact: str) -> None:
        cube = skfem.MeshHex.init_tensor(*(np.linspace(0, 1, n + 1) for n in plate.ELEMENTS))
        self.mesh = skfem.MeshHex(plate.from_unit_cube(cube.p), cube.t)
        element = skfem.ElementVector(skfem.ElementHex1())
        self.basis = skfem.Basis(self.mesh, element, intorder=3)  # 2 x 2 x 2 Gauss points
        self.end = self.basis.get_dofs(lambda x: x[1] == plate.HALF_HEIGHT).all("u^2")
        planes = [
            self.basis.get_dofs(lambda x, i=i: np.isclose(x[i], 0)).all(f"u^{i + 1}")
            for i in range(3)
        ]
        self.fixed = np.concatenate([*planes, self.end])
        self.free = self.basis.complement_dofs(self.fixed)

        self.model = Model(artifact)
        self.state = self.model.state((self.mesh.nelements, self.basis.X.shape[-1]))

    def evaluate(self, u: plate.Array, time: float) -> tuple[plate.Array, Any, dict[str, Any]]:
        """The forces and the stiffness at displacements `u`, and the outputs of all points."""
        gradient = self.basis.interpolate(u).grad
        strain = np.einsum("rij,ijep->epr", MANDEL, gradient)
        outputs, tangents = self.model.jacobian(self.state.inputs(strain=strain, t=time))
        stress = np.einsum("rij,epr->ijep", MANDEL, outputs["stress"])
        tangent = np.einsum(
            "rij,skl,eprs->ijklep", MANDEL, MANDEL, tangents["stress"]["strain"], optimize=True
        )
        forces = skfem.LinearForm(lambda v, w: np.einsum("ij...,ij...", w.s, grad(v)))
        stiffness = skfem.BilinearForm(
            lambda u, v, w: np.einsum("ij...,ijkl...,kl...", grad(v), w.c, grad(u), optimize=True)
        )
        stiff = stiffness.assemble(self.basis, c=tangent)
        return forces.assemble(self.basis, s=stress), stiff, outputs


def step(body: Plate, u: plate.Array, time: float) -> tuple[plate.Array, float, list[float]]:
    """Newton's method to `time`: the displacements, the reaction at the end, and the residuals."""
    missing, residuals = np.zeros_like(u), []
    missing[body.end] = plate.displacement(time) - u[body.end]
    while True:
        forces, stiffness, outputs = body.evaluate(u, time)
        out_of_balance = (forces + stiffness @ missing)[body.free]
        residuals.append(float(np.linalg.norm(out_of_balance)))
        if residuals[-1] < 1e-9:
            body.state.advance(outputs)
            return u, forces[body.end].sum(), residuals
        u = u + skfem.solve(*skfem.condense(stiffness, -forces, x=missing, D=body.fixed))
        missing[:] = 0


if __name__ == "__main__":
    body = Plate(sys.argv[1])
    u = body.basis.zeros()
    for time in np.arange(1.0, 1 + int(sys.argv[2] if len(sys.argv) > 2 else 10)):
        u, reaction, residuals = step(body, u, time)
        print(f"{time:4.1f} s {reaction:9.3f} N ", *(f"{r:.0e}" for r in residuals))
