"""neml2_capi.sweep(): a driver over many parameter sets."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sweeping
from patience import PATIENCE
from states import Artifacts
from sweeping import SETS, STRAIN, TIMES, Run, deadly, equal, few, in_order, run_of

import neml2_capi
from neml2_capi import FatalError, Model, SweepError, SweepResults, drive, experiments, sweep

Sets = Mapping[str, Any]
Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture
def artifact(artifacts: Artifacts) -> Path:
    return artifacts["combined_hardening"]


@pytest.fixture
def run(artifact: Path) -> Run:
    return run_of(artifact)


def sums(parameters: Sets) -> dict[str, Any]:
    """A run without a model."""
    return {"sum": parameters["a"] + parameters["b"], "count": 1}


SUMS = {"a": np.arange(20.0), "b": np.full(20, 0.5)}


def odd_ones_fail(calls: str, parameters: Sets) -> dict[str, Any]:
    """Leaves a file for each call."""
    number = int(parameters["a"])
    (Path(calls) / f"{number} {os.urandom(4).hex()}").touch()
    if number % 2:
        raise ValueError(f"{number} is odd")
    return sums(parameters)


def called(calls: Path) -> list[int]:
    return sorted(int(file.name.partition(" ")[0]) for file in calls.iterdir())


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    folder = tmp_path / "calls"
    folder.mkdir()
    return folder


def processes(method: str = "spawn") -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, multiprocessing.get_context(method))


# ------------------------------------------------------------------------------------------------
# The results
# ------------------------------------------------------------------------------------------------


def test_each_set_gives_what_drive_gives(run: Run, artifact: Path) -> None:
    results = sweep(run, few(12))
    assert results.done.all() and not results.failures
    assert results["stress"].shape == (12, 3, 6) and results["t"].shape == (12, 3)
    for item in range(12):
        values = {name: column[item] for name, column in SETS.items()}
        alone = drive(Model(artifact), TIMES, {"strain": STRAIN}, parameters=values)
        equal(results.at(item), alone)
        np.testing.assert_array_equal(results["stress"][item], alone["stress"])
    np.testing.assert_array_equal(results.parameters["E"], SETS["E"][:12])
    assert "12 sets, 12 done and 0 failed: t, strain, stress" in repr(results)


@pytest.mark.parametrize("store", ["npz", "zarr"])
@pytest.mark.parametrize(
    "executor",
    [
        None,
        partial(ThreadPoolExecutor, 2),
        partial(processes, "spawn"),
        partial(processes, "forkserver"),
        partial(processes, "fork"),
    ],
    ids=["here", "threads", "spawn", "forkserver", "fork"],
)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_where_it_runs_changes_no_bit(
    run: Run, artifact: Path, tmp_path: Path, executor: Any, store: str
) -> None:
    if store == "zarr":
        pytest.importorskip("zarr")
    results = sweep(run, few(30), executor, directory=tmp_path / "s", batch=4, store=store)
    equal(results, in_order(artifact, 30))
    equal(SweepResults.load(tmp_path / "s"), results)
    equal(SweepResults.load(tmp_path / "s").at(7), in_order(artifact, 30).at(7))


class Table:
    """As pandas has it."""

    def __init__(self, columns: Sets) -> None:
        self._columns = columns

    def keys(self) -> Iterator[str]:
        return iter(self._columns)

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


def test_sets_are_columns_a_table_or_mappings() -> None:
    expected = sweep(sums, SUMS)
    rows = ({"a": a, "b": b} for a, b in zip(*SUMS.values(), strict=True))
    for sets in (Table(SUMS), rows, {name: column.tolist() for name, column in SUMS.items()}):
        equal(sweep(sums, sets), expected)
    np.testing.assert_array_equal(expected["sum"], SUMS["a"] + 0.5)


def test_the_sets_are_those_of_the_call_even_if_its_arrays_change() -> None:
    column = np.arange(3.0)

    def spoil(parameters: Sets) -> dict[str, Any]:
        column[:] = -1.0
        return {"a": parameters["a"]}

    assert sweep(spoil, {"a": column})["a"].tolist() == [0.0, 1.0, 2.0]


def test_results_of_several_shapes_are_read_one_by_one(tmp_path: Path) -> None:
    def grow(parameters: Sets) -> dict[str, Any]:
        return {"row": np.arange(parameters["n"])}

    results = sweep(grow, {"n": [1, 2, 2]}, directory=tmp_path / "s", batch=3)
    assert [results.at(item)["row"].tolist() for item in range(3)] == [[0], [0, 1], [0, 1]]
    with pytest.raises(FatalError, match=r"'row' has the shape \(2,\) of set 1, and \(1,\)"):
        results["row"]
    pytest.importorskip("zarr")
    with pytest.raises(FatalError, match="store='npz'"):
        sweep(grow, {"n": [1, 2, 2]}, directory=tmp_path / "z", store="zarr")


def test_torch_in_and_numpy_out(artifact: Path) -> None:
    torch = pytest.importorskip("torch")
    run = partial(drive, Model(artifact), TIMES, {"strain": torch.from_numpy(STRAIN)})
    equal(sweep(run, few(6), batch=6), in_order(artifact, 6))


# ------------------------------------------------------------------------------------------------
# Batches
# ------------------------------------------------------------------------------------------------


def watched(calls: list[int], model: Model) -> Model:
    """Tells the batch of each drive."""
    bind = model.bind

    def told(*arguments: Any, **named: Any) -> Any:
        call = bind(*arguments, **named)
        calls.append(int(np.prod(call.batch)))
        return call

    model.bind = told  # type: ignore[method-assign]
    return model


@pytest.mark.parametrize("specimens", [(), (3,), (2, 3)])
def test_the_sets_of_a_batch_are_points_of_one_drive(
    artifact: Path, specimens: tuple[int, ...]
) -> None:
    scale = np.linspace(0.2, 1.0, int(np.prod(specimens))).reshape(*specimens, 1)
    strain = STRAIN.reshape(3, *[1] * len(specimens), 6) * scale
    batches: list[int] = []
    model = watched(batches, Model(artifact))
    options: dict[str, Any] = {"derivatives": True, "report": True}
    run = partial(drive, model, TIMES, {"strain": strain if specimens else STRAIN}, **options)
    expected = sweep(run, few(10))
    batches.clear()
    equal(sweep(run, few(10), batch=10), expected)
    points = int(np.prod(specimens))
    assert batches == [points, 9 * points]
    assert expected["stress"].shape == (10, 3, *specimens, 6)
    assert expected["stress:strain"].shape == (10, 3, *specimens, 6, 6)


def test_a_set_that_fails_or_is_cut_leaves_those_of_its_batch_as_they_were(artifact: Path) -> None:
    model = Model(artifact)
    model.options["miters"] = 13
    run = partial(drive, model, TIMES, {"strain": 0.5 * STRAIN}, report=True)
    sets = {name: column.copy() for name, column in few(24).items()}
    sets["E"][5] = np.nan
    expected = sweep(run, sets)
    cut = expected["substeps"].max(axis=-1) > 1
    assert 0 < cut.sum() < 12 and list(expected.failures) == [5]
    results = sweep(run, sets, batch=8)
    equal(results, expected)
    assert results.failures[5][:2] == expected.failures[5][:2]


def test_points_that_are_converged_together_are_not_put_together(artifact: Path) -> None:
    batches: list[int] = []
    model = watched(batches, Model(artifact))
    model.options["convergence"] = "batch"
    sweep(partial(drive, model, TIMES, {"strain": STRAIN}), few(6), batch=6)
    assert batches == [1] * 6


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


@pytest.mark.parametrize("batch", [1, 8])
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


# ------------------------------------------------------------------------------------------------
# Failures
# ------------------------------------------------------------------------------------------------


def test_a_set_that_fails_is_told_and_concerns_no_other(calls: Path, tmp_path: Path) -> None:
    run = partial(odd_ones_fail, str(calls))
    results = sweep(run, SUMS, directory=tmp_path / "s", batch=3)
    assert list(results.failures) == list(range(1, 20, 2))
    assert results.failures[3][:2] == ("ValueError", "3 is odd")
    assert "in odd_ones_fail" in results.failures[3].traceback
    assert results.done.tolist() == [True, False] * 10
    np.testing.assert_array_equal(results["sum"][::2], SUMS["a"][::2] + 0.5)
    assert np.isnan(results["sum"][1::2]).all() and (results["count"][1::2] == -1).all()
    with pytest.raises(FatalError, match="set 3 failed: ValueError: 3 is odd"):
        results.at(3)
    assert SweepResults.load(tmp_path / "s").failures == results.failures


def test_failed_sets_are_tried_again_only_where_that_is_asked_for(
    calls: Path, tmp_path: Path
) -> None:
    run = partial(odd_ones_fail, str(calls))
    first = sweep(run, SUMS, directory=tmp_path / "s")
    assert sweep(run, SUMS, directory=tmp_path / "s").failures == first.failures
    assert called(calls) == list(range(20))
    sweep(run, SUMS, directory=tmp_path / "s", again=True)
    assert called(calls) == sorted([*range(20), *range(1, 20, 2)])


def test_failures_can_be_raised_at_the_end_or_at_the_first(calls: Path) -> None:
    run = partial(odd_ones_fail, str(calls))
    with pytest.raises(SweepError, match=r"10 of 20 .* the first is set 1: ValueError") as caught:
        sweep(run, SUMS, failures="raise")
    assert caught.value.results.done.sum() == 10
    assert called(calls) == list(range(20))
    with pytest.raises(SweepError, match="1 of 20") as caught:
        sweep(run, SUMS, failures="stop")
    assert caught.value.results.done.tolist() == [True] + [False] * 19


@pytest.mark.parametrize(
    ("returned", "message"),
    [(1.0, "returned a float; expected results by name"), ({"a": object()}, "'a' as a object")],
)
def test_a_run_that_returns_something_else_fails(returned: Any, message: str) -> None:
    results = sweep(lambda parameters: returned, SUMS)
    assert not results.done.any() and message in results.failures[0].message
    with pytest.raises(FatalError, match="unknown result 'a'"):
        results["a"]


# ------------------------------------------------------------------------------------------------
# Interruption
# ------------------------------------------------------------------------------------------------


def stopped_at(number: int, calls: str, parameters: Sets) -> dict[str, Any]:
    """Interrupted by the user at one set, unless it was before."""
    first = number not in called(Path(calls))
    (Path(calls) / f"{int(parameters['a'])} {os.urandom(4).hex()}").touch()
    if int(parameters["a"]) == number and first:
        raise KeyboardInterrupt
    return sums(parameters)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("executor", [None, partial(ThreadPoolExecutor, 1), partial(processes)])
def test_an_interrupted_sweep_goes_on_where_it_was(
    calls: Path, tmp_path: Path, executor: Any, batch: int
) -> None:
    run = partial(stopped_at, 12, str(calls))
    with pytest.raises(KeyboardInterrupt):
        sweep(run, SUMS, executor, directory=tmp_path / "s", batch=batch)
    done = np.flatnonzero(SweepResults.load(tmp_path / "s").done)
    assert 0 < len(done) < 20 and 12 not in done
    for call in calls.iterdir():
        call.unlink()
    (calls / "12 interrupted").touch()
    results = sweep(run, SUMS, executor, directory=tmp_path / "s", batch=batch)
    equal(results, sweep(sums, SUMS))
    assert set(called(calls)) == {*range(20)} - {*done}  # no set is made twice


INTERRUPTED = pytest.param(signal.SIGINT, marks=pytest.mark.full("a thousand sets, interrupted"))


@pytest.mark.full("a thousand sets")
@pytest.mark.parametrize("stop", [INTERRUPTED, signal.SIGKILL])
def test_a_thousand_sets_stopped_at_half_and_resumed_are_as_one_after_another(
    artifact: Path, tmp_path: Path, stop: signal.Signals
) -> None:
    """All processes get the signal at once, as from a terminal, or a machine that goes down."""
    script = """if True:
        import sys
        from functools import partial
        from pathlib import Path
        from sweeping import BATCH, SETS, gated
        from test_sweep import processes
        from neml2_capi import sweep

        if __name__ == "__main__":
            artifact, gate, directory = map(Path, sys.argv[1:])
            sweep(gated(artifact, gate), SETS, processes, directory=directory, batch=BATCH)
    """
    gate, directory = tmp_path / "gate", tmp_path / "s"
    os.mkfifo(gate)
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, tmp_path / "script.py", artifact, gate, directory]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    status, errors = sweeping.interrupted_at_half(
        [*map(str, command)], directory, stop, env={**os.environ, "PYTHONPATH": path}
    )
    assert status != 0 and ("KeyboardInterrupt" in errors) == (stop == signal.SIGINT)
    half = SweepResults.load(directory)
    assert half.done.sum() == sweeping.HALF and "500 done" in repr(half)
    results = sweeping.resumed(sweeping.gated(artifact, gate), directory, gate)
    equal(results, in_order(artifact))


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    code = "import sys; from neml2_capi import sweep; sweep(eval(sys.argv[1]), {'a': [1]}, "
    code += "directory=sys.argv[2])"
    refused: list[str] = []

    def inside(parameters: Sets) -> Sets:
        command = [sys.executable, "-c", code, "lambda parameters: parameters", str(tmp_path / "s")]
        refused.append(subprocess.run(command, capture_output=True, text=True).stderr)
        return parameters

    sweep(inside, {"a": [1]}, directory=tmp_path / "s")
    assert "is in use: another process makes this sweep" in refused[0]


def test_a_worker_that_outlives_its_sweep_does_not_keep_the_directory(tmp_path: Path) -> None:
    script = """if True:
        import os, signal, sys
        from neml2_capi import sweep

        def run(parameters):
            if os.fork() == 0:
                os.read(0, 1)
            os.kill(os.getpid(), signal.SIGKILL)

        sweep(run, {"a": [1]}, directory=sys.argv[1])
    """
    command = [sys.executable, "-c", script, str(tmp_path / "s")]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait(PATIENCE) == -signal.SIGKILL  # its child waits for what never comes
        with pytest.raises(FatalError, match="holds another sweep"):  # and is not in use
            sweep(sums, SUMS, directory=tmp_path / "s")


# ------------------------------------------------------------------------------------------------
# The directory
# ------------------------------------------------------------------------------------------------


def test_a_damaged_file_is_put_aside_and_its_sets_run_again(
    calls: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run, directory = partial(odd_ones_fail, str(calls)), tmp_path / "s"
    evens = {"a": np.arange(0.0, 40.0, 2.0), "b": np.full(20, 0.5)}
    expected = dict(sweep(run, evens, directory=directory))
    files = sorted((directory / "items").iterdir())
    files[3].write_bytes(files[3].read_bytes()[:100])
    whole = files[5].read_bytes()
    at = whole.rindex(expected["sum"][5].tobytes(), 0, whole.index(b"PK\x01\x02"))
    files[5].write_bytes(whole[:at] + b"\x01" + whole[at + 1 :])
    files[7].write_bytes(b"")
    (directory / "items" / "00000009.part").write_bytes(b"PK")
    with caplog.at_level(logging.WARNING, "neml2_capi.sweep"):
        equal(sweep(run, evens, directory=directory), expected)
    assert len(caplog.messages) == 3 and "is damaged" in caplog.messages[0]
    assert called(calls) == sorted([*range(0, 40, 2), 6, 10, 14])
    assert (directory / "items" / "00000003.damaged").exists()


def test_a_file_that_comes_to_harm_later_is_named(tmp_path: Path) -> None:
    results = sweep(sums, SUMS, directory=tmp_path / "s")
    (tmp_path / "s" / "items" / "00000004.npz").write_bytes(b"PK")
    for read in (lambda: results["sum"], lambda: results.at(4)):
        with pytest.raises(FatalError, match=r"00000004.npz is damaged: .*only the sets in it"):
            read()
    assert results.at(5)["sum"] == 5.5


def test_a_damaged_chunk_of_zarr_is_made_again(calls: Path, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    run, directory = partial(odd_ones_fail, str(calls)), tmp_path / "s"
    evens = {"a": np.arange(0.0, 40.0, 2.0), "b": np.full(20, 0.5)}
    expected = sweep(run, evens, directory=directory, store="zarr")
    chunk = directory / "results.zarr" / "results" / "sum" / "c" / "4"
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    equal(sweep(run, evens, directory=directory, store="zarr"), expected)
    assert called(calls) == sorted([*range(0, 40, 2), 8])


def test_a_line_that_was_cut_short_is_not_a_failure(calls: Path, tmp_path: Path) -> None:
    run, directory = partial(odd_ones_fail, str(calls)), tmp_path / "s"
    sweep(run, SUMS, directory=directory)
    told = directory / "failures.jsonl"
    told.write_bytes(told.read_bytes()[:-10])
    results = sweep(run, SUMS, directory=directory)
    assert called(calls) == [*range(19), 19, 19]
    assert SweepResults.load(directory).failures.keys() == results.failures.keys()
    assert len(results.failures) == 10


def of(model: Model, **named: Any) -> Run:
    return partial(drive, model, **{"times": TIMES, "forces": {"strain": STRAIN}, **named})


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"times": 2.0 * TIMES}, "times"),
        ({"times": [*TIMES[:-1], 11.0], "forces": {"strain": 2.0 * STRAIN}}, "times and forces"),
        ({"forces": {"strain": lambda time: time * STRAIN[1]}}, "forces"),
        ({"record": "stress"}, "record"),
        ({"initial": {"stress": np.ones(6)}}, "initial"),
    ],
)
def test_another_sweep_in_the_directory_is_refused(
    artifact: Path, tmp_path: Path, changed: dict[str, Any], names: str
) -> None:
    model = Model(artifact)
    sweep(of(model), few(3), directory=tmp_path / "s")
    with pytest.raises(FatalError, match=f"holds another sweep, which differs in {names}; name"):
        sweep(of(model, **changed), few(3), directory=tmp_path / "s")


def test_other_sets_options_and_parameters_of_the_model_are_another_sweep(
    artifact: Path, artifacts: Artifacts, tmp_path: Path
) -> None:
    model, directory = Model(artifact), tmp_path / "s"
    sets = {"E": SETS["E"][:3]}
    sweep(of(model), sets, directory=directory)
    with pytest.raises(FatalError, match="differs in parameters;"):
        sweep(of(model), {"E": SETS["E"][:4]}, directory=directory)
    model.options["rtol"] = 1e-9
    with pytest.raises(FatalError, match="differs in model;"):
        sweep(of(model), sets, directory=directory)
    model = Model(artifact)
    model.set_parameter("yield_stress", 99.0)
    with pytest.raises(FatalError, match="differs in model;"):
        sweep(of(model), sets, directory=directory)


def test_the_same_sweep_goes_on_from_another_place_and_with_other_threads(
    artifact: Path, tmp_path: Path
) -> None:
    sweep(of(Model(artifact)), few(5), directory=tmp_path / "s")
    elsewhere = Model(shutil.copytree(artifact, tmp_path / "elsewhere"))
    elsewhere.options["threads"] = 3
    moved = (tmp_path / "s").rename(tmp_path / "moved")
    results = sweep(of(elsewhere), few(5), directory=moved)
    equal(results, in_order(artifact, 5))


def test_a_changed_package_is_another_artifact(artifact: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(artifact, tmp_path / "artifact")
    sweep(of(Model(copy)), few(2), directory=tmp_path / "s")
    package = next(copy.rglob("*.pt2"))
    content = bytearray(package.read_bytes())
    content[content.index(b"PK\x01\x02") + 12] ^= 1  # when the first entry was written
    package.write_bytes(content)
    with pytest.raises(FatalError, match="differs in model;"):
        sweep(of(Model(copy)), few(2), directory=tmp_path / "s")


def scaled(factor: float) -> Callable[[Sets], Sets]:
    return lambda parameters: {"a": factor * parameters["a"]}


def test_a_function_is_known_by_its_code_and_what_it_closes_over(tmp_path: Path) -> None:
    sweep(scaled(2.0), {"a": [1.0]}, directory=tmp_path / "s")
    assert sweep(scaled(2.0), {"a": [1.0]}, directory=tmp_path / "s")["a"] == 2.0
    with pytest.raises(FatalError, match="differs in run;"):
        sweep(scaled(3.0), {"a": [1.0]}, directory=tmp_path / "s")
    with pytest.raises(FatalError, match="differs in run;"):
        sweep(sums, {"a": [1.0]}, directory=tmp_path / "s")


def splined(factor: float) -> Callable[[Sets], Sets]:
    interpolate = pytest.importorskip("scipy.interpolate")
    spline, function = interpolate.CubicSpline(SUMS["a"], factor * SUMS["a"]), np.sin
    return lambda parameters: {"a": spline(function(parameters["a"]))}


def test_objects_of_other_libraries_are_known_by_their_content(tmp_path: Path) -> None:
    first = sweep(splined(1.0), {"a": SUMS["a"]}, directory=tmp_path / "s")
    equal(sweep(splined(1.0), {"a": SUMS["a"]}, directory=tmp_path / "s"), first)
    with pytest.raises(FatalError, match="differs in run;"):
        sweep(splined(2.0), {"a": SUMS["a"]}, directory=tmp_path / "s")


def test_what_cannot_be_known_again_stays_in_memory(tmp_path: Path) -> None:
    lock = threading.Lock()

    def run(parameters: Sets) -> dict[str, Any]:
        with lock:
            return sums(parameters)

    with pytest.raises(FatalError, match=r"holds a lock, which cannot be pickled"):
        sweep(run, SUMS, directory=tmp_path / "s")
    assert sweep(run, SUMS, partial(ThreadPoolExecutor, 2)).done.all()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(FatalError, match="is not empty, and holds no sweep"):
        sweep(sums, SUMS, directory=tmp_path)
    with pytest.raises(FatalError, match=r"there is no sweep\.json"):
        SweepResults.load(tmp_path)
    sweep(sums, SUMS, directory=tmp_path / "s")
    description = tmp_path / "s" / "sweep.json"
    description.write_text(description.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(FatalError, match="written by a later version"):
        SweepResults.load(tmp_path / "s")


def test_results_are_plain_files_of_numpy(tmp_path: Path) -> None:
    sweep(sums, SUMS, directory=tmp_path / "s", batch=8)
    loaded = np.load(tmp_path / "s" / "items" / "00000008.npz")
    assert loaded["__items__"].tolist() == list(range(8, 16))
    np.testing.assert_array_equal(loaded["sum"], SUMS["a"][8:16] + 0.5)
    np.testing.assert_array_equal(np.load(tmp_path / "s" / "parameters.npz")["a"], SUMS["a"])


# ------------------------------------------------------------------------------------------------
# What is shown, and what is refused
# ------------------------------------------------------------------------------------------------


def test_a_bar_counts_the_sets_from_where_the_sweep_goes_on(
    calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    run = partial(stopped_at, 12, str(calls))
    with pytest.raises(KeyboardInterrupt):
        sweep(run, SUMS, directory=tmp_path / "s", progress=True)
    assert "12/20" in capsys.readouterr().err
    sweep(run, SUMS, directory=tmp_path / "s", progress=True)
    shown = capsys.readouterr().err
    assert " 12/20" in shown and " 20/20" in shown and " 0/20" not in shown
    sweep(run, SUMS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"parameters": {"E": 200e3}}, "'E' is one value; expected an array"),
        ({"parameters": {}}, "are empty"),
        ({"parameters": {"E": []}}, "are empty"),
        ({"parameters": []}, "are empty"),
        ({"parameters": {"E": [1.0, 2.0], "yield_stress": [1.0]}}, "'E' has 2, 'yield_stress' has"),
        ({"parameters": {"E": [object()]}}, "'E' is of objects"),
        (
            {"parameters": {"E": np.ma.masked_array([1.0, 2.0], [False, True])}},
            "'E' is masked: leave",
        ),
        ({"parameters": [{"E": 1.0}, {"yield_stress": 1.0}]}, "set 1 yield_stress"),
        ({"parameters": [{"E": 1.0}, {"E": [1.0, 2.0]}]}, r"and \(2,\) in set 1"),
        ({"parameters": [1.0]}, "set 0 is a float"),
        ({"parameters": {"yield_stres": [1.0]}}, "did you mean 'yield_stress'"),
        ({"run": 1}, "run must be a function of `parameters`; got a int"),
        ({"executor": 8}, "the executor is a int; expected"),
        ({"executor": dict}, "returned a dict, which has no submit"),
        ({"batch": 0}, "batch must be a whole number, at least 1; got 0"),
        ({"retries": -1}, "retries must be a whole number, at least 0; got -1"),
        ({"failures": "ignore"}, "must be one of 'keep', 'raise', 'stop'; got 'ignore'"),
        ({"store": "zarr"}, "'zarr' needs a directory"),
        ({"store": "hdf5"}, "must be one of 'npz', 'zarr'; got 'hdf5'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_swept_is_refused_with_the_reason(
    run: Run, changed: dict[str, Any], message: str
) -> None:
    given = {"run": run, "parameters": few(3), **changed}
    with pytest.raises(FatalError, match=message):
        sweep(**given)


def test_parameters_in_two_places_are_refused(artifact: Path) -> None:
    run = run_of(artifact, parameters={"E": 1.0})
    with pytest.raises(FatalError, match="has parameters of its own"):
        sweep(run, few(3))


def test_zarr_is_needed_only_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)
    sweep(sums, SUMS, directory=tmp_path / "s")
    with pytest.raises(FatalError, match=r"pip install 'neml2_capi\[zarr\]'"):
        sweep(sums, SUMS, directory=tmp_path / "z", store="zarr")


def test_a_set_that_there_is_not_is_refused() -> None:
    results = sweep(sums, SUMS)
    for item in (-1, 20):
        with pytest.raises(FatalError, match="there are 20, from 0"):
            results.at(item)


def test_the_package_offers_it() -> None:
    assert neml2_capi.sweep is sweep and {"sweep", "SweepResults"} <= set(neml2_capi.__all__)
    error = pickle.loads(pickle.dumps(SweepError("failed")))
    assert isinstance(error, neml2_capi.Error)


# ------------------------------------------------------------------------------------------------
# Experiments
# ------------------------------------------------------------------------------------------------

EXPERIMENTS: dict[str, tuple[Any, ...]] = {
    "tension": (0.004,),
    "uniaxial": (150.0,),
    "biaxial": (0.004, -0.001),
    "plane_stress": (0.004, 0.002, 0.001),
    "creep": (150.0,),
    "relaxation": (0.004,),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_sets_of_an_experiment_are_points_of_one_drive(artifact: Path, name: str) -> None:
    batches: list[int] = []
    model = watched(batches, Model(artifact))
    experiment = getattr(experiments, name)
    run = partial(experiment, model, np.linspace(0, 4, 9), *EXPERIMENTS[name], report=True)
    sets = {"E": np.linspace(150e3, 250e3, 8), "yield_stress": np.linspace(90, 160, 8)}
    expected = sweep(run, sets)
    batches.clear()
    equal(sweep(run, sets, batch=8), expected)
    assert batches == [1, 7]


def test_an_experiment_on_several_points_is_batched_too(artifact: Path) -> None:
    run = partial(
        experiments.creep, Model(artifact), np.linspace(0, 4, 9), stress=[100.0, 150.0, 180.0]
    )
    sets = {"E": np.linspace(150e3, 250e3, 6)}
    equal(sweep(run, sets, batch=6), sweep(run, sets))


def test_a_batch_that_is_none_is_told(artifact: Path) -> None:
    model = Model(artifact)
    with pytest.warns(UserWarning, match="batch = 4: .* is no functools.partial of drive"):
        sweep(sums, SUMS, batch=4)
    with pytest.warns(UserWarning, match="'E' has a batch of its own in each set"):
        sweep(run_of(artifact), {"E": np.full((4, 2), 2e5)}, batch=4)
    model.options["convergence"] = "batch"
    with pytest.warns(UserWarning, match="convergence = batch would let"):
        sweep(partial(drive, model, TIMES, {"strain": STRAIN}), few(4), batch=4)


def test_a_set_that_is_not_finite_fails_alone(artifact: Path) -> None:
    for item in (0, 3):
        sets = {"E": np.linspace(150e3, 250e3, 6)}
        sets["E"][item] = np.nan
        for batch in (1, 6):
            results = sweep(run_of(artifact), sets, batch=batch)
            assert list(results.failures) == [item]
            assert "'E' is nan; expected finite numbers" in results.failures[item].message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch": 2.0}, "batch must be a whole number"),
        ({"batch": "2"}, "batch must be a whole number"),
        ({"batch": True}, "batch must be a whole number"),
        ({"retries": None}, "retries must be a whole number"),
        ({"again": 3}, "again must be True or False"),
        ({"progress": "yes"}, "progress must be True, False or None"),
        ({"failures": []}, "failures must be one of"),
        ({"store": {}}, "store must be one of"),
        ({"parameters": None}, "columns by name, or a list of mappings; got a NoneType"),
        ({"parameters": {"a": [[1], [1, 2]]}}, "'a' has rows of different shapes"),
        ({"directory": 3}, "directory must be the path of a file"),
        ({"directory": "a\0b"}, "directory must be the path of a file"),
        ({"run": None}, "run must be a function"),
    ],
)
def test_arguments_are_refused_by_their_names(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FatalError, match=message):
        sweep(**{"run": sums, "parameters": SUMS, **changed})


@pytest.mark.parametrize("item", [None, 1.5, "1", -1, 20])
def test_a_set_is_asked_for_by_its_number(item: Any) -> None:
    with pytest.raises(FatalError, match=r"number of a set|there is no set"):
        sweep(sums, SUMS).at(item)
