"""The plate of scikit_fem.py with PETSc's SNES; the step is cut if points fail.

    python petsc_snes.py ARTIFACT [STEP [END]]

STEP is the time step to begin with (1), and END the end of the pull that is reached (10), in s.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import plate
from petsc4py import PETSc
from scikit_fem import Plate
from scipy.sparse import diags

from neml2_capi import ConvergenceError

body = Plate(sys.argv[1])
dt = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
end = float(sys.argv[3]) if len(sys.argv) > 3 else 10.0
free, held = np.zeros(body.basis.N), np.zeros(body.basis.N)
free[body.free], held[body.fixed] = 1, 1


class Step:
    """The equations of one time step, as SNES asks for them."""

    def __init__(self, time: float) -> None:
        self.time, self.wanted, self.cut = time, np.zeros(body.basis.N), 0.5
        self.wanted[body.end] = plate.displacement(time)

    def residual(self, snes: Any, x: Any, f: Any) -> None:
        """Forces out of balance, in N; where displacements are held, what they lack, in mm."""
        try:
            self.forces, self.stiffness, self.outputs = body.evaluate(x.array_r, self.time)
        except ConvergenceError as error:
            self.cut = float(error.report["suggested_cut"].min())
            f.set(np.nan)  # SNES gives up
            return
        f.array = free * self.forces + held * (x.array_r - self.wanted)

    def jacobian(self, snes: Any, x: Any, A: Any, P: Any) -> None:
        """The consistent tangent, of the last residual."""
        rows = (diags(free) @ self.stiffness + diags(held)).tocsr()
        P.zeroEntries()
        P.setValuesCSR(rows.indptr, rows.indices, rows.data)
        P.assemble()


stiffness = body.evaluate(np.zeros(body.basis.N), 1.0)[1].tocsr()
matrix = PETSc.Mat().createAIJ(stiffness.shape, csr=(stiffness.indptr, stiffness.indices))
snes = PETSc.SNES().create()
snes.setTolerances(atol=1e-9, rtol=0, stol=0)
snes.getKSP().setType("preonly")
snes.getKSP().getPC().setType("lu")
snes.getLineSearch().setType("none")
snes.setConvergenceHistory(reset=True)

u, f = matrix.createVecs()
time = 0.0
while time < end:
    step, x = Step(min(time + dt, end)), u.copy()
    snes.setFunction(step.residual, f)
    snes.setJacobian(step.jacobian, matrix)
    snes.solve(None, x)
    if snes.getConvergedReason() < 0:
        print(f"the step to {step.time:g} s is cut by {step.cut:.2f}")
        dt = step.cut * (step.time - time)
        continue
    u, time = x, step.time
    body.state.advance(step.outputs)
    norms = snes.getConvergenceHistory()[0]
    print(f"{time:6.3f} s {step.forces[body.end].sum():9.3f} N ", *(f"{r:.0e}" for r in norms))
