"""The command neml2-capi, as tests call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import CliRunner

from neml2_capi.cli.commands import neml2_capi

Done = subprocess.CompletedProcess[str]


def command(*arguments: str | Path, **variables: str) -> Done:
    """Run neml2-capi: in this process, or in another one with these variables of its environment.

    A process costs a third of a second, most of it for imports.
    """
    words = list(map(str, arguments))
    if variables:
        return process(*words, **variables)
    done = CliRunner().invoke(neml2_capi, words, prog_name="neml2-capi")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def process(*arguments: str | Path, **variables: str) -> Done:
    """Run neml2-capi in a process of its own, as a user does."""
    program = [sys.executable, "-m", "neml2_capi.cli", *map(str, arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(program, capture_output=True, text=True, env=environment)


def answer(*arguments: str | Path) -> str:
    """What it prints if all is well."""
    done = command(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    return done.stdout


def error(*arguments: str | Path, **variables: str) -> str:
    """The one line that it says of what is wrong."""
    done = command(*arguments, **variables)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    return line


def findings(path: Path, *options: str) -> list[dict[str, str]]:
    """What `neml2-capi doctor` says of an artifact."""
    done = command("doctor", path, "--json", *options)
    document = json.loads(done.stdout)
    assert not done.stderr
    assert done.returncode == (1 if document["findings"] else 0)
    assert document["will_run"] == (not document["findings"])
    found: list[dict[str, str]] = document["findings"]
    return found
