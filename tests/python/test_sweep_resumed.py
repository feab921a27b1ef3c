"""A sweep that fails or is interrupted, and goes on in its directory."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sweeping
from patience import PATIENCE
from slow import later
from states import Artifacts
from sweeping import (
    SETS,
    STRAIN,
    SUMS,
    TIMES,
    Run,
    Sets,
    called,
    equal,
    few,
    in_order,
    odd_ones_fail,
    processes,
    stopped_at,
    sums,
)

from neml2_capi import FatalError, Model, SweepError, SweepResults, drive, sweep


@pytest.fixture
def artifact(artifacts: Artifacts) -> Path:
    return artifacts["combined_hardening"]


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    folder = tmp_path / "calls"
    folder.mkdir()
    return folder


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


class Untold(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def exits(parameters: Sets) -> Sets:
    if parameters["a"] == 3:
        sys.exit("enough")
    if parameters["a"] == 4:
        raise Untold
    return sums(parameters)


@pytest.mark.parametrize("batch", later([1, 4], [1]))
@pytest.mark.parametrize("executor", [partial(ThreadPoolExecutor, 2), processes])
def test_a_set_whose_run_exits_or_raises_without_a_text_is_a_failure_like_others(
    executor: Any, batch: int
) -> None:
    results = sweep(exits, SUMS, executor, batch=batch)
    assert list(results.failures) == [3, 4] and results.done.sum() == 18
    assert results.failures[3][:2] == ("SystemExit", "enough")
    assert results.failures[4][:2] == ("Untold", "its text cannot be had: ValueError")


def test_an_exit_in_this_thread_ends_the_sweep(tmp_path: Path) -> None:
    """A handler of SIGTERM may have called it."""
    with pytest.raises(SystemExit, match="enough"):
        sweep(exits, SUMS, directory=tmp_path / "sweep")
    results = sweep(exits, {"a": np.array([4.0]), "b": np.array([0.5])})
    assert results.failures[0][:2] == ("Untold", "its text cannot be had: ValueError")


# ------------------------------------------------------------------------------------------------
# Interruption
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", later([1, 4], [1]))
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
        from sweeping import processes
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
    for view in ({"hypothesis": "plane_strain"}, {"material_axes": True}):
        with pytest.raises(FatalError, match="differs in model;"):
            sweep(of(Model(artifact, **view)), sets, directory=directory)


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
