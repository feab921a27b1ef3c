"""Packages compiled again for another machine or an older system, from the C++ that they hold."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from neml2_capi._ffi.outside import require_outside
from neml2_capi._ffi.packages import entry_of, json_of
from neml2_capi._ffi.refusals import Refusal
from neml2_capi.artifact.compilers import run

_TRIPLE = re.compile(r"(x86_64|aarch64)-linux-gnu(\.2\.\d+)?")
_COMMAND = re.compile(r"// Compile cmd\n// (.+)")
_MODEL = re.compile(r": AOTInductorModelBase\(\s*\d+,\s*\d+,\s*(\d{1,18}),")
#: What Inductor calls code without vectors of a processor.
_SCALAR = "INVALID_VEC_ISA"

#: Options that clang lacks or that need libraries, and that change no result.
_OF_GCC = ("-fno-tree-loop-vectorize", "-fexcess-precision=fast", "-fopenmp")

#: Constants of a package stand in an object of their own, which is empty.
_NO_CONSTANTS = """
unsigned char _binary_constants_bin_start[64], _binary_constants_bin_end[1];
"""

#: Parallel regions run on the calling thread, as they do in any package here; zig has no OpenMP.
_OPENMP = """
#pragma once
static inline int omp_get_max_threads() { return 1; }
static inline int omp_get_num_threads() { return 1; }
static inline int omp_get_thread_num() { return 0; }
static inline int omp_in_parallel() { return 0; }
"""


class RebuildError(Refusal):
    """What cannot be compiled, and what to do."""


@dataclass(frozen=True)
class System:
    """A machine and the age of its C library: aarch64-linux-gnu.2.28."""

    name: str

    def __post_init__(self) -> None:
        if not _TRIPLE.fullmatch(self.name):
            raise RebuildError(
                f"{self.name!r} is no target of packages; expected x86_64-linux-gnu or "
                "aarch64-linux-gnu, with the version of glibc behind it if need be: "
                "aarch64-linux-gnu.2.28"
            )

    @property
    def machine(self) -> str:
        return self.name.partition("-")[0]

    @property
    def has_age(self) -> bool:
        return "." in self.name

    def compiler(self, chosen: str = "", language: Literal["c", "c++"] = "c++") -> list[str]:
        """The command of a compiler: `chosen`, else zig, else the distribution's."""
        if chosen:
            return shlex.split(chosen)
        if importlib.util.find_spec("ziglang"):
            word = {"c": "cc", "c++": "c++"}[language]
            return [sys.executable, "-m", "ziglang", word, "-target", self.name]
        if self.has_age:
            raise RebuildError(
                f"no compiler for {self.name}: an older C library needs zig: pip install ziglang, "
                f"or name a compiler with {'--cc' if language == 'c' else '--cxx'}"
            )
        return [f"{self.name}-{'gcc' if language == 'c' else 'g++'}"]


def torch_headers(python: str) -> Path:
    """The folder of headers of the torch that `python` has."""
    find = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    try:
        done = subprocess.run([python, "-c", find], capture_output=True, text=True)
    except OSError as error:
        raise RebuildError(f"{python} cannot be run: {error.strerror}") from error
    if done.returncode:
        raise RebuildError(
            f"{python} has no torch, whose headers packages need: name an interpreter that has "
            "the torch of their compilation in NEML2_CAPI_COMPILER"
        )
    return Path(done.stdout.strip()) / "include"


def holds_sources(package: Path) -> bool:
    """Tell whether a package has what rebuild() needs."""
    wrapper = entry_of(package, ".wrapper.cpp") or b""
    return bool(_COMMAND.search(wrapper.decode(errors="replace")))


def this_system() -> str:
    """The target that packages for this machine have: x86_64-linux-gnu.2.31."""
    version = platform.libc_ver()[1]
    return f"{platform.machine()}-linux-gnu" + (f".{version}" if version else "")


def rebuild(package: Path, system: System, headers: Path, cxx: str = "") -> None:
    """Compile a package again, in its place, with the flags that it was compiled with.

    Parameters
    ----------
    package : Path
        A .pt2 file with its sources, as AOTInductor writes it.
    system : System
        What it shall run on.
    headers : Path
        The folder of torch's headers, of the torch that made the package.
    cxx : str
        The compiler, with options if need be.

    Raises
    ------
    RebuildError
        The package is damaged, has no sources, has constants, was written for vectors of another
        machine, or does not compile.
    FatalError
        The package is inside the installed neml2_capi.
    """
    require_outside(package)
    entries = _entries(package)
    _require_portable(package, entries, system)
    with tempfile.TemporaryDirectory() as scratch:
        code = _code(package, entries, system, headers, Path(scratch), system.compiler(cxx))
    for name in entries:
        if name.endswith("_metadata.json"):
            document = {**_told(entries[name]), "AOTI_MACHINE": system.machine}
            entries[name] = json.dumps(document).encode()
        elif name.endswith(".wrapper.so"):
            entries[name] = code
    partial = package.with_name(f"{package.name}.part")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    partial.replace(package)


