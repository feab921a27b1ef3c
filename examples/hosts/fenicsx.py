"""A plate with a hole in FEniCSx, whose material is a compiled model in an external operator.

python fenicsx.py ARTIFACT [STEPS]
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import basix.ufl
import numpy as np
import plate
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

from neml2_capi import Model

cube, cells = plate.grid()
element = basix.ufl.element("Lagrange", "hexahedron", 1, shape=(3,))
domain = mesh.create_mesh(MPI.COMM_WORLD, cells, element, plate.from_unit_cube(cube).T)
V = fem.functionspace(domain, element)
u, pull = fem.Function(V), fem.Constant(domain, 0.0)


def mandel(w: Any) -> Any:
    e, s = ufl.sym(ufl.grad(w)), np.sqrt(2)
    return ufl.as_vector([e[0, 0], e[1, 1], e[2, 2], s * e[1, 2], s * e[0, 2], s * e[0, 1]])


# All Gauss points, 2 x 2 x 2 in each element, are one call of the model.
model = Model(sys.argv[1])
gauss = basix.ufl.quadrature_element("hexahedron", degree=3, value_shape=(6,))
stress = ExternalOperator(mandel(u), function_space=fem.functionspace(domain, gauss))
state, now = model.state((len(cells), 8)), dict[str, Any]()


def evaluate(strain: plate.Array) -> plate.Array:
    """The tangents, for the external operator; and the outputs, in `now`."""
    inputs = state.inputs(strain=strain.reshape(-1, 8, 6), t=now["t"])
    outputs, tangents = model.jacobian(inputs)
    now.update(outputs)
    return np.ravel(tangents["stress"]["strain"])


stress.external_function = lambda order: evaluate
work = ufl.inner(stress, mandel(ufl.TestFunction(V))) * ufl.dx(metadata={"quadrature_degree": 3})
jacobian = ufl.algorithms.expand_derivatives(ufl.derivative(work, u))
(residual, _), (jacobian, tangents) = map(replace_external_operators, (work, jacobian))


def update() -> None:
    """Bring stresses and tangents to the displacements u."""
    evaluate_external_operators(tangents, evaluate_operands(tangents))
    stress.ref_coefficient.x.array[:] = now["stress"].ravel()


def held(axis: int, place: float, value: Any) -> Any:
    facets = mesh.locate_entities_boundary(domain, 2, lambda x: np.isclose(x[axis], place))
    return fem.dirichletbc(value, fem.locate_dofs_topological(V.sub(axis), 2, facets), V.sub(axis))


end = held(1, plate.HALF_HEIGHT, pull)
bcs = [*(held(axis, 0, fem.Constant(domain, 0.0)) for axis in range(3)), end]
options = {"snes_linesearch_type": "none", "snes_atol": 1e-9, "snes_rtol": 0, "pc_type": "lu"}
options |= {"ksp_type": "preonly", "snes_error_if_not_converged": True}
problem = NonlinearProblem(
    residual, u, J=jacobian, bcs=bcs, petsc_options_prefix="plate_", petsc_options=options
)
args = (u, problem.F, problem.J, bcs, update, ())
problem.solver.setFunction(functools.partial(assemble_residual_with_callback, *args), problem.b)
problem.solver.setConvergenceHistory(reset=True)
for time in np.arange(1.0, 1 + int(sys.argv[2] if len(sys.argv) > 2 else 10)):
    now["t"], pull.value = time, plate.displacement(time)
    problem.solve()
    state.advance(now)
    reaction = fem.assemble_vector(problem.F).array[end.dof_indices()[0]].sum()
    residuals = problem.solver.getConvergenceHistory()[0]
    print(f"{time:4.1f} s {reaction:9.3f} N ", *(f"{r:.0e}" for r in residuals))
