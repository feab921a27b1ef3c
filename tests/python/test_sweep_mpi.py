"""Sweeps on mpi4py.futures."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE
from states import Artifacts
from sweeping import HALF, equal, in_order, interrupted_at_half, made

from neml2_capi import SweepResults

pytest.importorskip("mpi4py")
MPIEXEC = shutil.which("mpiexec")
if MPIEXEC is None:
    pytest.skip("mpiexec was not found", allow_module_level=True)

pytestmark = pytest.mark.full("MPI")

SCRIPT = """
import sys
from functools import partial
from pathlib import Path
from mpi4py.futures import MPIPoolExecutor
from sweeping import BATCH, SETS, deadly, gated
from neml2_capi import sweep

if __name__ == "__main__":
    artifact, gate, directory, graves = map(Path, sys.argv[1:])
    run = partial(deadly, gated(artifact, gate), 317, int(graves.name), str(graves))
    with MPIPoolExecutor() as executor:
        print(sweep(run, SETS, executor, directory=directory, batch=BATCH))
"""


@pytest.fixture
def command(artifacts: Artifacts, tmp_path: Path, request: pytest.FixtureRequest) -> list[str]:
    """A sweep on two workers, which waits at half; one of them dies, as often as is asked for."""
    script, graves = tmp_path / "script.py", tmp_path / str(getattr(request, "param", 0))
    script.write_text(SCRIPT)
    os.mkfifo(tmp_path / "gate")
    graves.mkdir()
    places = (artifacts["combined_hardening"], tmp_path / "gate", tmp_path / "sweep", graves)
    mpi = [str(MPIEXEC), "-n", "3", "--oversubscribe", sys.executable, "-m", "mpi4py.futures"]
    return [*mpi, str(script), *map(str, places)]


@pytest.fixture
def environment() -> dict[str, str]:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, **root, "PYTHONPATH": str(Path(__file__).parent)}


def called(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )


def finished(command: list[str], environment: dict[str, str], folder: Path) -> SweepResults:
    """The same call again, with the gate open."""
    (folder / "gate").unlink()
    (folder / "gate").touch()
    done = called(command, environment)
    assert done.returncode == 0, done.stderr
    assert "1000 done and 0 failed" in done.stdout
    return SweepResults.load(folder / "sweep")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_thousand_sets_interrupted_at_half_and_resumed_are_as_one_after_another(
    command: list[str],
    environment: dict[str, str],
    artifacts: Artifacts,
    tmp_path: Path,
    stop: signal.Signals,
) -> None:
    status, _ = interrupted_at_half(command, tmp_path / "sweep", stop, env=environment)
    assert status != 0 and made(tmp_path / "sweep") == HALF
    with (tmp_path / "sweep" / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)  # ranks outlive an mpiexec that is killed by a moment
    results = finished(command, environment, tmp_path)
    equal(results, in_order(artifacts["combined_hardening"]))


@pytest.mark.parametrize("command", [1], indirect=True)
def test_a_rank_that_dies_ends_the_job_and_the_next_one_goes_on(
    command: list[str], environment: dict[str, str], artifacts: Artifacts, tmp_path: Path
) -> None:
    # MPI ends all ranks with one: none is left to try its set again.
    assert called(command, environment).returncode != 0
    assert 250 < made(tmp_path / "sweep") < HALF
    results = finished(command, environment, tmp_path)
    equal(results, in_order(artifacts["combined_hardening"]))
