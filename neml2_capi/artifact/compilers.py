"""Runs of a compiler; an error has its first messages."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


def run(
    command: Sequence[str],
    what: str,
    remedy: str,
    error: type[Exception],
    folder: Path | None = None,
) -> str:
    """Run a compiler on `what` in a folder, and return what it prints.

    If it cannot be run or fails, `error` is raised; `remedy` says how one is had.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    except OSError as reason:
        raise error(
            f"the compiler {command[0]} cannot be run: {reason.strerror}; {remedy}"
        ) from reason
    if done.returncode:
        said = "\n".join(done.stderr.splitlines()[:10])
        raise error(f"{command[0]} does not compile {what}:\n{said}")
    return done.stdout
