"""Dask as an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any

#: Seconds after which a result is asked for again.
_LOST = 5


class DaskExecutor(Executor):
    """An executor whose calls are tasks of a Dask client.

    Dask's own executor never ends a future whose result was lost with the worker that kept it, if
    the task then fails or the request for the result is lost, too.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        # With pure=True Dask would hash the run for each task.
        task = self._client.submit(fn, *args, pure=False, **kwargs)
        future: Future[Any] = Future()
        future.add_done_callback(lambda ended: task.cancel() if ended.cancelled() else None)
        task.add_done_callback(partial(_pass_on, future))
        return future


def _pass_on(future: Future[Any], task: Any) -> None:
    """Take a task's result where it is; else ask again, after other results."""
    with suppress(InvalidStateError):  # cancelled
        try:
            future.set_result(task.result(timeout=_LOST))
        except BaseException as error:  # asyncio's CancelledError is no Exception
            if task.cancelled():
                future.cancel()
            elif task.status == "error":
                future.set_exception(error)
            else:
                task.add_done_callback(partial(_pass_on, future))
