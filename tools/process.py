"""Running other programs: quietly, with their output in a log that is shown when they fail."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.prerequisites import CACHE as _CACHE
from tools.prerequisites import ROOT as _ROOT

ROOT = Path(_ROOT)
CACHE = Path(_CACHE)
LOGS = CACHE / "logs"
TAIL = 40


class Failure(Exception):
    """Something that the user must know; the message says what to do."""


Command = Sequence[str | Path]


def child_variables(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of child processes: no package of the caller's leaks in."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    return {**kept, "PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **(extra or {})}


def quietly(title: str, command: Command, extra: Mapping[str, str] | None = None) -> str:
    """Run to the end and return the output. A failure shows its last lines."""
    print(f"{title} ... ", end="", flush=True)
    start = time.monotonic()
    result = subprocess.run(
        command,
        cwd=ROOT,
        env=child_variables(extra),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    print(f"{time.monotonic() - start:.0f} s" if result.returncode == 0 else "failed", flush=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / (re.sub(r"\W+", "-", title).strip("-").lower() + ".log")
    shown = " ".join(str(part) for part in command)
    log.write_text(f"{shown}\n\n{result.stdout}", encoding="utf-8")
    if result.returncode:
        tail = "\n".join(result.stdout.rstrip().splitlines()[-TAIL:])
        raise Failure(f"{tail}\n\nThat is the end of {log}, which has the whole output.")
    return result.stdout


def jobs() -> str:
    """How many processes work side by side, for the commands that ask."""
    return str(len(os.sched_getaffinity(0)))


def openly(command: Command, extra: Mapping[str, str] | None = None) -> int:
    """Run with the output on the terminal, and return the exit status."""
    return subprocess.run(command, cwd=ROOT, env=child_variables(extra)).returncode
