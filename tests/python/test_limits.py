"""Limits of a batch system, in Python: errors of this library, which name the limit."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from conftest import Artifacts
from patience import PATIENCE

pytestmark = pytest.mark.numbers

BEGIN = """
import resource, sys
import numpy as np
from neml2_capi import FatalError, Model, experiments, sweep, drive
from functools import partial

def limit(kind, most):
    resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))

def refused(call, *words):
    try:
        call()
    except FatalError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("nothing was refused")

ARTIFACT = sys.argv[1]
TIMES, STRAIN = np.linspace(0, 1, 21), np.linspace(0, 1e-3, 21)[:, None] * np.eye(6)[0]
"""


def run(artifacts: Artifacts, folder: Path, body: str) -> None:
    """Run a script in a folder of its own: it must end well."""
    script = folder / "script.py"
    script.write_text(BEGIN + dedent(body))
    command = [sys.executable, str(script), str(artifacts["elasticity"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_FSIZE)[1] == 0, reason="no file at all")
def test_a_model_opens_where_no_file_may_be_written(artifacts: Artifacts, tmp_path: Path) -> None:
    run(
        artifacts,
        tmp_path,
        """
        limit(resource.RLIMIT_FSIZE, 1024)
        outputs = Model(ARTIFACT)(strain=np.full((2, 6), 1e-3))
        assert np.isfinite(outputs["stress"]).all()
        """,
    )


def test_what_cannot_be_saved_names_the_limit(artifacts: Artifacts, tmp_path: Path) -> None:
    run(
        artifacts,
        tmp_path,
        """
        results = drive(Model(ARTIFACT), TIMES, {"strain": STRAIN})
        limit(resource.RLIMIT_FSIZE, 512)
        words = "ulimit -f is 512 bytes", "may not be so large"
        refused(lambda: results.save("results.npz"), *words)
        refused(lambda: results.save("results.csv"), *words)
        run = partial(drive, Model(ARTIFACT), TIMES, {"strain": STRAIN})
        sets = {"E": np.linspace(1e5, 2e5, 40)}
        refused(lambda: sweep(run, sets, directory="swept"), *words)
        limit(resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)
        assert len(sweep(run, sets, directory="swept")["stress"]) == 40
        """,
    )


def test_what_was_saved_before_stays_where_nothing_can_be_saved(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    run(
        artifacts,
        tmp_path,
        """
        import os
        from click.testing import CliRunner
        from neml2_capi import Results
        from neml2_capi.cli.commands import neml2_capi
        results = drive(Model(ARTIFACT), TIMES, {"strain": STRAIN})
        for name in "results.npz", "results.csv", "libsteel.so":
            results.save(name) if "results" in name else open(name, "w").close()
        table = open("results.csv").read()
        before = sorted(os.listdir())
        limit(resource.RLIMIT_FSIZE, 512)
        words = "ulimit -f is 512 bytes", "may not be so large"
        refused(lambda: results.save("results.npz"), "results.npz", *words)
        refused(lambda: results.save("results.csv"), "results.csv", *words)
        for command in (
            ["umat", ARTIFACT, "--output", "steel.nml"],
            ["run", "--template", ARTIFACT, "--output", "run.toml"],
            ["plugin", ARTIFACT, "-o", "libsteel.so"],
        ):
            done = CliRunner().invoke(neml2_capi, command)
            assert done.exit_code == 1 and done.output.count("Error: ") == 1, done.output
            assert command[-1] in done.output and words[0] in done.output, done.output
        assert sorted(os.listdir()) == before and open("results.csv").read() == table
        np.testing.assert_array_equal(Results.load("results.npz")["stress"], results["stress"])
        """,
    )
