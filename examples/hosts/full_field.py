"""The constants of a law from the displacements of a plate, by the adjoint of the global solve.

python full_field.py [ARTIFACT]

A plate with a hole is pulled in plane stress. A camera has the displacements of its surface after
each step, and the machine has the force. The misfit of a finite-element model to both is least for
the constants of the plate: finite-element-model updating. Its gradient takes one linear solve a
step, whatever the number of constants, backward from the last step. The data are synthetic, with
noise.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import plate
import skfem
from scipy import sparse
from scipy.optimize import minimize
from scipy.sparse.linalg import splu

from neml2_capi import Model, examples

Array = plate.Array
MANDEL = np.zeros((3, 2, 2))  # (xx, yy, sqrt(2) xy) = MANDEL : grad u
MANDEL[0, 0, 0] = MANDEL[1, 1, 1] = 1
MANDEL[2, 0, 1] = MANDEL[2, 1, 0] = np.sqrt(0.5)
TIMES = np.arange(1.0, 9.0)  # s
TRUE = {"E": 207e3, "yield_stress": 163.0}  # MPa
FIRST = {"E": 190e3, "yield_stress": 140.0}
#: Standard deviations of what is measured: displacements in mm, and the force in N.
DISPLACEMENT, FORCE = 2e-4, 5.0


class Measured(NamedTuple):
    """Displacements (steps, dofs) and the forces at the end (steps,), measured or computed."""

    displacements: Array
    forces: Array


class Plate:
    """The mesh of a quarter of the plate, and the material at its Gauss points."""

    def __init__(self, artifact: str) -> None:
        square = skfem.MeshQuad.init_tensor(*(np.linspace(0, 1, n + 1) for n in (5, 10)))
        mesh = skfem.MeshQuad(plate.from_unit_cube(square.p), square.t)
        basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementQuad1()), intorder=3)
        points = mesh.nelements * basis.X.shape[-1]
        rows = np.arange(3 * points).reshape(mesh.nelements, -1)
        columns = np.broadcast_to(basis.element_dofs[:, :, None], (8, *rows.shape))
        values = [np.einsum("rij,ijep->epr", MANDEL, shape[0].grad) for shape in basis.basis]
        places = (np.tile(rows.ravel(), 8), columns.ravel())
        #: strain = B u, with the strains of all points in a row.
        self.B = sparse.csr_matrix((np.ravel(values), places), (3 * points, basis.N))
        self.weights = plate.HALF_THICKNESS * basis.dx.reshape(-1, 1)
        self.end = basis.get_dofs(lambda x: x[1] == plate.HALF_HEIGHT).all("u^2")
        sides = [
            basis.get_dofs(lambda x, i=i: np.isclose(x[i], 0)).all(f"u^{i + 1}") for i in (0, 1)
        ]
        self.free = basis.complement_dofs(np.concatenate([*sides, self.end]))
        self.model = Model(artifact, hypothesis="plane_stress")
        self.points = points

    def strains(self, u: Array) -> Array:
        """The strains of displacements at all points."""
        return np.asarray(self.B @ u).reshape(-1, 3)

    def forces(self, stress: Array) -> Array:
        """The nodal forces of stresses, whose weights they have already."""
        return np.asarray(self.B.T @ stress.ravel())

    def pull(self, constants: dict[str, float]) -> tuple[Measured, list[Any]]:
        """Pull the plate: what is measured, and inputs and the factored stiffness of each step."""
        state, u, steps = self.model.state(self.points), np.zeros(self.B.shape[1]), []
        displacements, forces = [], []
        blocks = (np.arange(self.points), np.arange(self.points + 1))
        for time in TIMES:
            missing = np.zeros_like(u)
            missing[self.end] = plate.displacement(time) - u[self.end]
            while True:
                inputs = state.inputs(strain=self.strains(u), t=time)
                outputs, tangents = self.model.jacobian(inputs, constants)
                tangent = self.weights[..., None] * tangents["stress"]["strain"]
                stiffness = (self.B.T @ sparse.bsr_matrix((tangent, *blocks)) @ self.B).tocsc()
                factors = splu(stiffness[self.free][:, self.free])
                inner = self.forces(self.weights * outputs["stress"])
                residual = (inner + stiffness @ missing)[self.free]
                if np.abs(residual).max() < 1e-9 * max(1.0, np.abs(inner).max()):
                    break
                u = u + missing
                u[self.free] -= factors.solve(residual)
                missing[:] = 0
            steps.append(({name: np.array(value) for name, value in inputs.items()}, factors))
            displacements.append(u)
            forces.append(inner[self.end].sum())
            state.advance(outputs)
        return Measured(np.array(displacements), np.array(forces)), steps

    def gradient(
        self, constants: dict[str, float], steps: list[Any], slopes: Measured
    ) -> dict[str, float]:
        """The gradient of a number of which `slopes` has the derivatives, from the last step on."""
        total, later = dict.fromkeys(constants, 0.0), dict[str, Array]()
        for (inputs, factors), by_displacement, by_force in reversed(
            list(zip(steps, *slopes, strict=True))
        ):
            virtual = np.zeros(self.B.shape[1])
            virtual[self.end] = by_force
            before = self._adjoints(inputs, constants, virtual, later)
            right = by_displacement + self.forces(before["strain"] + later.get("strain", 0.0))
            virtual[self.free] = -factors.solve(right[self.free], "T")
            cotangents = self._cotangents(virtual, later)
            for name, value in self.model.param_vjp(inputs, cotangents, constants).items():
                total[name] += float(value)
            adjoints = self._adjoints(inputs, constants, virtual, later)
            later = {str(h.output or h.current): adjoints[h.input] for h in self.model.histories}
        return total

    def _cotangents(self, virtual: Array, later: dict[str, Array]) -> dict[str, Array]:
        """What a virtual displacement, and the steps that follow, make of the outputs."""
        known = {name: value for name, value in later.items() if name in self.model.outputs.names}
        stress = self.weights * self.strains(virtual) + known.pop("stress", 0.0)
        return {"stress": stress, **known}

    def _adjoints(
        self,
        inputs: dict[str, Array],
        constants: dict[str, float],
        virtual: Array,
        later: dict[str, Array],
    ) -> dict[str, Array]:
        return self.model.vjp(inputs, self._cotangents(virtual, later), constants)[1]


def misfit(
    body: Plate, constants: dict[str, float], data: Measured
) -> tuple[float, dict[str, float]]:
    """Half of the sum of the squared errors, each over its deviation, and its gradient."""
    found, steps = body.pull(constants)
    errors = (found.displacements - data.displacements) / DISPLACEMENT
    error = (found.forces - data.forces) / FORCE
    slopes = Measured(errors / DISPLACEMENT, error / FORCE)
    return 0.5 * float((errors**2).sum() + (error**2).sum()), body.gradient(
        constants, steps, slopes
    )


def update(body: Plate, data: Measured) -> Any:
    """The constants for which the misfit is least, as factors of the first guess."""

    def of_logarithms(x: Array) -> tuple[float, Array]:
        constants = {n: v * np.exp(y) for (n, v), y in zip(FIRST.items(), x, strict=True)}
        value, slopes = misfit(body, constants, data)
        return value, np.array([slopes[name] * constants[name] for name in FIRST])

    found = minimize(of_logarithms, np.zeros(len(FIRST)), jac=True, method="L-BFGS-B")
    found.constants = {n: v * np.exp(y) for (n, v), y in zip(FIRST.items(), found.x, strict=True)}
    return found


def measure(body: Plate, seed: int = 0) -> Measured:
    """Synthetic data of the true constants, with noise."""
    exact, random = body.pull(TRUE)[0], np.random.default_rng(seed)
    noise = DISPLACEMENT * random.normal(size=exact.displacements.shape)
    return Measured(
        exact.displacements + noise, exact.forces + FORCE * random.normal(size=len(TIMES))
    )


if __name__ == "__main__":
    body = Plate(sys.argv[1] if len(sys.argv) > 1 else str(examples.path("isotropic_hardening")))
    found = update(body, measure(body))
    print(f"{found.nfev} evaluations, misfit {found.fun:.0f}")
    for name, value in found.constants.items():
        print(f"{name}: {value / TRUE[name]:.3f} of the true {TRUE[name]:g} MPa")
