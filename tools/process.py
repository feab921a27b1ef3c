"""Running other programs: quietly, with their output in a log that is shown when they fail."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tools.prerequisites import CACHE as _CACHE
from tools.prerequisites import ROOT as _ROOT

ROOT = Path(_ROOT)
CACHE = Path(_CACHE)
LOGS = CACHE / "logs"
TAIL = 40

# Seconds that each step took the last time.
_DURATIONS = CACHE / "durations.json"
# "[12/340] Building ...", as Ninja counts.
_STEP = re.compile(r"^\[(\d+)/(\d+)\] ")


# "file.cpp:3:7: warning: unused variable", with or without colours.
_WARNING = re.compile(r":\d+:\d+: .{0,12}warning: ")


class Failure(Exception):
    """Something that the user must know; the message says what to do."""


Command = Sequence[str | Path]


def child_variables(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of child processes: no package of the caller's leaks in."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    return {**kept, "PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **(extra or {})}


def quietly(
    title: str,
    command: Command,
    extra: Mapping[str, str] | None = None,
    repeats: bool = True,
) -> str:
    """Run to the end and return the output. A failure shows its last lines.

    Says how long a step that `repeats` took the last time on this machine, how far it is, if Ninja
    counts, and which warnings a compiler gave.
    """
    usual = _durations().get(title, 0.0) if repeats else 0.0
    about = f" (about {duration(usual)})" if usual >= 10 else ""
    print(f"{title}{about} ... ", end="", flush=True)
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=child_variables(extra),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    lines = []
    told = 0
    for line in process.stdout or ():
        lines.append(line)
        if step := _STEP.match(line):
            percent = 100 * int(step[1]) // int(step[2])
            if percent >= told + 20 and percent < 100:
                told = percent
                print(f"{percent} % ", end="", flush=True)
    output = "".join(lines)
    status = process.wait()
    took = time.monotonic() - start
    print(duration(took) if status == 0 else "failed", flush=True)
    if status == 0:
        print("".join(line for line in lines if _WARNING.search(line)), end="", flush=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / (re.sub(r"\W+", "-", title).strip("-").lower() + ".log")
    shown = " ".join(str(part) for part in command)
    log.write_text(f"{shown}\n\n{output}", encoding="utf-8")
    if status:
        tail = "\n".join(output.rstrip().splitlines()[-TAIL:])
        raise Failure(f"{tail}\n\nThat is the end of {log}, which has the whole output.")
    if took >= 10 and repeats:
        _DURATIONS.write_text(json.dumps({**_durations(), title: round(took)}, indent=1))
    return output


def _durations() -> dict[str, float]:
    try:
        known: dict[str, float] = json.loads(_DURATIONS.read_text())
    except (OSError, ValueError):
        return {}
    return known


def duration(seconds: float) -> str:
    """A length of time as people say it: 45 s, 3:20 min."""
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60}:{whole % 60:02} min"


def jobs() -> str:
    """Return the number of processes that work side by side."""
    return str(len(os.sched_getaffinity(0)))


def openly(command: Command, extra: Mapping[str, str] | None = None) -> int:
    """Run with the output on the terminal, and return the exit status."""
    return subprocess.run(command, cwd=ROOT, env=child_variables(extra)).returncode


def run_check(findings: Callable[[Path], Iterable[str]], folder: Path) -> None:
    """Check `folder`, or the one that the command names; exit with what is found, if anything."""
    chosen = Path(sys.argv[1]) if sys.argv[1:] else folder
    sys.exit("\n".join(findings(chosen)) or None)
