"""Sweeps on Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from states import Artifacts
from sweeping import deadly, equal, few, in_order, run_of

from neml2_capi import sweep
from neml2_capi.sweeps import RayExecutor

ray = pytest.importorskip("ray")


@pytest.fixture(autouse=True, scope="module")
def cluster() -> Iterator[None]:
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": path}})
    yield
    ray.shutdown()


def test_it_is_as_one_after_another(artifacts: Artifacts, tmp_path: Path) -> None:
    artifact = artifacts["combined_hardening"]
    results = sweep(run_of(artifact), few(60), RayExecutor(), directory=tmp_path / "s", batch=8)
    equal(results, in_order(artifact, 60))


@pytest.mark.parametrize("max_retries", [3, 0])
def test_a_killed_worker_costs_its_set_a_retry(
    artifacts: Artifacts, tmp_path: Path, max_retries: int
) -> None:
    artifact = artifacts["combined_hardening"]
    run = partial(deadly, run_of(artifact), 17, 1, str(tmp_path))
    results = sweep(run, few(60), RayExecutor(num_cpus=1, max_retries=max_retries))
    assert len(list(tmp_path.iterdir())) == 1
    equal(results, in_order(artifact, 60))
