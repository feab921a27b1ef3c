"""The processors that packages are compiled for."""

from pathlib import Path

#: Of a target: what tells Inductor and the compiler of C++ so.
TARGETS: dict[str, dict[str, str]] = {
    "x86-64-v2": {"ATEN_CPU_CAPABILITY": "default", "TORCHINDUCTOR_CPP_MARCH": "x86-64-v2"},
    "x86-64-v3": {"ATEN_CPU_CAPABILITY": "avx2", "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3"},
    "x86-64-v4": {"ATEN_CPU_CAPABILITY": "avx512", "TORCHINDUCTOR_CPP_MARCH": "x86-64-v4"},
    "native": {},
}


def portable_target() -> str:
    """The best target that also runs on this machine, and on most others."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return "x86-64-v3"
    return "x86-64-v3" if {"avx2", "fma", "bmi2"} <= set(flags) else "x86-64-v2"
