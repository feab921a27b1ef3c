"""The runs and parameter sets of the tests of sweeps; worker processes import them from here."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from patience import PATIENCE
from test_physics import DIRECTION

from neml2_capi import Model, SweepResults, drive, sweep

Array = NDArray[np.float64]
Run = Callable[..., Mapping[str, Any]]
Sets = Mapping[str, Any]

TIMES = np.linspace(0.0, 10.0, 3)
STRAIN = np.linspace(0.0, 0.004, 3)[:, np.newaxis] * DIRECTION
_RANDOM = np.random.default_rng(8)
SETS = {
    "E": _RANDOM.uniform(150e3, 250e3, 1000),
    "yield_stress": _RANDOM.uniform(80.0, 200.0, 1000),
}
HALF = 500
#: Sets in a task of a sweep on a cluster, and in a file.
BATCH = 5


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


def stopped_at(number: int, calls: str, parameters: Sets) -> dict[str, Any]:
    """Interrupted by the user at one set, unless it was before."""
    first = number not in called(Path(calls))
    (Path(calls) / f"{int(parameters['a'])} {os.urandom(4).hex()}").touch()
    if int(parameters["a"]) == number and first:
        raise KeyboardInterrupt
    return sums(parameters)


def called(calls: Path) -> list[int]:
    return sorted(int(file.name.partition(" ")[0]) for file in calls.iterdir())


def processes(method: str = "spawn") -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, multiprocessing.get_context(method))


def few(count: int) -> dict[str, Array]:
    return {name: column[:count] for name, column in SETS.items()}


def run_of(artifact: Path, **options: Any) -> Run:
    """Combined hardening under two steps of strain."""
    model = Model(artifact)
    model.options["threads"] = 1
    return partial(drive, model, TIMES, {"strain": STRAIN}, **options)


def at_a_gate(run: Run, gate: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The second half of the sets waits as long as the gate, a pipe, has no writer."""
    if parameters["E"] in SETS["E"][HALF:]:
        Path(gate).read_bytes()
    return run(parameters=parameters)


def deadly(
    run: Run, item: int, times: int, graves: str, parameters: Mapping[str, Any]
) -> Mapping[str, Any]:
    """A set that kills its worker, so many times; a file tells of each."""
    deaths = len(list(Path(graves).iterdir()))
    if parameters["E"] == SETS["E"][item] and deaths < times:
        (Path(graves) / str(deaths)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run(parameters=parameters)


def written() -> int:
    """The bytes that this process wrote."""
    return int(Path("/proc/self/io").read_text().split("wchar: ")[1].split()[0])


def large_and_deadly(graves: str, parameters: Sets) -> dict[str, Any]:
    """Return large results; the first process that sends those of set 2 dies meanwhile."""
    grave = Path(graves) / "2"
    if parameters["a"][0] == 2 and not grave.exists():
        grave.touch()
        length = written() + 1  # the length of a message is written first

        def die() -> None:
            while written() < length:
                pass
            os.kill(os.getpid(), signal.SIGKILL)

        Thread(target=die, daemon=True).start()
    return {"x": np.full(10_000_000, parameters["a"][0])}


def deadly_once(graves: str, parameters: Sets) -> dict[str, Any]:
    """Set 2 kills its process when it is run first."""
    if parameters["a"][0] == 2 and not called(Path(graves)):
        (Path(graves) / "2").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"x": parameters["a"][0]}


def gated(artifact: Path, gate: Path) -> Run:
    return partial(at_a_gate, run_of(artifact), str(gate))


@cache
def in_order(artifact: Path, count: int = len(SETS["E"])) -> SweepResults:
    """The first sets, one after another in this thread."""
    return sweep(run_of(artifact), few(count))


def equal(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Bit for bit."""
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def made(directory: Path) -> int:
    """How many sets are done in batches."""
    return BATCH * len(list((directory / "items").glob("*.npz")))


def interrupted_at_half(
    command: list[str], directory: Path, stop: signal.Signals, **options: Any
) -> tuple[int, str]:
    """Start a sweep that waits at half, and stop all of its processes there; how it ended."""
    # A shell has its background jobs, and all that they start, ignore SIGINT.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed,
        **options,
    ) as process:
        try:
            while made(directory) < HALF:
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.01)
            os.killpg(process.pid, stop)
            _, errors = process.communicate(timeout=PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, errors


def resumed(run: Run, directory: Path, gate: Path, **options: Any) -> SweepResults:
    """The gate is open, and the same call is made again."""
    gate.unlink()
    gate.touch()
    assert made(directory) == HALF
    return sweep(run, SETS, directory=directory, batch=BATCH, **options)
