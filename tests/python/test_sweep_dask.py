"""Sweeps on a cluster of Dask."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from native import ROOT
from patience import PATIENCE
from states import Artifacts
from sweeping import deadly, equal, few, gated, in_order, interrupted_at_half, resumed, run_of

from neml2_capi import sweep

pytest.importorskip("distributed")
import dask
from dask.distributed import Client, LocalCluster

pytestmark = pytest.mark.full("sweeps on Dask")

SCRIPT = """
import sys
from pathlib import Path
from dask.distributed import Client, LocalCluster
from sweeping import BATCH, SETS, gated
from neml2_capi import sweep

if __name__ == "__main__":
    artifact, gate, directory = map(Path, sys.argv[1:])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            sweep(gated(artifact, gate), SETS, client, directory=directory, batch=BATCH)
"""


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Of two worker processes; the parameter is how many deaths Dask forgives a task."""
    forgiven = getattr(request, "param", 3)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": forgiven}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_a_thousand_sets_interrupted_at_half_and_resumed_are_as_one_after_another(
    artifacts: Artifacts, tmp_path: Path, client: Any
) -> None:
    artifact, gate, directory = artifacts["combined_hardening"], tmp_path / "gate", tmp_path / "s"
    os.mkfifo(gate)
    (tmp_path / "script.py").write_text(SCRIPT)
    status, errors = interrupted_at_half(
        [sys.executable, str(tmp_path / "script.py"), *map(str, (artifact, gate, directory))],
        directory,
        signal.SIGINT,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert status != 0 and "KeyboardInterrupt" in errors
    results = resumed(gated(artifact, gate), directory, gate, executor=client)
    assert results.done.all() and not results.failures
    equal(results, in_order(artifact))


@pytest.mark.parametrize("client", [3, 0], indirect=True, ids=["by Dask", "by the sweep"])
def test_a_killed_worker_costs_its_set_a_retry(
    artifacts: Artifacts, tmp_path: Path, client: Any
) -> None:
    run = run_of(artifacts["combined_hardening"])
    results = sweep(partial(deadly, run, 17, 1, str(tmp_path)), few(60), client)
    assert len(list(tmp_path.iterdir())) == 1
    assert results.done.all()
    equal(results, in_order(artifacts["combined_hardening"], 60))


@pytest.mark.parametrize("client", [0], indirect=True)
def test_a_set_that_kills_every_worker_is_a_failure(
    artifacts: Artifacts, tmp_path: Path, client: Any
) -> None:
    run = run_of(artifacts["combined_hardening"])
    # The others of the batch are tried alone.
    results = sweep(
        partial(deadly, run, 17, 99, str(tmp_path)), few(40), client, batch=8, retries=2
    )
    assert list(results.failures) == [17] and results.done.sum() == 39
    assert results.failures[17].type == "KilledWorker"
    assert "its worker was lost" in results.failures[17].message


def test_an_executor_of_a_client_does_as_well(artifacts: Artifacts, client: Any) -> None:
    artifact = artifacts["combined_hardening"]
    results = sweep(run_of(artifact), few(20), client.get_executor(), batch=5)
    equal(results, in_order(artifact, 20))


def test_the_example_runs_and_goes_on(artifacts: Artifacts, tmp_path: Path, client: Any) -> None:
    example = [sys.executable, str(ROOT / "examples" / "sweep_dask.py")]
    places = [str(artifacts["combined_hardening"]), str(tmp_path / "s"), client.scheduler.address]
    printed = []
    for _ in range(2):
        done = subprocess.run([*example, *places], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert "1000 done and 0 failed" in printed[0] and printed[1] == printed[0]
