"""Facts of the machine that numbers belong to, and the processor time of its children."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import neml2_capi


def machine(reference: Path | None) -> dict[str, Any]:
    """The processor, compiler and versions that the numbers belong to; no name, no path."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True).stdout
    known = {
        "processor": cpu[1] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "compiler": compiler.partition("\n")[0],
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "neml2_capi": neml2_capi.__version__,
    }
    if reference:
        query = "from importlib.metadata import version as v; print(v('neml2'), v('torch'))"
        answer = subprocess.run([reference, "-c", query], capture_output=True, text=True).stdout
        known |= dict(zip(("neml2", "torch"), answer.split(), strict=False))
    return known


def children() -> float:
    """The processor seconds of the processes that this one began and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
