"""neml2-capi bench: times of the operations of an artifact."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import answer, error
from states import recorded

Artifacts = Mapping[str, Path]


QUICK = ("--batch", "1", "--batch", "7", "--threads", "1", "--seconds", "0")


def test_bench_times_the_operations_that_there_are(artifacts: Artifacts) -> None:
    told = json.loads(answer("bench", artifacts["elasticity"], *QUICK, "--json"))
    found = {(t["operation"], t["points"], t["threads"]) for t in told["timings"]}
    assert found == {
        (operation, points, 1)
        for operation in ("forward", "jvp", "vjp", "jacobian")
        for points in (1, 7)
    }
    assert all(t["microseconds_per_point"] > 0 and t["failed"] == 0 for t in told["timings"])
    told = json.loads(answer("bench", artifacts["viscoplastic"], *QUICK, "--json"))
    assert {t["operation"] for t in told["timings"]} == {"forward"}


def test_the_only_element_type_is_taken(artifacts: Artifacts, tmp_path: Path) -> None:
    """Also by a file that run --template writes."""
    root, file = artifacts["elasticity_float32"], tmp_path / "run.toml"
    answer("bench", root, *QUICK, "--operation", "forward")
    answer("run", "--template", root, "--output", file)
    assert 'dtype = "float32"' in file.read_text()
    answer("run", file)


def test_bench_shows_a_table(artifacts: Artifacts) -> None:
    text = answer("bench", artifacts["elasticity"], *QUICK, "--operation", "jacobian")
    assert re.search(r"points +threads +jacobian", text)
    assert re.search(r"^ *7 +1 +[\d.e+]+ *$", text, re.MULTILINE)


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1"])
def test_bench_ends_after_a_time(artifacts: Artifacts, seconds: str) -> None:
    text = error("bench", artifacts["elasticity"], "--seconds", seconds)
    assert f"--seconds: must be 0 or more, and finite; got {float(seconds)}" in text


def test_bench_takes_states_from_a_file(artifacts: Artifacts, tmp_path: Path) -> None:
    name, file = "isotropic_hardening", tmp_path / "states.npz"
    states: dict[str, Any] = recorded(name, "in")
    np.savez(file, **states)
    told = json.loads(answer("bench", artifacts[name], *QUICK, "--inputs", file, "--json"))
    assert {t["failed"] for t in told["timings"]} == {0}
    assert "param_vjp" in {t["operation"] for t in told["timings"]}
    np.savez(file, strain=np.zeros((2, 6)))
    assert "no array of the inputs" in error("bench", artifacts[name], "--inputs", file)
    file.write_text("no arrays")
    assert "expected a file of numpy.savez()" in error("bench", artifacts[name], "--inputs", file)


def test_bench_takes_a_scheduler_from_a_file(artifacts: Artifacts, tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text("[scheduler]\ndevice = 'cpu'\nbatch_size = 2\n")
    told = json.loads(
        answer("bench", artifacts["elasticity"], *QUICK, "--scheduler", file, "--json")
    )
    assert told["timings"]
    file.write_text("[scheduler]\ndevice = 'cpu'\nbatch = 2\n")
    assert "batch_size" in error("bench", artifacts["elasticity"], "--scheduler", file)


def test_bench_leaves_out_what_an_artifact_cannot_do(artifacts: Artifacts) -> None:
    told = json.loads(answer("bench", artifacts["grains"], *QUICK, "--json"))
    assert {t["operation"] for t in told["timings"]} == {"forward", "jvp", "jacobian"}


def test_bench_refuses_what_was_not_compiled(artifacts: Artifacts) -> None:
    text = error("bench", artifacts["viscoplastic"], "--operation", "jacobian")
    assert "The artifact has: forward" in text