def _entries(package: Path) -> dict[str, bytes]:
    """All entries of a package. RebuildError if it is damaged, or its entries are not stored."""
    try:
        with zipfile.ZipFile(package) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise zipfile.BadZipFile("an entry is compressed")
            return {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError) as error:
        raise RebuildError(f"{package} is damaged: {error}; compile the model again") from error


def _told(content: bytes) -> dict[str, str]:
    """What a document of the package says; nothing if it is damaged."""
    document = json_of(content)
    return document if isinstance(document, dict) else {}


def _require_portable(package: Path, entries: Mapping[str, bytes], system: System) -> None:
    """RebuildError if the sources are not all, or not for this machine."""
    wrapper = next((text for name, text in entries.items() if name.endswith(".wrapper.cpp")), b"")
    text = wrapper.decode(errors="replace")
    model = _MODEL.search(text)
    if not model or not _COMMAND.search(text):
        raise RebuildError(f"{package} does not hold its sources; compile the model again")
    if int(model[1]):
        raise RebuildError(
            f"{package} has constants, which its sources do not hold; compile the model on a "
            f"machine like {system.name}"
        )
    machine = _machine(entries)
    vectors = _about(entries).get("AOTI_CPU_ISA", _SCALAR)
    if vectors != _SCALAR and machine != system.machine:
        raise RebuildError(
            f"{package} was written for {vectors} of {machine}; compile the model for "
            f"{system.machine}: neml2-capi compile INPUT.i --target {system.name}"
        )


def _about(entries: Mapping[str, bytes]) -> dict[str, str]:
    """What the package says that it was compiled for."""
    for name, content in entries.items():
        if name.endswith(".wrapper_metadata.json"):
            return _told(content)
    return {}


def _machine(entries: Mapping[str, bytes]) -> str:
    return _about(entries).get("AOTI_MACHINE", "")


def _code(
    package: Path,
    entries: Mapping[str, bytes],
    system: System,
    headers: Path,
    scratch: Path,
    compiler: Sequence[str],
) -> bytes:
    """The shared object, linked against an empty libtorch_cpu.so."""
    objects = []
    (scratch / "omp.h").write_text(_OPENMP)
    for number, (name, content) in enumerate(entries.items()):
        if not name.endswith(".cpp"):
            continue
        source = scratch / Path(name).name
        source.write_bytes(content)
        objects.append(str(scratch / f"{number}.o"))
        flags = _flags(content.decode(errors="replace"), _machine(entries) == system.machine)
        includes = [f"-I{scratch}", f"-I{headers}", f"-I{headers}/torch/csrc/api/include"]
        _run([*compiler, *flags, *includes, "-w", "-c", str(source), "-o", objects[-1]], package)
    constants, stub = scratch / "constants.cpp", scratch / "libtorch_cpu.so"
    constants.write_text(f'extern "C" {{{_NO_CONSTANTS}}}\n')
    name = "-Wl,-soname,libtorch_cpu.so"
    (scratch / "empty.cpp").touch()
    _run([*compiler, "-shared", "-fPIC", name, f"{scratch}/empty.cpp", "-o", str(stub)], package)
    made = scratch / "package.so"
    linked = ["-Wl,--no-as-needed", str(stub), "-Wl,--as-needed", "-o", str(made)]
    _run([*compiler, "-shared", "-fPIC", *objects, str(constants), *linked], package)
    return made.read_bytes()


def _flags(source: str, same_machine: bool) -> Iterator[str]:
    """The flags of the compilation, without paths and the processor of another machine."""
    match = _COMMAND.search(source)
    words = iter(match[1].split() if match else ())
    for word in words:
        if word == "-D":
            yield f"-D{next(words, '')}"
        elif word in ("-include", "-o"):
            next(words, "")
        elif word.startswith("-m"):
            if same_machine:
                yield word
        elif word.startswith(("-D", "-O", "-f", "-std=")) and word not in _OF_GCC:
            yield word


def _run(command: Sequence[str], package: Path) -> None:
    remedy = "install ziglang or g++ for that machine, or name a compiler with --cxx"
    run(command, package.name, remedy, RebuildError)
