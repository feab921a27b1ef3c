"""Hand tasks to workers, and take what comes back, whatever becomes of a worker."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from pickle import PickleError
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.sweeps.executors import Workers
from neml2_capi.sweeps.sets import Sets
from neml2_capi.sweeps.work import INTERRUPTS, Failure, Outcome, Work, evaluate, text_of

#: How often in a row an executor may break without a result.
_BREAKS = 10
#: Seconds without a result after which one looks for processes that died.
_PATIENCE = 5.0
_log = logging.getLogger("neml2_capi.sweep")


class Task(NamedTuple):
    items: tuple[int, ...]
    #: How often a worker was lost with it.
    losses: int = 0


class Dispatch:
    """The tasks of a sweep."""

    def __init__(
        self,
        work: Work,
        sets: Sets,
        items: Sequence[int],
        workers: Workers,
        *,
        batch: int,
        retries: int,
    ) -> None:
        self._work, self._sets, self._workers, self._retries = work, sets, workers, retries
        groups = (tuple(items[begin : begin + batch]) for begin in range(0, len(items), batch))
        self._next = iter([Task(group) for group in groups])
        #: To be tried again.
        self._again: deque[Task] = deque()
        #: Lost too often, but never alone: any of those beside them may be what kills workers. Dask
        #: blames all that a worker had before it.
        self._suspects: deque[Task] = deque()
        self._flying: dict[Future[Any], Task] = {}
        self._alone: Future[Any] | None = None
        self._ended: SimpleQueue[Future[Any]] = SimpleQueue()
        self._broken: BaseException | None = None
        self._breaks = 0
        #: Whether any came back.
        self._works = False

    def __iter__(self) -> Generator[dict[int, Outcome], None, None]:
        """What became of items, by their numbers, as it comes."""
        try:
            while self._submit():
                yield self._outcomes(self._any())
        finally:
            for future in self._flying:
                future.cancel()

    def ended(self) -> Iterator[dict[int, Outcome]]:
        """What came back already, if the iteration was left."""
        while not self._ended.empty():
            future = self._ended.get()
            if not future.cancelled() and future.exception() is None:
                yield self._outcomes(future)

    def _any(self) -> Future[Any]:
        """Wait for a task."""
        while True:
            try:
                return self._ended.get(timeout=_PATIENCE)
            except Empty:
                self._workers.tend()

    def _submit(self) -> bool:
        """Hand out as much as there is room for; False if nothing is left."""
        if self._broken and not self._flying:
            self._renew(self._broken)
        while not self._broken and len(self._flying) < self._workers.window and not self._alone:
            task = self._again.popleft() if self._again else next(self._next, None)
            if task is None and self._suspects and not self._flying:
                task = self._suspects.popleft()
                self._alone = self._send(task)
            elif task is None or self._send(task) is None:
                break
        if self._broken and not self._flying:
            return self._submit()
        return bool(self._flying)

    def _send(self, task: Task) -> Future[Any] | None:
        try:
            future = self._workers.submit(evaluate, self._work, [self._sets[i] for i in task.items])
        except BrokenExecutor as error:
            self._again.appendleft(task)
            self._broken = error
            return None
        self._flying[future] = task
        future.add_done_callback(self._ended.put)
        return future

    def _outcomes(self, future: Future[Any]) -> dict[int, Outcome]:
        task = self._flying.pop(future)
        alone = self._alone is future
        if alone:
            self._alone = None
        try:
            outcomes = future.result()
        except (ImportError, AttributeError, TypeError, PickleError) as error:
            raise FatalError(
                f"the workers cannot be sent a task: {type(error).__name__}: {error}. They need "
                "this version of neml2_capi, and all modules that the run is of",
                lib.NEML2_ERROR_ARGUMENT,
                "executor",
            ) from error
        except INTERRUPTS:
            raise
        except BaseException as error:
            return self._lost(task, error, alone)
        self._breaks, self._works = 0, True
        if isinstance(outcomes, Failure):
            raise FatalError(
                f"a worker could not open the run: {outcomes.type}: {outcomes.message}",
                lib.NEML2_ERROR_ARGUMENT,
                "run",
            )
        return dict(zip(task.items, outcomes, strict=True))

    def _lost(self, task: Task, error: BaseException, alone: bool) -> dict[int, Outcome]:
        """A worker did not come back with a task."""
        if isinstance(error, BrokenExecutor):
            self._broken = error
        losses = task.losses + 1
        told = f"{type(error).__name__}: {text_of(error)}"
        _log.info("a worker was lost with %s, for the %d. time: %s", _named(task), losses, told)
        if len(task.items) > 1:
            # Each gets a try of its own, at least.
            losses = min(losses, self._retries)
            self._again.extend(Task((item,), losses) for item in task.items)
        elif losses <= self._retries:
            self._again.append(Task(task.items, losses))
        elif not alone:
            self._suspects.append(Task(task.items, losses))
        elif not self._works:
            raise FatalError(
                f"no worker came back with a result, at last for {told}",
                lib.NEML2_ERROR_INTERNAL,
                "executor",
            ) from error
        else:
            message = f"its worker was lost {losses} times, at last for {told}"
            return {task.items[0]: Failure(type(error).__name__, message)}
        return {}

    def _renew(self, broken: BaseException) -> None:
        self._breaks += 1
        many = self._breaks > _BREAKS
        if many or not self._workers.renew():
            remedy = (
                f"It broke {self._breaks} times in a row"
                if many
                else "Give a function that makes executors, as in executor=partial("
                "ProcessPoolExecutor, 8), and a sweep goes on with another one"
            )
            raise FatalError(
                f"the executor broke: {broken}. {remedy}. What is in the sweep's directory is "
                "kept: run again, with another executor, to go on",
                lib.NEML2_ERROR_INTERNAL,
                "executor",
            ) from broken
        _log.warning("the executor broke, and another one was made: %s", broken)
        self._broken = None


def _named(task: Task) -> str:
    first, *others = task.items
    return f"set {first}" if not others else f"the sets {first} to {others[-1]}"
