"""Objects of kernels, from their sources by any C compiler, without NEML2 and torch."""

from __future__ import annotations

import importlib.util
import os
import shlex
import struct
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neml2_capi._ffi.outside import require_outside
from neml2_capi.artifact.compilers import run
from neml2_capi.artifact.lock import locked
from neml2_capi.artifact.targets import SYSTEM, level_here, machine, processors
from neml2_capi.kernels.folder import (
    HEADERS,
    C,
    KernelError,
    checksum,
    checksum_of_metadata,
    in_single_precision,
    lock_of,
    read_metadata,
    write_metadata,
)

#: IEEE arithmetic, no fused multiply-add: results have the same bits from every compiler.
FLAGS = (
    "-std=c99",
    "-O2",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-fvisibility=hidden",
    "-Wno-psabi",
)
# Flags of some sources, beside the flags of all.
_OWN_FLAGS = {"kernels.c": ["-DNEML2_KERNELS_SHARED"], "windows.c": ["-fno-builtin"]}
# Flags of a library for Windows: windows.c is its whole start code.
_ALONE = ["-s", "-nostdlib", "-Wl,-e,neml2_kernels_entry"]


@dataclass(frozen=True)
class Target:
    """A kind of processor: the compiler's flags, and how many doubles make a block."""

    march: str
    machine: str
    lanes: int
    #: A compiler for it on other machines.
    cross: str = ""


TARGETS = {
    "x86-64-v2": Target("x86-64-v2", "x86_64", 4),
    "x86-64-v3": Target("x86-64-v3", "x86_64", 4),
    "x86-64-v4": Target("x86-64-v4", "x86_64", 8),
    "aarch64": Target("armv8-a", "aarch64", 4, "aarch64-linux-gnu-gcc"),
}


@dataclass(frozen=True)
class System:
    """A system that loads objects: the end of their names, and what their first bytes are."""

    suffix: str
    magic: bytes
    #: The target of zig, by machine.
    zig: Mapping[str, str] = field(default_factory=dict)


SYSTEMS = {
    "linux": System(".so", b"\x7fELF"),
    "windows": System(".dll", b"MZ", {m: f"{m}-windows-gnu" for m in ("x86_64", "aarch64")}),
    # The oldest of each machine that there are wheels for.
    "macos": System(
        ".dylib",
        b"\xcf\xfa\xed\xfe",
        {"x86_64": "x86_64-macos.10.15", "aarch64": "aarch64-macos.11.0"},
    ),
}
#: What is built if nothing is asked for, on this kind of machine.
DEFAULT_TARGETS = tuple(n for n, t in TARGETS.items() if t.machine == machine())
#: The same, for another system than this one.
ELSEWHERE = ("x86-64-v2", "x86-64-v3", "aarch64")
#: The processor of this machine alone.
NATIVE = "native"


def build(
    folder: Path,
    targets: Sequence[str] = (),
    cc: str = "",
    *,
    lanes: int = 0,
    jobs: int = 0,
    system: str = SYSTEM,
) -> list[Path]:
    """Compile the kernels of a folder, and note the objects in its metadata.

    An artifact's metadata.json is taken as it is: its checksum is noted, too.

    Parameters
    ----------
    folder : Path
        A folder with kernels.json.
    targets : Sequence[str]
        Names of TARGETS, or "native": the best that this processor runs, and the narrower one for
        few points if its blocks are of eight. All of this kind of machine if none is given; of
        another system ELSEWHERE.
    cc : str
        The compiler, with options if need be; $CC, else cc. For another system zig.
    lanes : int
        Points in a block, a power of 2; 0 for the target's own.
    jobs : int
        Compilers at a time; 0 for one per processor.
    system : str
        A name of SYSTEMS: which one loads the objects.

    Returns
    -------
    list[Path]
        The objects: TARGET.so, of Windows TARGET.dll, of macOS TARGET.dylib.

    Raises
    ------
    KernelError
        There is no such compiler or target, a source is not as kernels.json says, or it does not
        compile.
    FatalError
        The folder is inside the installed package.
    """
    require_outside(folder)
    made = []
    with locked(lock_of(folder), wait=True):
        document = read_metadata(folder)
        require_sources(folder, document)
        if (now := checksum_of_metadata(folder)) is not None:
            document["metadata_checksum"] = now
        names = _named(targets or (DEFAULT_TARGETS if system == SYSTEM else ELSEWHERE))
        for name in names:
            path = folder / f"{name}{SYSTEMS[system].suffix}"
            entry = _build(folder, document, name, cc, lanes, jobs, system)
            document["objects"] = [o for o in document["objects"] if o["file"] != path.name]
            document["objects"].append(entry)
            write_metadata(folder, document)
            made.append(path)
    return made


def _named(targets: Sequence[str]) -> list[str]:
    """The names of TARGETS that are asked for, each once."""
    names: list[str] = []
    for name in targets:
        if name != NATIVE and name not in TARGETS:
            raise KernelError(
                f"there is no target {name!r}; choose of {', '.join(TARGETS)}, native"
            )
        names += _native() if name == NATIVE else [name]
    return list(dict.fromkeys(names))


def _native() -> list[str]:
    best = "aarch64" if machine() == "aarch64" else level_here()
    if best not in TARGETS:
        raise KernelError(
            f"this machine, {best or machine()}, is none of {', '.join(TARGETS)}: kernels "
            "run on these alone"
        )
    return [best, "x86-64-v3"] if best == "x86-64-v4" else [best]


