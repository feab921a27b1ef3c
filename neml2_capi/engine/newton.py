"""Newton's method with line search for a batch of independent systems r(u) = 0.

What is called the residual in the code is -r, as the packages return it: the step solves
A du = -r with A = dr/du.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import CHANNELS
from neml2_capi._ffi.tensor import Array

_log = CHANNELS["newton"]


@dataclass(frozen=True)
class Settings:
    """The options of the solver, as include/neml2_capi.h explains them."""

    atol: float
    rtol: float
    miters: int
    strong_wolfe: bool
    ls_max_iters: int
    ls_cutback: float
    ls_c: float
    # True where all points iterate until all have converged, and one failure fails all.
    whole_batch: bool
    # The relative criterion counts only after steps |du| < step_tol (|u| + atol).
    step_tol: float | None = None


class System(Protocol):
    """A batch of systems; vectors are (len(rows), size), for the points `rows`."""

    def residual(self, u: Array, rows: Array) -> Array:
        """-r at `u`."""

    def step(self, u: Array, residual: Array, rows: Array) -> tuple[Array, Array]:
        """The Newton step from `u`, and at which points the operator is singular."""


@dataclass
class Outcome:
    """Outcome of each point."""

    u: Array  # the solution, or the last iterate
    status: Array
    iterations: Array
    first_norm: Array
    norm: Array
    history: Array  # (points, miters): |r| of each iterate, NaN beyond

    @property
    def converged(self) -> Array:
        return np.flatnonzero(self.status == lib.NEML2_OK)


def solve(system: System, guess: Array, settings: Settings) -> Outcome:
    """Solve from `guess`, (points, size).

    A point has converged when |r| < atol, |r| / |r0| < rtol or r = 0, and is then left alone: its
    result does not depend on the points beside it.
    """
    points = len(guess)
    rows = np.arange(points)
    u = guess.copy()
    residual = system.residual(u, rows)
    norm = norms(residual)
    out = Outcome(
        u=u,
        status=np.full(points, lib.NEML2_NOT_CONVERGED, dtype=np.int32),
        iterations=np.zeros(points, dtype=np.int32),
        first_norm=norm.copy(),
        norm=norm,
        history=np.full((points, settings.miters), np.nan),
    )
    singular = np.zeros(points, dtype=bool)
    settled = np.full(points, settings.step_tol is None)
    for iteration in range(settings.miters):
        if iteration > 0:
            before = u[rows]
            du, singular[rows] = system.step(before, residual[rows], rows)
            u[rows], residual[rows] = _advance(system, before, residual[rows], du, rows, settings)
            norm[rows] = norms(residual[rows])
            if settings.step_tol is not None:
                bound = settings.step_tol * (norms(u[rows]) + settings.atol)
                settled[rows] = norms(u[rows] - before) < bound
        out.iterations[rows] = iteration
        out.history[rows, iteration] = norm[rows]
        if _log.isEnabledFor(logging.DEBUG):
            greatest = norm[rows].max()
            _log.debug("iteration %d, |r| = %.6e, at %d points", iteration, greatest, len(rows))
        with np.errstate(divide="ignore", invalid="ignore"):
            small = (norm < settings.atol) | (norm == 0)
            good = small | settled & (norm / out.first_norm < settings.rtol)
        failed = singular | ~np.isfinite(norm)
        good &= ~failed
        if settings.whole_batch:
            if good.all() or failed.any():
                break
        else:
            rows = rows[~(good | failed)[rows]]
            if len(rows) == 0:
                break
    if not settings.whole_batch or good.all():
        out.status[good] = lib.NEML2_OK
    out.status[singular] = lib.NEML2_SINGULAR
    return out


def _advance(
    system: System, u: Array, residual: Array, du: Array, rows: Array, settings: Settings
) -> tuple[Array, Array]:
    """The next iterate and its residual.

    With a line search the step of each point is cut until its residual has decreased enough; the
    last trial is taken in any case.
    """
    squared, slope = norms(residual) ** 2, (residual * du).sum(axis=1)
    length = np.ones(len(u))
    for _ in range(max(settings.ls_max_iters - 1, 1)):
        trial = u + length.astype(u.dtype)[:, np.newaxis] * du
        found = system.residual(trial, rows)
        decrease = length * (squared if settings.strong_wolfe else 2.0 * slope)
        norm = norms(found)
        enough = (norm**2 <= squared - settings.ls_c * decrease) | (norm <= settings.atol)
        if enough.all():
            break
        length = np.where(enough, length, length / settings.ls_cutback)
    return trial, found


def norms(vectors: Array) -> Array:
    """The Euclidean norm of each row, in double precision."""
    result: Array = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))
    return result
