"""A bar that is pulled to one and a half of its length in FEniCSx, by a law of small strain.

python fenicsx_large_strain.py ARTIFACT [STEPS] [free | held]

The model takes the deformation gradient of each Gauss point, puts the logarithmic strain into the
law, and gives the first Piola-Kirchhoff stress with its tangent. An end that is free to contract
leaves the strain uniform: the force is then that of the law's own tension test, which is printed
beside it. One that is held makes the bar neck. An eighth of the bar, by symmetry; MPa, mm, s.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import basix.ufl
import numpy as np
import ufl
from dolfinx import fem, mesh
from dolfinx.fem.petsc import NonlinearProblem
from dolfinx_external_operator import FEMExternalOperator as ExternalOperator
from dolfinx_external_operator import (
    evaluate_external_operators,
    evaluate_operands,
    replace_external_operators,
)
from dolfinx_external_operator.petsc import assemble_residual_with_callback
from mpi4py import MPI
from numpy.typing import NDArray

from neml2_capi import Model, experiments

Array = NDArray[np.float64]
STRETCH, LENGTH, SECONDS, POINTS = 1.5, 2.0, 100.0, 27

steps = int(sys.argv[2]) if len(sys.argv) > 2 else 50
held_end = sys.argv[3:] != ["free"]
corners = [[0.0, 0.0, 0.0], [1.0, 1.0, LENGTH]]
domain = mesh.create_box(MPI.COMM_SELF, corners, [2, 2, 4], mesh.CellType.hexahedron)
V = fem.functionspace(domain, ("Lagrange", 2, (3,)))
u, pull = fem.Function(V), fem.Constant(domain, 0.0)

model = Model(sys.argv[1], strain_measure="logarithmic", stress_measure="pk1")
gauss = basix.ufl.quadrature_element("hexahedron", degree=5, value_shape=(3, 3))
stress = ExternalOperator(ufl.grad(u), function_space=fem.functionspace(domain, gauss))
state, now = model.state((2 * 2 * 4, POINTS)), dict[str, Any]()


def evaluate(gradient: Array) -> Array:
    """The tangents dP/dF, for the external operator; and the outputs, in `now`."""
    F = np.eye(3) + gradient.reshape(-1, POINTS, 3, 3)
    outputs, tangents = model.jacobian(state.inputs(deformation_gradient=F, t=now["t"]))
    now.update(outputs)
    return np.ravel(tangents["pk1_stress"]["deformation_gradient"])


stress.external_function = lambda order: evaluate
work = ufl.inner(stress, ufl.grad(ufl.TestFunction(V))) * ufl.dx(metadata={"quadrature_degree": 5})
jacobian = ufl.algorithms.expand_derivatives(ufl.derivative(work, u))
(residual, _), (jacobian, tangents) = map(replace_external_operators, (work, jacobian))


def update() -> None:
    """Bring stresses and tangents to the displacements u."""
    evaluate_external_operators(tangents, evaluate_operands(tangents))
    stress.ref_coefficient.x.array[:] = now["pk1_stress"].ravel()


def held(axis: int, normal: int, place: float, value: Any) -> Any:
    facets = mesh.locate_entities_boundary(domain, 2, lambda x: np.isclose(x[normal], place))
    return fem.dirichletbc(value, fem.locate_dofs_topological(V.sub(axis), 2, facets), V.sub(axis))


zero = fem.Constant(domain, 0.0)
end = held(2, 2, LENGTH, pull)
bcs = [*(held(axis, axis, 0, zero) for axis in range(3)), end]
bcs += [held(axis, 2, LENGTH, zero) for axis in (0, 1) if held_end]
options = {"snes_linesearch_type": "none", "snes_atol": 1e-9, "snes_rtol": 0, "pc_type": "lu"}
options |= {"ksp_type": "preonly", "snes_error_if_not_converged": True}
problem = NonlinearProblem(
    residual, u, J=jacobian, bcs=bcs, petsc_options_prefix="bar_", petsc_options=options
)
args = (u, problem.F, problem.J, bcs, update, ())
problem.solver.setFunction(functools.partial(assemble_residual_with_callback, *args), problem.b)
problem.solver.setConvergenceHistory(reset=True)

times = np.linspace(0, SECONDS, steps + 1)
stretches = 1 + (STRETCH - 1) * times / SECONDS
test = experiments.tension(Model(sys.argv[1]), times, np.log(stretches))
uniform = test["stress"][:, 0] / stretches  # tau / lambda: of the section before it contracted
for time, stretch, expected in zip(times[1:], stretches[1:], uniform[1:], strict=True):
    now["t"], pull.value = time, LENGTH * (stretch - 1)
    problem.solve()
    state.advance(now)
    force = fem.assemble_vector(problem.F).array[end.dof_indices()[0]].sum()
    residuals = problem.solver.getConvergenceHistory()[0]
    print(
        f"{time:5.1f} s {force:.7g} N, uniform {expected:.7g} N ",
        *(f"{r:.0e}" for r in residuals),
    )
