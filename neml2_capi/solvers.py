"""Solve the nonlinear systems of a model yourself, or with Newton's method in plain numpy.

    from neml2_capi.solvers import Newton

    outputs = model.forward(inputs, solver=Newton(rtol=1e-10, hook=print))

A solver is any callable that takes a System and ends with `system.accept(u)`. To write the
loop over the implicit segments as well, take it from `model.solve(inputs)`:

    with model.solve(inputs) as solve:
        for system in solve:
            u = system.guess()
            for _ in range(10):
                u = u + system.step(u)[0]
            system.accept(u)
        outputs = solve.end()
"""

from neml2_capi.engine.newton import NOT_CONVERGED, OK, SINGULAR, Newton, norms
from neml2_capi.model.solve import Solve, Solver, System

__all__ = ["NOT_CONVERGED", "OK", "SINGULAR", "Newton", "Solve", "Solver", "System", "norms"]
