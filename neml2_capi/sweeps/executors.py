"""The executors that a sweep can be given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.sweeps.dask import DaskExecutor

#: Tasks that wait in an executor whose number of workers is not known.
_WAITING = 1000


class Workers:
    """An executor, and how to make another one if it breaks."""

    def __init__(self, given: Any) -> None:
        """`given` has submit(), is a client of Dask, makes an executor, or is None: this process.

        FatalError if it is nothing of that.
        """
        self._make: Callable[[], Executor] | None = None
        if given is None:
            self._executor: Any = Here()
        elif hasattr(given, "get_executor"):
            self._executor = DaskExecutor(given)
        elif hasattr(given, "submit") and not isinstance(given, type):
            self._executor = given
        elif callable(given):
            self._make = given
            self._executor = self._made()
        else:
            raise FatalError(
                f"the executor is a {type(given).__name__}; expected one of concurrent.futures, "
                "mpi4py.futures or Dask, a function that makes one, or None",
                lib.NEML2_ERROR_ARGUMENT,
                "executor",
            )

    @property
    def elsewhere(self) -> bool:
        """Whether work leaves this process, as far as one knows."""
        return not isinstance(self._executor, Here | ThreadPoolExecutor)

    @property
    def window(self) -> int:
        """How many tasks are with the executor at once: enough, and not a million."""
        if isinstance(self._executor, Here):
            return 1
        # A pool of processes that breaks takes all of them with it.
        workers = getattr(self._executor, "_max_workers", None)
        return 2 * workers if workers else _WAITING

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = self._executor.submit(function, *arguments)
        if not hasattr(future, "add_done_callback"):
            raise FatalError(
                f"submit() of the executor returned a {type(future).__name__}; expected a future "
                "of concurrent.futures, with add_done_callback() and result()",
                lib.NEML2_ERROR_ARGUMENT,
                "executor",
            )
        return future

    def tend(self) -> None:
        """End a pool that waits for the rest of a result, though its process died."""
        processes = (getattr(self._executor, "_processes", None) or {}).values()
        if any(process.exitcode for process in list(processes)):
            _terminate(self._executor)

    def renew(self) -> bool:
        """Make another executor instead of a broken one; False if that was given as it is."""
        # It cannot be shut down before.
        _stop_sending(self._executor)
        if self._make is None:
            return False
        self.close()
        self._executor = self._made()
        return True

    def close(self) -> None:
        """Shut the executor down if it was made here."""
        if self._make is not None:
            self._executor.shutdown()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        interrupted = kind is not None and not issubclass(kind, Exception)
        if interrupted and self._make is not None:
            _terminate(self._executor)
        self.close()

    def _made(self) -> Executor:
        assert self._make is not None
        made: Any = self._make()
        if not hasattr(made, "submit"):
            raise FatalError(
                f"the function that makes executors returned a {type(made).__name__}, which has no "
                "submit()",
                lib.NEML2_ERROR_ARGUMENT,
                "executor",
            )
        executor: Executor = made
        return executor


def _terminate(executor: Any) -> None:
    """End a pool's processes: it would finish what it has begun, and what waits in its pipe."""
    results = getattr(executor, "_result_queue", None)
    _stop_sending(executor)
    # Its thread tells all futures, and dies at one that was cancelled, before it closes its pipes.
    for item in list((getattr(executor, "_pending_work_items", None) or {}).values()):
        if item.future.cancelled():
            item.future = Future()
    if hasattr(executor, "terminate_workers"):  # CPython 3.14
        executor.terminate_workers()
    else:
        for process in list((getattr(executor, "_processes", None) or {}).values()):
            process.terminate()
    # The pool waits for the rest of a result that a process was sending, unless the pipe is closed.
    if (writer := getattr(results, "_writer", None)) is not None:
        writer.close()


def _stop_sending(executor: Any) -> None:
    """End a pool's thread that sends tasks which no process takes any more."""
    # https://github.com/python/cpython/issues/94777: from CPython 3.11.5 on, a pool does that.
    tasks = getattr(executor, "_call_queue", None)
    if sys.version_info < (3, 11, 5) and (reader := getattr(tasks, "_reader", None)) is not None:
        with suppress(OSError):  # its thread closes it at its end
            reader.close()


class Here(Executor):
    """This thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future
