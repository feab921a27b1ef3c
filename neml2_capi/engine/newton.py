"""Newton's method with line search, for a batch of independent systems r(u) = 0.

It is the library's own iteration, written to be read: the engine in Python solves its implicit
segments by it, and `neml2_capi.solvers` offers it for any model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import CHANNELS

#: The status of a point that has converged, for System.accept().
OK: int = lib.NEML2_OK
#: The status of a point that has not converged.
NOT_CONVERGED: int = lib.NEML2_NOT_CONVERGED
#: The status of a point whose matrix is singular.
SINGULAR: int = lib.NEML2_SINGULAR

_log = CHANNELS["newton"]


class Systems(Protocol):
    """What is solved: the systems of some points. A vector is an array (points, size)."""

    points: int

    def guess(self) -> Array:
        """Return the initial guess."""

    def residual(self, u: Array) -> Array:
        """Return r(u)."""

    def step(self, u: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the Newton step from u, and at which points dr/du is singular."""

    def accept(self, u: Array, status: Array, iterations: Array) -> None:
        """Take u as the solution, with the status and the iterations of each point."""


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
    #: A point has failed once |r| > divtol |r0|.
    divtol: float = np.finfo(np.float64).max
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
    #: If given, rtol counts only after a step with |du| < step_tol (|u| + atol): in substeps.
    step_tol: float | None = None
    #: If given, |r0| is at least this, (points,): of points that begin at a solution nearby.
    reference: Array | None = None

    def __post_init__(self) -> None:
        """FatalError for what makes no iteration."""
        types = ("BACKTRACKING", "STRONG_WOLFE")
        of_one = ("miters", "ls_max_iters", "divtol")
        for name, sound, wanted in (
            *((name, getattr(self, name) >= 0, "0 or more") for name in ("atol", "rtol", "ls_c")),
            *((name, getattr(self, name) >= 1, "1 or more") for name in of_one),
            ("ls_cutback", self.ls_cutback > 1, "more than 1"),
            ("ls_type", self.ls_type in types, " or ".join(types)),
        ):
            if not sound:
                raise FatalError(
                    f"{name} of Newton's method is {getattr(self, name)!r}; it must be {wanted}",
                    lib.NEML2_ERROR_ARGUMENT,
                    name,
                )

    @classmethod
    def like(cls, model: Any, hook: Callable[[int, Array, Array], Any] | None = None) -> Newton:
        """Make one with the options that a model has now.

        Parameters
        ----------
        model : Model
            Where the options come from; later changes of them do not count.
        hook
            As the attribute.

        Returns
        -------
        Newton
            The solver, to be given to Model.forward().
        """
        options = model.options
        known: list[Any] = [f for f in fields(cls) if f.name in options]
        named = {f.name: type(f.default)(options[f.name]) for f in known}
        return cls(**named, whole_batch=options["convergence"] == "batch", hook=hook)

    def __call__(self, system: Systems) -> None:
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
        if self.reference is not None:
            finite = np.isfinite(self.reference)
            first_norm = np.where(finite, np.maximum(norm, self.reference), norm)
        iterations = np.zeros(system.points, dtype=np.int32)
        converged = np.zeros(system.points, dtype=bool)
        singular, active = converged.copy(), ~converged
        settled = np.full(system.points, self.step_tol is None)
        for iteration in range(self.miters):
            if iteration > 0:
                before = u
                du, without_step = system.step(u)
                singular |= active & without_step
                u, r = self._advance(system, u, r, du, active)
                norm = norms(r)
                if self.step_tol is not None:
                    small = norms(u - before) < self.step_tol * (norms(u) + self.atol)
                    settled = np.where(active, small, settled)
            self._tell(iteration, u, norm, active)
            iterations[active] = iteration
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                relative = settled & (norm / first_norm < self.rtol)
                diverged = norm > self.divtol * first_norm
            failed = singular | ~np.isfinite(norm)
            converged = ((norm < self.atol) | (norm == 0) | relative) & ~failed
            failed |= diverged & ~converged
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

    def _tell(self, iteration: int, u: Array, norm: Array, active: NDArray[np.bool_]) -> None:
        if self.hook is not None:
            self.hook(iteration, u, norm)
        if _log.isEnabledFor(logging.DEBUG):
            greatest, count = norm[active].max(initial=0.0), active.sum()
            _log.debug("iteration %d, |r| = %.6e, at %d points", iteration, greatest, count)

    def _advance(
        self, system: Systems, u: Array, r: Array, du: Array, active: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """The next iterate and its residual; points that are not active stay where they are.

        With a line search the step of a point is cut until its residual has decreased enough; the
        last trial is taken in any case.
        """
        squared, slope = norms(r) ** 2, -np.sum(r * du, axis=1)
        length = np.ones(system.points)
        for _ in range(max(self.ls_max_iters - 1, 1)):
            trial = np.where(
                active[:, np.newaxis], u + length.astype(u.dtype)[:, np.newaxis] * du, u
            )
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
        The norms, (points,), in double precision.
    """
    return np.asarray(np.sqrt(np.sum(vectors.astype(np.float64) ** 2, axis=1)))
