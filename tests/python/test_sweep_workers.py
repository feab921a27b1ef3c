"""The threads and processes of a sweep, and what is lost if they die."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE
from slow import later
from states import Artifacts
from sweeping import (
    SUMS,
    Run,
    Sets,
    called,
    deadly,
    deadly_once,
    equal,
    few,
    in_order,
    large_and_deadly,
    processes,
    run_of,
    sums,
)

from neml2_capi import FatalError, SweepResults, sweep


@pytest.fixture
def artifact(artifacts: Artifacts) -> Path:
    return artifacts["combined_hardening"]


@pytest.fixture
def run(artifact: Path) -> Run:
    return run_of(artifact)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    folder = tmp_path / "calls"
    folder.mkdir()
    return folder


# ------------------------------------------------------------------------------------------------
# Workers
# ------------------------------------------------------------------------------------------------


class Opened:
    """Tells when it arrives in a process."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, str]) -> None:
        self.folder = state["folder"]
        (Path(self.folder) / f"{os.getpid()} {threading.get_ident()}{os.urandom(4).hex()}").touch()


def beside(opened: Opened, run: Run, parameters: Sets) -> Mapping[str, Any]:
    return run(parameters=parameters)


def test_each_worker_opens_the_artifact_once(run: Run, artifact: Path, calls: Path) -> None:
    beside_it = partial(beside, Opened(str(calls)), run)
    with processes() as pool:
        equal(sweep(beside_it, few(30), pool), in_order(artifact, 30))
        sweep(beside_it, few(40), pool)
    workers = [file.name.partition(" ")[0] for file in calls.iterdir()]
    assert 1 <= len(workers) <= 2 and len(set(workers)) == len(workers)


def test_threads_share_the_model(run: Run, artifact: Path, calls: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        equal(
            sweep(partial(beside, Opened(str(calls)), run), few(30), pool), in_order(artifact, 30)
        )
    assert called(calls) == []


def test_a_function_of_no_module_is_known_again(tmp_path: Path) -> None:
    made: dict[str, Any] = {"__name__": None}
    exec("run = lambda parameters: {'y': 2 * parameters['a']}", made)
    assert made["run"].__module__ is None
    first = sweep(made["run"], {"a": np.arange(3.0)}, directory=tmp_path / "s")
    again = sweep(made["run"], {"a": np.arange(3.0)}, directory=tmp_path / "s")
    np.testing.assert_array_equal(first["y"], [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(again["y"], first["y"])


def test_what_only_cloudpickle_sends_is_sent() -> None:
    pytest.importorskip("cloudpickle")
    with processes() as pool:
        results = sweep(lambda parameters: {"double": 2.0 * parameters["a"]}, SUMS, pool)
    np.testing.assert_array_equal(results["double"], 2.0 * SUMS["a"])


def test_what_cannot_be_sent_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with processes() as pool, pytest.raises(FatalError, match="cannot be sent to other processes"):
        sweep(lambda parameters: parameters, SUMS, pool)


def test_an_artifact_that_a_worker_lacks_ends_the_sweep(artifact: Path, tmp_path: Path) -> None:
    here = shutil.copytree(artifact, tmp_path / "artifact")
    run = run_of(here)
    (here / "metadata.json").rename(tmp_path / "metadata.json")
    # What the sweep is of must be known first, and needs the packages only.
    with processes() as pool, pytest.raises(FatalError, match="could not open the run: FatalError"):
        sweep(run, few(8), pool, directory=tmp_path / "s")
    (tmp_path / "metadata.json").rename(here / "metadata.json")
    equal(sweep(run, few(8), directory=tmp_path / "s"), in_order(artifact, 8))


class Counting(Executor):
    """How many tasks wait in it, at most."""

    def __init__(self, pool: Executor) -> None:
        self.most, self._now, self._pool = 0, 0, pool

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._now += 1
        self.most = max(self.most, self._now)
        future = self._pool.submit(fn, *args, **kwargs)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: Future[Any]) -> None:
        self._now -= 1


def test_an_executor_is_not_given_everything_at_once() -> None:
    sets = {"a": np.arange(3000.0), "b": np.ones(3000)}
    with ThreadPoolExecutor(2) as pool:
        counting = Counting(pool)
        np.testing.assert_array_equal(sweep(sums, sets, counting)["sum"], sets["a"] + 1.0)
        assert counting.most <= 1000
        counting = Counting(pool)
        counting._max_workers = 2  # type: ignore[attr-defined]
        assert sweep(sums, sets, counting).done.all()
        assert counting.most <= 4


def test_an_executor_stays_open_unless_it_was_made_for_the_sweep() -> None:
    made: list[ThreadPoolExecutor] = []

    def make() -> ThreadPoolExecutor:
        made.append(ThreadPoolExecutor(1))
        return made[-1]

    sweep(sums, SUMS, make)
    with pytest.raises(RuntimeError, match="shutdown"):
        made[0].submit(int)
    with ThreadPoolExecutor(1) as pool:
        sweep(sums, SUMS, pool)
        assert pool.submit(int).result() == 0


# ------------------------------------------------------------------------------------------------
# Workers that die
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", later([1, 8], [1]))
def test_a_killed_worker_costs_its_set_a_retry(
    run: Run, artifact: Path, calls: Path, batch: int
) -> None:
    results = sweep(partial(deadly, run, 17, 1, str(calls)), few(60), processes, batch=batch)
    assert len(list(calls.iterdir())) == 1
    equal(results, in_order(artifact, 60))


@pytest.mark.full("many processes")
def test_only_the_set_that_kills_every_worker_fails(
    run: Run, artifact: Path, calls: Path, tmp_path: Path
) -> None:
    fatal = partial(deadly, run, 17, 3, str(calls))
    results = sweep(fatal, few(40), processes, directory=tmp_path / "s", retries=1)
    assert list(results.failures) == [17] and results.done.sum() == 39
    assert results.failures[17].type == "BrokenProcessPool"
    assert "its worker was lost" in results.failures[17].message
    assert np.isnan(results["stress"][17]).all() and (results["substeps"][17] == -1).all()
    # It is tried again if that is asked for.
    equal(
        sweep(fatal, few(40), processes, directory=tmp_path / "s", retries=9, again=True),
        in_order(artifact, 40),
    )


@pytest.mark.full("many processes")
def test_a_pool_that_was_given_as_it_is_ends_the_sweep_and_nothing_is_lost(
    run: Run, artifact: Path, calls: Path, tmp_path: Path
) -> None:
    fatal = partial(deadly, run, 17, 1, str(calls))
    with processes() as pool, pytest.raises(FatalError, match=r"the executor broke.*run again"):
        sweep(fatal, few(40), pool, directory=tmp_path / "s")
    done = SweepResults.load(tmp_path / "s").done
    assert 8 <= done.sum() < 40 and not done[17]
    with processes() as pool:
        equal(sweep(fatal, few(40), pool, directory=tmp_path / "s"), in_order(artifact, 40))


def test_an_executor_whose_workers_never_come_back_ends_the_sweep() -> None:
    def broken() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), os._exit, (1,))

    with pytest.raises(FatalError, match="the executor broke"):
        sweep(sums, {"a": np.arange(200.0), "b": np.ones(200)}, broken)


