"""The points of one evaluation on their way through the segments."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.engine import newton


@dataclass
class Batch:
    """Values by the names inside the model, each with one row per point."""

    points: int
    values: dict[str, Array]
    parameters: dict[str, Array]
    settings: newton.Settings
    substep_del_tol: float
    # Derivatives that the segments are to find.
    by_values: bool = False
    by_parameters: bool = False

    # Outcome of each point so far.
    status: Array = field(init=False)
    iterations: Array = field(init=False)
    residual_norm: Array = field(init=False)
    suggested_cut: Array = field(init=False)
    history: Array = field(init=False)  # of the last implicit segment
    unknowns: dict[str, Array] = field(init=False)  # last iterates where a point failed, else NaN
    # What is not finite, in words, and the first point at which it is.
    non_finite: tuple[int, str] | None = None
    #: Points whose solve failed, also for what was given to them: their results are NaN.
    lost: Array = field(init=False)

    def __post_init__(self) -> None:
        self.status = np.full(self.points, lib.NEML2_OK, dtype=np.int32)
        self.iterations = np.zeros(self.points, dtype=np.int32)
        self.residual_norm = np.zeros(self.points)
        self.suggested_cut = np.ones(self.points)
        self.history = np.full((self.points, self.settings.miters), np.nan)
        self.unknowns = {}
        self.lost = np.zeros(self.points, bool)

    @property
    def failed(self) -> Array:
        """Points at which a solve failed."""
        result: Array = self.status > lib.NEML2_NON_FINITE
        return result

    def mark(self, bad: Array, what: str) -> None:
        """Mark the points at which something is not finite, if nothing was wrong with them."""
        bad = bad & (self.status == lib.NEML2_OK)
        self.status[bad] = lib.NEML2_NON_FINITE
        self._note(bad, what)

    def excuse(self, bad: Array, what: str) -> None:
        """Take a failure of the solve for one of what was given: no smaller step mends it."""
        bad = bad & self.failed
        self.lost = self.lost | bad
        for iterate in self.unknowns.values():
            iterate[bad] = np.nan
        self.status[bad] = lib.NEML2_NON_FINITE
        self.suggested_cut[bad] = 1.0
        self._note(bad, what)

    def _note(self, bad: Array, what: str) -> None:
        first = int(np.argmax(bad)) if bad.any() else self.points
        if first < (self.non_finite[0] if self.non_finite else self.points):
            self.non_finite = first, what

    def add(self, outcome: newton.Outcome) -> None:
        """Add what became of each point in one more segment."""
        failed = outcome.status != lib.NEML2_OK
        self.status = np.where(self.status == lib.NEML2_OK, outcome.status, self.status)
        self.iterations += outcome.iterations
        self.residual_norm = np.maximum(self.residual_norm, outcome.norm)  # NaN is greatest
        cut = np.where(outcome.norm < outcome.first_norm, 0.5, 0.25)
        self.suggested_cut = np.minimum(self.suggested_cut, np.where(failed, cut, 1.0))
        self.history = outcome.history