def compiler(target: Target, cc: str = "", system: str = SYSTEM) -> list[str]:
    """The command of a compiler: the one asked for, zig or a cross compiler, $CC, or cc."""
    if system != SYSTEM and not cc:
        if not (goal := SYSTEMS[system].zig.get(target.machine)):
            raise KernelError(f"name a compiler for {system} with --cc")
        if not importlib.util.find_spec("ziglang"):
            raise KernelError(
                f"zig compiles kernels for {system}, and is not installed: python3 -m pip install "
                f'ziglang; or name a clang with --cc, "clang --target={goal}"'
            )
        return [sys.executable, "-m", "ziglang", "cc", "-target", goal]
    foreign = target.machine != machine()
    chosen = cc or (target.cross if foreign else os.environ.get("CC", "")) or "cc"
    return shlex.split(chosen)


def _march(target: Target, command: Sequence[str]) -> str:
    """The name of a target's processor; zig has names of its own."""
    if not any(Path(word).stem in ("zig", "ziglang") for word in command):
        return target.march
    return "generic" if target.machine == "aarch64" else target.march.replace("-", "_")


def _build(
    folder: Path,
    document: dict[str, Any],
    name: str,
    cc: str,
    lanes: int,
    jobs: int,
    system: str,
) -> dict[str, Any]:
    target, file = TARGETS[name], f"{name}{SYSTEMS[system].suffix}"
    command = compiler(target, cc, system)
    with tempfile.TemporaryDirectory() as aside:  # zig leaves a file in its folder
        told = _run([*command, "--version"], "--version", Path(aside))
    version = next(iter(told.splitlines()), command[0])
    if system == "windows" and "clang" not in version:
        raise KernelError(
            f"{version} cannot compile kernels for Windows, where the stack of gcc is not aligned "
            "for vectors of 32 bytes (GCC's bug 54412): name zig or clang with --cc"
        )
    width = lanes or target.lanes * (2 if in_single_precision(document) else 1)
    flags = [*FLAGS, f"-march={_march(target, command)}", f"-DNEML2_KERNEL_LANES={width}"]
    sources = [*(kernel["source"] for kernel in document["kernels"]), "kernels.c"]
    if system == "windows":
        sources.append(str(C / "windows.c"))
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        objects = [f"{Path(scratch).absolute()}/{Path(source).name}.o" for source in sources]

        def compile_one(pair: tuple[str, str]) -> None:
            source, made = pair
            own = _OWN_FLAGS.get(Path(source).name, [])
            # By its name alone, so that a cache of compilers finds it in any folder.
            given = ["-c", source, "-I", str(C), "-o", made]
            _run([*command, *flags, *own, *given], source, folder)

        with ThreadPoolExecutor(jobs or processors()) as pool:
            list(pool.map(compile_one, zip(sources, objects, strict=True)))
        library = Path(scratch) / file
        alone = _ALONE if system == "windows" else []
        if system == "macos":  # no path of this machine
            alone = ["-Wl,-S", f"-Wl,-install_name,@rpath/{file}"]
        _run([*command, "-shared", *alone, "-o", str(library), *objects], library.name)
        if not library.read_bytes().startswith(SYSTEMS[system].magic):
            goal = SYSTEMS[system].zig.get(target.machine, system)
            raise KernelError(
                f"{command[0]} did not compile for {system}: name its target with --cc, "
                f'"{command[0]} --target={goal}"'
            )
        if system == "windows":
            library.write_bytes(_without_time(library.read_bytes()))
        library.chmod(0o755)
        library.replace(folder / library.name)
    return {
        "file": file,
        "target": name,
        "machine": target.machine,
        **({} if system == "linux" else {"system": system}),
        "lanes": width,
        "compiler": version,
        "flags": flags,
        "checksum": checksum(folder / file),
        "size": (folder / file).stat().st_size,
    }


def _without_time(library: bytes) -> bytes:
    """A library for Windows without the time at which it was linked."""
    (header,) = struct.unpack_from("<I", library, 0x3C)
    at = header + 8  # TimeDateStamp of Microsoft's "COFF File Header", behind the signature
    return library[:at] + bytes(4) + library[at + 4 :]


def _run(command: Sequence[str], what: str, folder: Path | None = None) -> str:
    remedy = "install gcc or clang, or name a compiler with --cc"
    return run(command, what, remedy, KernelError, folder)


def require_sources(folder: Path, document: dict[str, Any]) -> None:
    """KernelError if a file is missing, or is not the one that was written."""
    known = {kernel["source"]: kernel["source_checksum"] for kernel in document["kernels"]}
    for name, expected in {**document["headers"], **known}.items():
        path = folder / name
        if ours := name in HEADERS and not path.is_file():
            path = C / name
        if not path.is_file():
            raise KernelError(
                f"{path}, which kernels.json names, is missing; compile the model again"
            )
        if checksum(path) != expected and ours:
            raise KernelError(
                f"the kernels in {folder} were written by another release of neml2_capi, with "
                f"another {name} than this one has, by its checksum in kernels.json; compile the "
                "model again"
            )
        if checksum(path) != expected:
            raise KernelError(
                f"{path} was changed since it was written, by its checksum in kernels.json; "
                "compile the model again, or put the file back"
            )
