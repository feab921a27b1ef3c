"""Run a driver over many parameter sets."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from numbers import Integral
from typing import Any

from neml2_capi._ffi.errors import Error
from neml2_capi._ffi.library import lib
from neml2_capi.driver.arguments import check_switch, wrong
from neml2_capi.driver.given import parameter_values
from neml2_capi.driver.progress import bar
from neml2_capi.sweeps.dispatch import Dispatch
from neml2_capi.sweeps.executors import Workers
from neml2_capi.sweeps.folder import STORES, Folder, Unkept
from neml2_capi.sweeps.results import SweepResults
from neml2_capi.sweeps.sets import Columns, Sets
from neml2_capi.sweeps.work import Failure, Outcome, Run, Work, model_driven, why_alone

_FAILURES = ("keep", "raise", "stop")
_log = logging.getLogger("neml2_capi.sweep")


class SweepError(Error):
    """Parameter sets of a sweep failed. The others are done, and kept."""

    #: All that is done, and the failures.
    results: SweepResults


def sweep(
    run: Callable[..., Mapping[str, Any]],
    parameters: Columns | Iterable[Mapping[str, Any]],
    executor: Executor | Callable[[], Executor] | Any = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    batch: int = 1,
    retries: int = 1,
    again: bool = False,
    failures: str = "keep",
    store: str = "npz",
    progress: bool | None = None,
) -> SweepResults:
    """Call a run for each of many parameter sets, on an executor of yours.

        run = partial(neml2_capi.drive, model, times, {"strain": strain}, record="stress")
        results = neml2_capi.sweep(run, {"E": np.linspace(150e3, 250e3, 20)}, directory="night")
        results["stress"]  # (20, 101, *B, 6)

    The run is sent by pickle, or by cloudpickle if that is installed. Each worker process opens
    it, and the artifact, once, and its threads share it. If workers share a machine, let each
    use one thread: `model.options["threads"] = 1`.

    A set whose run raises is a failure, `results.failures[17].message`, and no other set is
    concerned. A pool of processes breaks with a worker, and takes the sets of the others with it,
    and Dask blames all that waited for it: these are tried again, at last alone, so that only what
    kills its worker fails. What is done is kept when the call is interrupted, or raises; without
    an executor `sys.exit()`, which a handler of a signal may have called, ends it, too.

    Parameters
    ----------
    run
        What is called as run(parameters={"E": 150e3}), and returns arrays by name: a
        `functools.partial` of drive() or of an experiment, or a function of yours.
    parameters : mapping of str to array, table, or iterable of mappings
        The sets: columns by name, each (sets, *shape of a value), a table of pandas for example; or
        a mapping for each set. Of drive(), names and units are the model's parameters'.
    executor : executor, function, or None
        Where it runs: anything with submit() that returns futures, of concurrent.futures,
        mpi4py.futures or loky; a client of Dask; `neml2_capi.sweeps.RayExecutor()`; or None, one
        set after another in this thread. It stays open. A function that makes one,
        `partial(ProcessPoolExecutor, 8)`, is called again if the executor breaks; what it made
        is shut down at the end, and its processes are ended if you interrupt the sweep.
    directory
        Where results are kept, in memory only by default. The results of a set are there as a whole
        before it counts as done. The same call made again goes on where it was interrupted; sets
        whose files are damaged are run again.
    batch
        How many sets are one task. Of drive() and of the experiments they are evaluated together,
        as points of one batch, which is many times faster; no bit of a result depends on that. A
        UserWarning tells if the sets of a task run one after another. What a task has made so
        far is lost if the sweep is interrupted.
    retries
        How often a set is run again whose worker died, before it is a failure.
    again
        Whether sets that failed before, by the directory, are run again.
    failures
        "keep"; "raise", for a SweepError at the end if there are any; or "stop", for one at the
        first.
    store
        What keeps results in the directory: "npz", a file of numpy for each set or batch, or
        "zarr", an array of all sets for each result.
    progress
        Whether a bar is shown on stderr; by default if that is a terminal and tqdm is installed.

    Returns
    -------
    SweepResults
        Arrays by name, with the set as their first axis, and the failures.

    Raises
    ------
    FatalError
        This cannot be swept, before anything is evaluated: the directory is of other parameter
        sets, of another artifact (its content, its options and parameters) or of other arguments of
        the run (functions and classes count by their code), for example. Or an executor broke that
        cannot be made again, a worker cannot open the run, or another process makes the same sweep.
    SweepError
        Sets failed, and `failures` is "raise" or "stop".
    """
    _check_options(batch, retries, failures, store)
    check_switch("again", again)
    check_switch("progress", progress, also_none=True)
    if directory is None and store != "npz":
        raise wrong("store", f"{store!r} needs a directory to keep results in")
    sets = Sets(parameters)
    run = _checked(run, sets)
    if batch > 1 and (why := why_alone(run, sets[0])):
        warnings.warn(
            f"batch = {batch}: the sets of a task run one after another, since {why}", stacklevel=2
        )
    folder = Unkept() if directory is None else Folder(directory)
    with contextlib.ExitStack() as stack:
        stack.enter_context(folder.locked())
        folder.begin(sets.columns, run, store)
        kept = folder.store(len(sets), mend=True)
        told = {} if again else folder.failures(len(sets))
        done = set(kept.items())
        items = [item for item in range(len(sets)) if item not in done and item not in told]
        shown = stack.enter_context(bar(len(sets), len(sets) - len(items), "set", progress))

        def put(outcomes: Mapping[int, Outcome]) -> bool:
            # Tell whether all is well.
            failed = {i: o for i, o in outcomes.items() if isinstance(o, Failure)}
            kept.put({i: o for i, o in outcomes.items() if not isinstance(o, Failure)})
            folder.put_failures(failed)
            told.update(failed)
            for item, failure in failed.items():
                _log.warning("set %d failed: %s: %s", item, failure.type, failure.message)
            shown.update(len(outcomes))
            return not failed

        if items:
            work, workers = Work(run), stack.enter_context(Workers(executor))
            if workers.elsewhere:
                work.pack()
            tasks = Dispatch(work, sets, items, workers, batch=batch, retries=retries)
            try:
                with contextlib.closing(tasks.__iter__()) as ended:
                    for outcomes in ended:
                        if not put(outcomes) and failures == "stop":
                            break
            finally:
                for outcomes in tasks.ended():
                    put(outcomes)
    results = SweepResults(sets.columns, kept, told)
    if results.failures and failures != "keep":
        raise _failed(results)
    return results


def _check_options(batch: int, retries: int, failures: str, store: str) -> None:
    for name, value, least in (("batch", batch, 1), ("retries", retries, 0)):
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
            raise wrong(name, f"must be a whole number, at least {least}; got {value!r}")
    for name, text, known in (("failures", failures, _FAILURES), ("store", store, STORES)):
        if not isinstance(text, str) or text not in known:
            raise wrong(name, f"must be one of {', '.join(map(repr, known))}; got {text!r}")


def _checked(run: Run, sets: Sets) -> Run:
    """`run` as the workers call it; FatalError if a driver would refuse the sets."""
    if not callable(run):
        raise wrong("run", f"must be a function of `parameters`; got a {type(run).__name__}")
    model = model_driven(run)
    if model is None:
        return run
    assert isinstance(run, partial)
    if run.keywords.get("parameters"):
        raise wrong(
            "run",
            "has parameters of its own, which the sets' parameters would replace; set them in the "
            "model, or put them into each set",
        )
    parameter_values(model.parameters, sets[0])
    return run if "progress" in run.keywords else partial(run, progress=False)


def _failed(results: SweepResults) -> SweepError:
    item, failure = next(iter(results.failures.items()))
    error = SweepError(
        f"{len(results.failures)} of {len(results.done)} parameter sets failed, the first is set "
        f"{item}: {failure.type}: {failure.message}",
        lib.NEML2_ERROR_ARGUMENT,
    )
    error.results = results
    return error
