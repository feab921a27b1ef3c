"""The core for other systems, by zig, and what starts its programs here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from native import ROOT

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.environments import checkout
from tools.native import Build
from tools.platforms import cross_environment, zig_variables
from tools.process import CACHE, Command

# Presets of CMakePresets.json, their targets of zig, and what a program is linked with.
PRESETS = {
    "core-musl": ("x86_64-linux-musl", "libneml2_capi.so"),
    "core-aarch64": ("aarch64-linux-gnu.2.17", "libneml2_capi.so"),
    "core-windows": ("x86_64-windows-gnu", "libneml2_capi.dll.a"),
    "core-macos": ("aarch64-macos", "libneml2_capi.dylib"),
}


@dataclass(frozen=True)
class Core:
    """The library for a system, in a folder."""

    folder: Path
    target: str
    library: Path
    variables: dict[str, str]

    def compile(self, source: Path, program: Path, *options: str | Path) -> str:
        """Compile a program, with the library unless `options` have another; what zig says.

        "" if it succeeds.
        """
        kind = "cc" if source.suffix == ".c" else "c++"
        standard = "-std=gnu99" if kind == "cc" else "-std=c++20"
        # Unoptimised, zig adds a sanitizer that asks for the newest musl.
        command: Command = [self.variables["ZIG"], kind, "-target", self.target, "-O1", standard]
        with_library = options or (self.library,)
        command = [*command, f"-I{ROOT / 'include'}", source, *with_library, "-lm", "-o", program]
        done = subprocess.run(
            command, env=os.environ | self.variables, capture_output=True, text=True
        )
        return done.stderr if done.returncode else ""


def core_for(preset: str, *targets: str) -> Core:
    """Build the library of a preset, or `targets` of CMake."""
    builder, (target, library) = cross_environment(), PRESETS[preset]
    variables, folder = zig_variables(builder, target), CACHE / "cmake" / f"{preset}-{checkout()}"
    cmake = Build(folder, builder).cmake
    options = [f"-DPython_EXECUTABLE={builder.python}", "-DNEML2_CAPI_WERROR=ON"]
    passes([cmake, "--preset", preset, "-B", folder, *options], **variables)
    chosen = ["--target", *targets] if targets else []
    passes([cmake, "--build", folder, "--parallel", "2", *chosen], **variables)
    # Objects of rooms that were arranged otherwise would be linked, too.
    passes([builder.program("ninja"), "-C", folder, "-t", "cleandead"], **variables)
    return Core(folder, target, folder / "lib" / library, variables)


def passes(command: Command, **variables: str) -> str:
    """Run a command to success, and return what it printed."""
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    return done.stdout


def starter(preset: str) -> list[str] | None:
    """What starts a program of a preset here; None if nothing does."""
    if preset == "core-musl":
        return [] if Path("/lib/ld-musl-x86_64.so.1").exists() else None
    wine = shutil.which("wine64", path=f"{os.environ['PATH']}:/usr/lib/wine")
    return [wine] if wine and preset == "core-windows" else None


def nlohmann_json() -> Path:
    """The folder of its headers, for programs that look inside the library."""
    query = "import nlohmann_json as it; print(it.__path__[0])"
    found: Sequence[str] = passes([cross_environment().python, "-c", query]).split()
    return Path(found[-1]) / "include"
