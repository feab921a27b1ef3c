"""The processors that packages are compiled for."""

import platform
from pathlib import Path

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


def portable_target() -> str:
    """The best target that also runs on this machine, and on most others."""
    if platform.machine() != "x86_64":
        return "native"
    return "x86-64-v2" if level_here() in ("x86-64", "x86-64-v2") else "x86-64-v3"


def level_here() -> str:
    """The processor of this machine as compilers name it; "" if the system does not say."""
    if platform.machine() != "x86_64":
        return platform.machine()
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
