"""Cook's membrane, clamped on its left and sheared on its right, in plane stress and scikit-fem.

python cook_membrane.py ARTIFACT [STEPS]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import skfem
from numpy.typing import NDArray
from skfem.helpers import grad

from neml2_capi import Model

Array = NDArray[np.float64]

WIDTH, LEFT, RIGHT = 48.0, 44.0, 16.0  # mm; the thickness is 1 mm
ELEMENTS, LOAD = 8, 2000.0  # on each side; N at the end
MANDEL = np.zeros((3, 2, 2))  # strain = MANDEL : grad u
MANDEL[0, 0, 0] = MANDEL[1, 1, 1] = 1
MANDEL[2, 0, 1] = MANDEL[2, 1, 0] = np.sqrt(0.5)


class Membrane:
    """The mesh, the material at its Gauss points, and what Newton's method asks of them."""

    def __init__(self, artifact: str) -> None:
        square = skfem.MeshQuad.init_tensor(*2 * [np.linspace(0, 1, ELEMENTS + 1)])
        s, t = square.p
        places = np.array([WIDTH * s, LEFT * s + t * (LEFT + (RIGHT - LEFT) * s)])
        self.mesh = skfem.MeshQuad(places, square.t)
        element = skfem.ElementVector(skfem.ElementQuad2())
        self.basis = skfem.Basis(self.mesh, element, intorder=5)  # 3 x 3 Gauss points
        self.clamped = self.basis.get_dofs(lambda x: np.isclose(x[0], 0)).all()
        self.free = self.basis.complement_dofs(self.clamped)
        end = self.basis.boundary(lambda x: np.isclose(x[0], WIDTH))
        self.load = skfem.LinearForm(lambda v, w: v[1] / RIGHT).assemble(end)  # of 1 N
        corner = self.basis.get_dofs(
            nodes=lambda x: np.isclose(x, [[WIDTH], [LEFT + RIGHT]]).all(0)
        )
        self.corner = corner.all("u^2")
        self.model = Model(artifact, hypothesis="plane_stress")
        self.state = self.model.state((self.mesh.nelements, self.basis.X.shape[-1]))

    def strain(self, u: Array) -> Array:
        """The strains of all points (element, point, 3): xx, yy and sqrt(2) xy."""
        strain: Array = np.einsum("rij,ijep->epr", MANDEL, self.basis.interpolate(u).grad)
        return strain

    def evaluate(self, u: Array, time: float) -> tuple[Array, Any, dict[str, Any]]:
        """The forces and the stiffness at displacements `u`, and the outputs of all points."""
        inputs: dict[str, Any] = {"strain": self.strain(u)} | (
            {"t": time} if "t" in self.model.inputs.names else {}
        )
        outputs, tangents = self.model.jacobian(self.state.inputs(inputs))
        stress = np.einsum("rij,epr->ijep", MANDEL, outputs["stress"])
        tangent = np.einsum("rij,skl,eprs->ijklep", MANDEL, MANDEL, tangents["stress"]["strain"])
        forces = skfem.LinearForm(lambda v, w: np.einsum("ij...,ij...", w.s, grad(v)))
        stiffness = skfem.BilinearForm(
            lambda u, v, w: np.einsum("ij...,ijkl...,kl...", grad(v), w.c, grad(u), optimize=True)
        )
        stiff = stiffness.assemble(self.basis, c=tangent)
        return forces.assemble(self.basis, s=stress), stiff, outputs

    def step(self, u: Array, time: float, load: float) -> tuple[Array, list[float]]:
        """Newton's method to `time`: the displacements, and the residuals."""
        residuals: list[float] = []
        while True:
            forces, stiffness, outputs = self.evaluate(u, time)
            out_of_balance = load * self.load - forces
            residuals.append(float(np.linalg.norm(out_of_balance[self.free])))
            if residuals[-1] < 1e-9 * load:
                self.state.advance(outputs)
                return u, residuals
            u = u + skfem.solve(*skfem.condense(stiffness, out_of_balance, D=self.clamped))


if __name__ == "__main__":
    body, steps = Membrane(sys.argv[1]), int(sys.argv[2] if len(sys.argv) > 2 else 10)
    u = body.basis.zeros()
    for number in range(1, 1 + steps):
        u, residuals = body.step(u, float(number), LOAD * number / steps)
        print(f"{number:4.1f} s {u[body.corner][0]:9.5f} mm ", *(f"{r:.0e}" for r in residuals))
