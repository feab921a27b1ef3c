"""What packages ask of a machine, and what this one has."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass, field
from pathlib import Path

from neml2_capi._ffi.library import ffi
from neml2_capi._ffi.packages import entry_of
from neml2_capi.artifact.files import read_package
from neml2_capi.artifact.shared_object import newest, read_object
from neml2_capi.artifact.targets import level_here

#: Every package opens these, or the library stands for them.
_USUAL = re.compile(
    r"(libtorch|libc10|libc\.|libm\.|libstdc\+\+|libgcc_s|ld-linux|libgomp|libi?omp)"
)
_SHIM = re.compile(r"(?!_Z)(\w+?)aoti_torch_\w+")


@dataclass(frozen=True)
class Needs:
    """What a package asks for, or what a machine has; "" if it is not known."""

    #: The file, or "this machine".
    name: str
    machine: str = ""
    #: "AVX2 x86-64-v3": by Inductor's name, and the processor that the compiler was told.
    instruction_sets: str = ""
    #: The newest version of the C library that a symbol has.
    glibc: str = ""
    #: The newest version of the C++ library: "3.4.30".
    glibcxx: str = ""
    #: Libraries that not every package opens; of a machine, the ones of these that it has.
    libraries: list[str] = field(default_factory=list)
    #: What stands before the names of torch's functions: torch's option shim_symbol_prefix.
    shim_prefix: str = ""


def needs_of(path: Path) -> Needs:
    """What a package asks for. A damaged one says nothing."""
    about = read_package(path)
    code = read_object(entry_of(path, ".wrapper.so") or b"")
    prefixes = (match[1] for match in map(_SHIM.fullmatch, code.undefined) if match)
    return Needs(
        path.name,
        code.machine or about.machine,
        " ".join(filter(None, (about.instruction_sets, about.march))),
        code.versions.get("GLIBC", ""),
        code.versions.get("GLIBCXX", ""),
        [name for name in code.libraries if not _USUAL.match(name)],
        next(prefixes, ""),
    )


def this_machine(libraries: list[str]) -> Needs:
    """What this machine has, of `libraries` and else."""
    name, _, version = (_c_library() or "").partition(" ")
    return Needs(
        "this machine",
        platform.machine(),
        level_here(),
        version if name == "glibc" else "",
        _cxx_library(),
        [library for library in libraries if _opens(library)],
    )


def _c_library() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def _cxx_library() -> str:
    """The newest version of libstdc++ that this system's has."""
    if not _opens("libstdc++.so.6"):
        return ""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"(/\S*/libstdc\+\+\.so[.\d]*)$", maps, re.MULTILINE)
    if not found:
        return ""
    names = re.findall(rb"GLIBCXX_[\d.]+(?=\0)", Path(found[1]).read_bytes())
    return newest(name.decode() for name in names).get("GLIBCXX", "")


def _opens(library: str) -> bool:
    try:
        ffi.dlopen(library)
    except OSError:
        return False
    return True