@pytest.mark.full("large results")
def test_a_worker_killed_while_it_sends_costs_its_set_a_retry(calls: Path) -> None:
    sets = {"a": np.repeat(np.arange(4.0)[:, np.newaxis], 2, axis=1)}
    results = sweep(partial(large_and_deadly, str(calls)), sets, processes)
    assert called(calls) == [2] and not results.failures
    np.testing.assert_array_equal(results["x"][:, -1], sets["a"][:, 0])


def test_a_worker_killed_while_it_is_sent_parameters_costs_a_retry(calls: Path) -> None:
    sets = {"a": np.repeat(np.arange(8.0)[:, np.newaxis], 200_000, axis=1)}
    results = sweep(partial(deadly_once, str(calls)), sets, partial(ProcessPoolExecutor, 1))
    np.testing.assert_array_equal(results["x"], sets["a"][:, 0])


class NoFutures(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)


def test_an_executor_that_returns_no_futures_is_refused() -> None:
    with pytest.raises(FatalError, match="executor returned a list; expected a future"):
        sweep(sums, SUMS, NoFutures())


@pytest.mark.parametrize("large", ["results", "parameters"])
def test_an_interrupt_ends_processes_though_their_pipes_are_full(
    tmp_path: Path, large: str
) -> None:
    script = """if True:
        import os, signal, sys, threading
        from concurrent.futures import ProcessPoolExecutor
        from functools import partial
        import numpy as np
        from neml2_capi import sweep

        def written():
            with open("/proc/self/io") as counters:
                return int(counters.read().split("wchar: ")[1].split()[0])

        def interrupt(after):
            while written() < after:
                pass
            os.kill(int(os.environ["SWEEP"]), signal.SIGINT)

        def run(parameters):
            large = sys.argv[1] == "results"
            if parameters["a"][0] == 2:
                after = written() + 1 if large else 0  # the length of a message is written first
                threading.Thread(target=interrupt, args=[after], daemon=True).start()
            return {"x": np.zeros(10_000_000 if large else 1)}

        if __name__ == "__main__":
            os.environ["SWEEP"] = str(os.getpid())  # a server of processes may be between them
            length = 1 if sys.argv[1] == "results" else 200_000
            sets = np.repeat(np.arange(8.0)[:, np.newaxis], length, axis=1)
            sweep(run, {"a": sets}, partial(ProcessPoolExecutor, 1))
    """
    (tmp_path / "script.py").write_text(script)
    with subprocess.Popen(
        [sys.executable, tmp_path / "script.py", large],
        stderr=subprocess.PIPE,
        text=True,
        # A shell has its background jobs ignore SIGINT.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        start_new_session=True,
    ) as process:
        try:
            _, errors = process.communicate(timeout=PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0 and errors.rstrip().endswith("KeyboardInterrupt")
    assert "InvalidStateError" not in errors


class Losing(Executor):
    """Loses every task, without breaking."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(OSError("no route to host"))
        return future


def test_where_no_task_comes_back_nothing_counts_as_failed(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"no worker came back.*no route to host"):
        sweep(sums, SUMS, Losing(), directory=tmp_path / "s")
    assert sweep(sums, SUMS, directory=tmp_path / "s").done.all()
