"""A model loaded and evaluated once in a process of its own, so that a crash is an answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi import Error, Model
from neml2_capi._rest import plausible
from neml2_capi.cli.findings import Finding
from neml2_capi.kernels.folder import KernelError, folders

_LONGEST = 600.0  # seconds
_POINTS = 2


@dataclass(frozen=True)
class Trial:
    """What became of it."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def attempt(path: Path, dtype: str) -> Trial:
    """Load the artifact and evaluate it in a child process."""
    arguments = [sys.executable, "-m", __name__, str(path), dtype]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        return _failed(path, f"it did not end within {_LONGEST:.0f} s", "Look where it hangs.")
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return _failed(
            path,
            f"the process that ran it ended by {name}",
            "An instruction that this processor lacks, perhaps: compile again with neml2-capi "
            "compile, whose target is portable."
            if name == "SIGILL"
            else "Please report it, with the artifact.",
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return _failed(path, last, "The message says what was expected.")
    answer = json.loads(done.stdout.splitlines()[-1])
    return Trial(notes=[answer["note"]])


def _failed(path: Path, problem: str, mend: str) -> Trial:
    return Trial(findings=[Finding(path.name, problem, mend)])


def _evaluate(path: str, dtype: str) -> str:
    with Model(path, dtype=dtype) as model:
        inputs = plausible(model, _POINTS)
        outputs, report = model.evaluate(inputs)
        route = _route(Path(path), model, inputs)
    failed = int(np.count_nonzero(report["status"]))
    if failed:
        return (
            f"it was loaded and evaluated{route}; {failed} of {_POINTS} points with made-up inputs "
            "did not converge, which says nothing of yours"
        )
    if not all(np.isfinite(value).all() for value in outputs.values()):
        return f"it was loaded and evaluated{route}; made-up inputs gave values that are not finite"
    return f"it was loaded and evaluated{route}: {_POINTS} points with made-up inputs"


def _route(path: Path, model: Model, inputs: Mapping[str, Any]) -> str:
    """Whether it runs on its kernels, or why not; empty if it has none."""
    try:
        folders(path)
        model.options["kernels"] = "required"
        model.evaluate(inputs)
    except KernelError:
        return ""
    except Error as reason:
        return f" on its packages ({reason})"
    return " on its kernels"


if __name__ == "__main__":
    try:
        print(json.dumps({"note": _evaluate(*sys.argv[1:])}))
    except Error as error:
        print(" ".join(str(error).splitlines()), file=sys.stderr)
        sys.exit(1)
