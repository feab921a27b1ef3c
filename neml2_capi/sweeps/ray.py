"""Ray as an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class RayExecutor(Executor):
    """An executor whose calls are tasks of Ray, on the cluster that ray.init() connected to.

    `neml2_capi.sweep(run, parameters, RayExecutor(num_cpus=1))` sweeps there. Ray itself tries a
    task again whose worker died, `max_retries` times. It is needed on all machines: pip install ray
    """

    def __init__(self, **options: Any) -> None:
        """Choose how tasks are run.

        Parameters
        ----------
        **options
            Options of ray.remote(): num_cpus, max_retries and so on.

        Raises
        ------
        ImportError
            Ray is not installed.
        """
        import ray

        self._remote = ray.remote(**options) if options else ray.remote
        #: Ray sends a function once.
        self._sent: dict[Callable[..., Any], Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function as a task of Ray.

        Parameters
        ----------
        fn
            The function, which Ray sends once.
        *args
            Its arguments by position.
        **kwargs
            Its arguments by name.

        Returns
        -------
        Future
            What the function will return or raise.
        """
        if fn not in self._sent:
            self._sent[fn] = self._remote(fn)
        future: Future[Any] = self._sent[fn].remote(*args, **kwargs).future()
        return future
