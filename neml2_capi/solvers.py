"""Solve the nonlinear systems of a model yourself, or with Newton's method in plain numpy.

    from neml2_capi.solvers import Newton

    outputs = model.forward(inputs, solver=Newton(rtol=1e-10, hook=print))

A solver is any callable that takes a System and ends with `system.accept(u)`. Whoever wants the
loop over the implicit segments, too, takes it from `model.solve(inputs)`:

    with model.solve(inputs) as solve:
        for system in solve:
            u = system.guess()
            for _ in range(10):
                u = u + system.step(u)[0]
            system.accept(u)
        outputs = solve.end()
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.model.solve import Array, Solve, Solver, System

if TYPE_CHECKING:
    from neml2_capi.model import Model

__all__ = ["NOT_CONVERGED", "OK", "SINGULAR", "Newton", "Solve", "Solver", "System", "norms"]

#: The status of a point that has converged, for System.accept().
OK: int = lib.NEML2_OK
#: The status of a point that has not converged.
NOT_CONVERGED: int = lib.NEML2_NOT_CONVERGED
#: The status of a point whose matrix is singular.
SINGULAR: int = lib.NEML2_SINGULAR


@dataclass(frozen=True)
class Newton:
    """Newton's method with line search, for all points side by side.

    It is the library's own iteration, written to be read: the same options, the same iterates. A
    point has converged when |r| < atol, |r| / |r0| < rtol or r = 0, and is then left alone; with
    `whole_batch`, all points iterate until all have converged, and one that fails fails all.
    """

    #: A point has converged when |r| is less,
    atol: float = 1e-10
    #: or |r| / |r0|, with r0 the residual at the initial guess.
    rtol: float = 1e-8
    #: At most miters - 1 steps are made.
    miters: int = 25
    #: "BACKTRACKING" or "STRONG_WOLFE".
    ls_type: str = "BACKTRACKING"
    #: At most ls_max_iters - 1 trials; 1: no line search.
    ls_max_iters: int = 1
    #: The step length is divided by it after a trial that failed.
    ls_cutback: float = 2.0
    #: The fraction of the expected decrease that a trial must reach.
    ls_c: float = 1e-3
    #: Whether all points iterate until all have converged.
    whole_batch: bool = False
    #: Called as hook(iteration, u, norms) with the initial guess and after each step: the iterates
    #: of all points and their |r|. They are to be read only.
    hook: Callable[[int, Array, Array], Any] | None = None

    def __post_init__(self) -> None:
        """FatalError for what makes no iteration."""
        for name, sound, wanted in (
            ("atol", self.atol >= 0, "0 or more"),
            ("rtol", self.rtol >= 0, "0 or more"),
            ("miters", self.miters >= 1, "1 or more"),
            (
                "ls_type",
                self.ls_type in ("BACKTRACKING", "STRONG_WOLFE"),
                "BACKTRACKING or STRONG_WOLFE",
            ),
            ("ls_max_iters", self.ls_max_iters >= 1, "1 or more"),
            ("ls_cutback", self.ls_cutback > 1, "more than 1"),
            ("ls_c", self.ls_c >= 0, "0 or more"),
        ):
            if not sound:
                raise FatalError(
                    f"{name} of Newton's method is {getattr(self, name)!r}; it must be {wanted}",
                    lib.NEML2_ERROR_ARGUMENT,
                    name,
                )

    @classmethod
    def like(cls, model: Model, hook: Callable[[int, Array, Array], Any] | None = None) -> Newton:
        """Make one with the options that a model has now.

        Parameters
        ----------
        model
            Where the options come from; later changes of them do not count.
        hook
            As the attribute.

        Returns
        -------
        Newton
            The solver, to be given to Model.forward().
        """
        options = model.options
        return cls(
            atol=options["atol"],
            rtol=options["rtol"],
            miters=int(options["miters"]),
            ls_type=options["ls_type"],
            ls_max_iters=int(options["ls_max_iters"]),
            ls_cutback=options["ls_cutback"],
            ls_c=options["ls_c"],
            whole_batch=options["convergence"] == "batch",
            hook=hook,
        )

    def __call__(self, system: System) -> None:
        """Solve a system, and accept what was found.

        Points that do not converge are accepted with their status, for which the evaluation raises.

        Parameters
        ----------
        system
            The current system of a Solve.
        """
        u = system.guess()
        r = system.residual(u)
        norm = first_norm = norms(r)
        iterations = np.zeros(system.points, dtype=np.int32)
        converged = np.zeros(system.points, dtype=bool)
        singular, active = converged.copy(), ~converged
        for iteration in range(self.miters):
            if iteration > 0:
                du, without_step = system.step(u)
                singular |= active & without_step
                u, r = self._advance(system, u, r, du, active)
                norm = norms(r)
            if self.hook is not None:
                self.hook(iteration, u, norm)
            iterations[active] = iteration
            with np.errstate(divide="ignore", invalid="ignore"):
                converged = (norm < self.atol) | (norm == 0) | (norm / first_norm < self.rtol)
            failed = singular | ~np.isfinite(norm)
            converged &= ~failed
            if self.whole_batch:
                active[:] = not (converged.all() or failed.any())
            else:
                active &= ~(converged | failed)
            if not active.any():
                break
        if self.whole_batch and not converged.all():
            converged[:] = False
        status = np.where(converged, OK, np.where(singular, SINGULAR, NOT_CONVERGED))
        system.accept(u, status, iterations)

    def _advance(
        self, system: System, u: Array, r: Array, du: Array, active: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """The next iterate and its residual; points that are not active stay where they are.

        With a line search the step of a point is cut until its residual has decreased enough; the
        last trial is taken in any case.
        """
        squared, slope = norms(r) ** 2, -np.sum(r * du, axis=1)
        length = np.ones(system.points)
        for _ in range(max(self.ls_max_iters - 1, 1)):
            trial = np.where(active[:, np.newaxis], u + length[:, np.newaxis] * du, u)
            residual = system.residual(trial)
            norm = norms(residual)
            wolfe = self.ls_type == "STRONG_WOLFE"
            decrease = length * squared if wolfe else 2.0 * length * slope
            enough = (norm**2 <= squared - self.ls_c * decrease) | (norm <= self.atol)
            if np.all(enough | ~active):
                break
            length = np.where(enough, length, length / self.ls_cutback)
        return trial, residual


def norms(vectors: Array) -> Array:
    """Return the Euclidean norm of the vector of each point.

    Parameters
    ----------
    vectors
        The vectors, (points, size).

    Returns
    -------
    array
        The norms, (points,).
    """
    result: Array = np.sqrt(np.sum(vectors**2, axis=1))
    return result
