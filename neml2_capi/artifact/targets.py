"""The processors and systems that machine code of an artifact is for."""

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: This system, as kernels.json names it.
SYSTEM = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")

#: Of a target: what tells Inductor and the compiler of C++ so.
TARGETS: dict[str, dict[str, str]] = {
    "x86-64-v2": {"ATEN_CPU_CAPABILITY": "default", "TORCHINDUCTOR_CPP_MARCH": "x86-64-v2"},
    "x86-64-v3": {"ATEN_CPU_CAPABILITY": "avx2", "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3"},
    "x86-64-v4": {"ATEN_CPU_CAPABILITY": "avx512", "TORCHINDUCTOR_CPP_MARCH": "x86-64-v4"},
    "native": {},
}


#: What Linux calls an instruction set of each level that the one before lacks.
_LEVELS = {
    "x86-64-v2": {"ssse3", "sse4_1", "sse4_2", "popcnt"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}


def machine() -> str:
    """The kind of this machine's processor, "x86_64" or "aarch64", by one name on all systems."""
    name = platform.machine()
    return {"AMD64": "x86_64", "ARM64": "aarch64", "arm64": "aarch64"}.get(name, name)


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def portable_target() -> str:
    """The best target that also runs on this machine, and on most others."""
    if machine() != "x86_64":
        return "native"
    return "x86-64-v2" if level_here() in ("x86-64", "x86-64-v2") else "x86-64-v3"


def level_here() -> str:
    """The processor of this machine as compilers name it; "" if the system does not say."""
    if machine() != "x86_64":
        return machine()
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return ""
    level = "x86-64"
    for name, wanted in _LEVELS.items():
        if not wanted <= flags:
            break
        level = name
    return level


def runs_here(entry: Mapping[str, Any]) -> bool:
    """Tell whether an object of kernels, an entry of kernels.json, is for this machine."""
    if (entry.get("system", "linux"), entry["machine"]) != (SYSTEM, machine()):
        return False
    levels = list(TARGETS)
    here = level_here() or "x86-64-v2"  # of a system that does not say
    if entry["target"] not in levels or here not in levels:
        return bool(entry["target"] == here)
    return levels.index(entry["target"]) <= levels.index(here)
