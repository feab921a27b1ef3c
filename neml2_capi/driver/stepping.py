"""The steps of a driven model, with increments that are cut if points do not converge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import ConvergenceError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.logs import CHANNELS
from neml2_capi.driver.blocks import Blocks
from neml2_capi.driver.forces import Table
from neml2_capi.driver.history import MOMENT
from neml2_capi.driver.increment import Increment
from neml2_capi.driver.pace import Pace
from neml2_capi.driver.record import Record
from neml2_capi.driver.results import Results

if TYPE_CHECKING:
    from neml2_capi._ffi.variables import Variable

#: The most points that a message names.
_NAMED = 8
_log = CHANNELS["driver"]


class StepError(ConvergenceError):
    """A step failed, however small its increments.

    A ConvergenceError tells of the last try.
    """

    #: The number of the step, from times[step - 1] to times[step]; 0 is the initial state.
    step: int
    #: The time at the end of the last try, (), or (*B,) if each point has its own.
    time: Any
    #: Records from before that step.
    results: Results


class Stepping:
    """A model on its way through time."""

    def __init__(
        self,
        increment: Increment,
        record: Record,
        clock: Table,
        pace: Pace,
        blocks: Blocks | None,
        give: Callable[[Array], Any],
        variables: Iterable[Variable],
        *,
        keeps: bool = False,
    ) -> None:
        """`blocks` make whole steps, unless they are made by increments alone.

        `give` makes of an array what is handed out; `variables` are the model's. If it `keeps`
        them, increments within a step are recorded, too.
        """
        self._keeps = keeps
        self._variables = tuple(variables)
        self._increment, self._record, self._clock = increment, record, clock
        self._pace, self._blocks, self._give = pace, blocks, give

    def begin(self, *, is_solved: bool) -> None:
        """Record the initial state, and evaluate there what it does not tell.

        Without history, `is_solved`, the model is evaluated as in any step. Else derivatives, and
        outputs that are not known, are evaluated with no time passed, if they have a value then.
        """
        self._record.put(0, substeps=0)
        if is_solved:
            try:
                iterations = self._increment.evaluate(0, 1.0)
            except ConvergenceError as error:
                raise self._failed(0, 1.0, error) from error
            self._record.count(0, iterations)
            self._record.put(0, substeps=0)
        elif wanted := self._record.evaluated(self._increment.unknown):
            for fraction in (0.0, MOMENT):
                self._increment.rest(self._clock, fraction)
                if self._record.complete(0, wanted):
                    break

    def make(self, step: int, until: int) -> int:
        """Make a step, or several before the step `until`; returns how many."""
        made, good = 0, False
        if self._blocks is not None and self._pace.whole:
            made, good = self._blocks.run(step, until)
            for each in range(step, step + made):
                _log.debug("step %d: made, in 1 increments", each)
        if good:
            return made
        self._make_one(step + made)
        return made + 1

    def _make_one(self, step: int) -> None:
        """Make a step by increments, as many as it takes."""
        increment, pace = self._increment, self._pace
        begin, substeps = 0.0, 0
        while begin < 1.0:
            end = pace.end(begin)
            try:
                iterations = increment.evaluate(step, end)
            except ConvergenceError as error:
                self._record.count(step, np.asarray(error.report["iterations"]))
                factor = float(np.asarray(error.report["suggested_cut"]).min())
                if factor >= 1.0 or increment.not_finite():
                    raise self._failed(
                        step, end, error, "no smaller increment mends that"
                    ) from error
                if not pace.cut(end - begin, factor):
                    raise self._failed(step, end, error) from error
                _log.info(
                    "step %d: the increment from %.3g to %.3g of it is cut, for %s",
                    step,
                    begin,
                    end,
                    error,
                )
                continue
            self._record.count(step, iterations)
            pace.succeeded()
            begin, substeps = end, substeps + 1
            if end == 1.0:
                self._record.put(step, substeps)
            elif self._keeps:
                self._record.put_between(step, end)
            increment.advance()
        _log.debug("step %d: made, in %d increments", step, substeps)

    def results(self, steps: int) -> Results:
        """Return what was recorded of the first steps, the initial state among them."""
        results = Results(
            self._given({"t": self._clock.rows[:steps].copy(), **self._record.arrays(steps)}),
            self._variables,
        )
        results._batch = self._increment.batch
        results._others = frozenset({"t", "substeps", *self._increment.shared})
        return results

    def _failed(
        self, step: int, fraction: float, error: ConvergenceError, why: str = ""
    ) -> StepError:
        good, time = np.asarray(error.converged_mask), self._clock.at(step, fraction)
        least = f"its increment cannot be cut any more (least_step = {self._pace.least:.3g})"
        failed = StepError(
            f"step {step} failed at {_where(good, time)}; {why or least}. The last try: {error}",
            error.status,
            report=self._given(error.report),
            converged_mask=self._give(good),
            outputs=self._given(error.outputs),
        )
        failed.step, failed.time, failed.results = step, self._give(time), self.results(step)
        return failed

    def _given(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._give(np.asarray(array)) for name, array in arrays.items()}


def _where(good: Array, time: Array) -> str:
    """The time, and the points that are not good."""
    bad = np.argwhere(~good)
    first = np.broadcast_to(time, good.shape)[tuple(bad[0])]
    if good.ndim == 0:
        return f"t = {first:.6g}"
    names = [str(*point) if good.ndim == 1 else str((*point,)) for point in bad[:_NAMED].tolist()]
    more = ", ..." if len(bad) > _NAMED else ""
    return f"t = {first:.6g}, at {len(bad)} of {good.size} points: {', '.join(names)}{more}"
