"""Wheels for other machines and older C libraries, cross-compiled by zig."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from pathlib import Path

from tools.environments import Environment, build_requirements, locked, prepare, requirements
from tools.process import CACHE, ROOT, Command, Failure, quietly
from tools.wheel import built_wheel, source_digest

# Of all files in a wheel: the earliest that a zip archive can tell, so that two builds are alike.
_EPOCH = "315532800"


# Tags of wheels, and the targets of zig that they stand for.
PLATFORMS = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "win_amd64": "x86_64-windows-gnu",
    "win_arm64": "aarch64-windows-gnu",
    "macosx_10_15_x86_64": "x86_64-macos.10.15",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
}
#: The core is all that there is on other systems: packages are Linux's.
_CORE = {"NEML2_CAPI_BACKENDS": "", "CMAKE_BUILD_TYPE": "Release", "NEML2_CAPI_WERROR": "ON"}
_PRESETS = {"win_amd64": "core-windows"}
#: What makes a wheel, beside its sources.
_TOOLS = ("tools/platforms.py", "tools/macho.py", "tools/coff.py")


def cross_environment() -> Environment:
    """Return the environment with zig, and with what checks a wheel."""
    return prepare("cross", [*build_requirements(), *requirements("cross")])


def platform_wheel(tag: str) -> Path:
    """Return the wheel of the sources as they are for a platform.

    One whose libraries ask for more than the tag promises is not written.
    """
    builder = cross_environment()
    digest = source_digest("README.md", "constraints.txt", *_TOOLS)
    folder = CACHE / "wheels" / f"{digest}-{tag}"
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            _write(tag, builder, folder)
    return next(folder.glob("*.whl"))


def zig(builder: Environment) -> Path:
    """Return the program."""
    return next(builder.folder.glob("lib/python*/site-packages/ziglang/zig"))


def zig_variables(builder: Environment, target: str) -> dict[str, str]:
    """Return the variables that cmake/zig.cmake reads."""
    cache = {name: str(CACHE / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    return {**builder.variables, **cache, "ZIG": str(zig(builder)), "ZIG_TARGET": target}


def cross_options(builder: Environment) -> dict[str, str]:
    """Return the definitions that make CMake compile with zig."""
    return {
        "CMAKE_TOOLCHAIN_FILE": str(ROOT / "cmake" / "zig.cmake"),
        "Python_EXECUTABLE": str(builder.python),
        "NEML2_CAPI_PRECOMPILE": "ON",
    }


def _write(tag: str, builder: Environment, folder: Path) -> None:
    part = Path(f"{folder}.part")
    shutil.rmtree(part, ignore_errors=True)
    elsewhere = not PLATFORMS[tag].partition("-")[2].startswith("linux")
    # The core's folder is that of its preset, where the tests build, too.
    name = _PRESETS.get(tag, tag)
    build = CACHE / "cmake" / f"{name}-{builder.folder.name.rpartition('-')[2]}"
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(part / "linux")]
    options += [f"-Cbuild-dir={build}", "-Cinstall.strip=false"]  # the linker has done it
    defined = cross_options(builder) | (_CORE if elsewhere else {})
    options += [f"-Ccmake.define.{key}={value}" for key, value in defined.items()]
    if elsewhere:
        options.append("-Cbuild.targets=neml2_capi;neml2_plugin")
    command: Command = [builder.python, "-m", "pip", "wheel", *options, ROOT]
    variables = {
        **zig_variables(builder, PLATFORMS[tag]),
        "CMAKE_GENERATOR": "Ninja",
        "SOURCE_DATE_EPOCH": _EPOCH,
        "_PYTHON_HOST_PLATFORM": f"linux-{PLATFORMS[tag].partition('-')[0]}",
    }
    quietly(f"building the wheel for {tag}", command, variables)
    made = next((part / "linux").glob("*.whl"))
    if elsewhere:
        made = with_kernels_of(made, tag, builder, part / "unpacked")
    repaired(made, tag, part)
    for scratch in ("linux", "unpacked"):
        shutil.rmtree(part / scratch, ignore_errors=True)
    part.rename(folder)


def with_kernels_of(wheel: Path, tag: str, builder: Environment, scratch: Path) -> Path:
    """Replace the kernels of the shipped examples by those of a platform."""
    unpack: Command = [builder.python, "-m", "wheel", "unpack", "--dest", scratch, wheel]
    quietly(f"unpacking {wheel.name}", unpack, builder.variables)
    (folder,) = scratch.iterdir()
    machine, _, system = PLATFORMS[tag].partition("-")
    name = "windows" if system.startswith("windows") else "macos"
    targets = ("x86-64-v2", "x86-64-v3") if machine == "x86_64" else ("aarch64",)
    chosen = [f"--system={name}", *(f"--target={target}" for target in targets)]
    environment = prepare("laws", requirements("cli", "cross"))
    environment.install_wheel(built_wheel())
    for file in sorted(folder.glob("neml2_capi/examples/*/kernels/*/kernels.json")):
        law: Command = [environment.python, "-Im", "neml2_capi.cli", "build-kernels", file.parent]
        title = f"building kernels of {file.parents[2].name} for {tag}"
        quietly(title, [*law, *chosen], zig_variables(builder, PLATFORMS[tag]))
        document = json.loads(file.read_text())
        document["objects"] = [o for o in document["objects"] if o.get("system") == name]
        file.write_text(json.dumps(document, indent=1) + "\n")
        for other in file.parent.glob("*.so"):
            other.unlink()
    pack: Command = [builder.python, "-m", "wheel", "pack", "--dest-dir", scratch, folder]
    quietly("packing the wheel", pack, {**builder.variables, "SOURCE_DATE_EPOCH": _EPOCH})
    return next(scratch.glob("*.whl"))


def repaired(wheel: Path, tag: str, into: Path) -> Path:
    """Write a wheel with its tag into a folder; a Failure if its symbols break the tag."""
    builder = cross_environment()
    title = f"checking the symbols of {wheel.name}"
    if not tag.startswith("manylinux"):
        if tag.startswith("musllinux"):
            _require_musl_alone(wheel)
        made = Path(shutil.copy2(wheel, into))
        retag: Command = ["tags", "--remove", f"--platform-tag={tag}", made]
        command: Command = [builder.python, "-m", "wheel", *retag]
        quietly(title, command, {**builder.variables, "SOURCE_DATE_EPOCH": _EPOCH})
        return next(into.glob("*.whl"))
    # Its option --plat takes tags of this machine only, and musl is known where it is installed.
    repair: Command = [builder.program("auditwheel"), "repair", "--plat", "auto", "-w", into, wheel]
    printed = quietly(title, repair, {**builder.variables, "SOURCE_DATE_EPOCH": _EPOCH})
    made = next(into.glob("*.whl"))
    if tag not in made.stem.rpartition("-")[2].split("."):
        made.unlink()
        raise Failure(
            f"{wheel.name} needs more than {tag} promises, and was not written:\n{printed}"
        )
    return made


def _require_musl_alone(wheel: Path) -> None:
    """A Failure if a library of the wheel needs another than musl; musl has no versions."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as scratch:
        archive.extractall(scratch)
        # Kernels need no library at all; a loader of musl takes any of their names for its own.
        for file in Path(scratch).glob("*/lib/**/*.so*"):
            printed = quietly(f"reading {file.name}", ["readelf", "-dW", file])
            needed = re.findall(r"NEEDED.*\[(.*)\]", printed)
            if needed != ["libc.so"]:
                place = f"{file.relative_to(scratch)} of {wheel.name}"
                raise Failure(f"{place} needs {needed}; expected musl alone, libc.so")
