"""Objects of kernels, from their sources by any C compiler, without NEML2 and torch."""

from __future__ import annotations

import os
import platform
import shlex
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neml2_capi._ffi.outside import require_outside
from neml2_capi.artifact.compilers import run
from neml2_capi.artifact.lock import locked
from neml2_capi.artifact.targets import level_here
from neml2_capi.kernels.folder import (
    HEADERS,
    C,
    KernelError,
    checksum,
    checksum_of_metadata,
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
#: What is built if nothing is asked for, on this kind of machine.
DEFAULT_TARGETS = tuple(n for n, t in TARGETS.items() if t.machine == platform.machine())
#: The processor of this machine alone.
NATIVE = "native"


def build(
    folder: Path, targets: Sequence[str] = (), cc: str = "", *, lanes: int = 0, jobs: int = 0
) -> list[Path]:
    """Compile the kernels of a folder, and note the objects in its metadata.

    An artifact's metadata.json is taken as it is: its checksum is noted, too.

    Parameters
    ----------
    folder : Path
        A folder with kernels.json.
    targets : Sequence[str]
        Names of TARGETS, or "native": the best that this processor runs, and the narrower one for
        few points if its blocks are of eight. All of this kind of machine if none is given.
    cc : str
        The compiler, with options if need be; $CC, else cc.
    lanes : int
        Points in a block, a power of 2; 0 for the target's own.
    jobs : int
        Compilers at a time; 0 for one per processor.

    Returns
    -------
    list[Path]
        The objects, TARGET.so.

    Raises
    ------
    KernelError
        There is no such compiler or target, a source is not as kernels.json says, or it does not
        compile.
    FatalError
        The folder is inside the installed package.
    """
    require_outside(folder)
    with locked(lock_of(folder), wait=True):
        return _build_all(folder, targets, cc, lanes, jobs)


def _build_all(folder: Path, targets: Sequence[str], cc: str, lanes: int, jobs: int) -> list[Path]:
    document = read_metadata(folder)
    require_sources(folder, document)
    if (now := checksum_of_metadata(folder)) is not None:
        document["metadata_checksum"] = now
    names = _named(targets or DEFAULT_TARGETS)
    made = []
    for name in names:
        path = folder / f"{name}.so"
        entry = _build(folder, document, name, cc, lanes, jobs)
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
    best = "aarch64" if platform.machine() == "aarch64" else level_here()
    if best not in TARGETS:
        raise KernelError(
            f"this machine, {best or platform.machine()}, is none of {', '.join(TARGETS)}: kernels "
            "run on these alone"
        )
    return [best, "x86-64-v3"] if best == "x86-64-v4" else [best]


def compiler(target: Target, cc: str = "") -> list[str]:
    """The command of a compiler: the one asked for, a cross compiler, $CC, or cc."""
    foreign = target.machine != platform.machine()
    chosen = cc or (target.cross if foreign else os.environ.get("CC", "")) or "cc"
    return shlex.split(chosen)


def _march(target: Target, command: Sequence[str]) -> str:
    """The name of a target's processor; zig has names of its own."""
    if not any(Path(word).stem in ("zig", "ziglang") for word in command):
        return target.march
    return "generic" if target.machine == "aarch64" else target.march.replace("-", "_")


def _build(
    folder: Path, document: dict[str, Any], name: str, cc: str, lanes: int, jobs: int
) -> dict[str, Any]:
    target = TARGETS[name]
    command = compiler(target, cc)
    singles = any(kernel["real"] == "float32" for kernel in document["kernels"])
    width = lanes or target.lanes * (2 if singles else 1)
    flags = [*FLAGS, f"-march={_march(target, command)}", f"-DNEML2_KERNEL_LANES={width}"]
    sources = [*(kernel["source"] for kernel in document["kernels"]), "kernels.c"]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        objects = [f"{Path(scratch).absolute()}/{source}.o" for source in sources]

        def compile_one(pair: tuple[str, str]) -> None:
            source, made = pair
            shared = ["-DNEML2_KERNELS_SHARED"] if source == "kernels.c" else []
            # By its name alone, so that a cache of compilers finds it in any folder.
            given = ["-c", source, "-I", str(C), "-o", made]
            _run([*command, *flags, *shared, *given], source, folder)

        with ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
            list(pool.map(compile_one, zip(sources, objects, strict=True)))
        library = Path(scratch) / f"{name}.so"
        _run([*command, "-shared", "-o", str(library), *objects], library.name)
        library.chmod(0o755)
        library.replace(folder / library.name)
    version = _run([*command, "--version"], "--version").splitlines()
    return {
        "file": f"{name}.so",
        "target": name,
        "machine": target.machine,
        "lanes": width,
        "compiler": version[0] if version else command[0],
        "flags": flags,
        "checksum": checksum(folder / f"{name}.so"),
        "size": (folder / f"{name}.so").stat().st_size,
    }


def _run(command: Sequence[str], what: str, folder: Path | None = None) -> str:
    remedy = "install gcc or clang, or name a compiler with --cc"
    return run(command, what, remedy, KernelError, folder)


def require_sources(folder: Path, document: dict[str, Any]) -> None:
    """KernelError if a file is missing, or is not the one that was written."""
    known = {kernel["source"]: kernel["source_checksum"] for kernel in document["kernels"]}
    for name, expected in {**document["headers"], **known}.items():
        path = folder / name
        if name in HEADERS and not path.is_file():
            path = C / name
        if not path.is_file():
            raise KernelError(
                f"{path}, which kernels.json names, is missing; compile the model again"
            )
        if checksum(path) != expected:
            raise KernelError(
                f"{path} was changed since it was written, by its checksum in kernels.json; "
                "compile the model again, or put the file back"
            )
