"""Which files a program opens, by its system calls."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

_PATH = re.compile(r'(?:open|openat|access|execve|readlink|stat)\w*\([^"\n]*"([^"]+)"')
_SYSTEM = ("/lib", "/usr", "/etc", "/proc", "/sys", "/dev")


def tracer(trace: Path) -> list[str]:
    """What to put before a command, whose system calls are written to `trace`."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace was not found")
    return [strace, "-f", "-e", "trace=%file", "-o", str(trace)]


def opened(trace: Path, folder: Path) -> set[Path]:
    """The files that were asked for and are there, but not the system's.

    `folder` is where the program ran.
    """
    paths = {path for path in _PATH.findall(trace.read_text()) if not path.startswith(_SYSTEM)}
    return {path for path in ((folder / name).resolve() for name in paths) if path.is_file()}
