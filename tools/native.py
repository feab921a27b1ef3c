"""The library and the programs in C, C++ and Fortran, built incrementally by CMake and Ninja.

One folder serves the demo, the wheel and all tiers of the tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tools.environments import Environment, build_environment, build_requirements, checkout, locked
from tools.process import CACHE, ROOT, Command, jobs, quietly

FLAGS = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DNEML2_CAPI_PRECOMPILE=ON",
    "-DNEML2_CAPI_TESTS=ON",
    # What a build of an earlier checkout remembers is forgotten.
    "-UNEML2_CAPI_BACKENDS",
    # Nothing in Fortran is part of the library, and its programs compute next to nothing.
    "-DCMAKE_Fortran_FLAGS_RELEASE=-O1",
]

# Targets that everything needs but the programs of the tests.
LIBRARY = ("neml2_capi", "neml2_builtin", "neml2_plugin")


@dataclass(frozen=True)
class Build:
    """A configured build folder, and the environment with what builds in it."""

    folder: Path
    builder: Environment

    @property
    def cmake(self) -> str:
        """The program: the system's, or the builder's own if the system's is too old."""
        needed = "cmake" in build_requirements()
        return str(self.builder.program("cmake")) if needed else "cmake"

    def make(self, *targets: str, title: str) -> None:
        """Build what has changed of the targets, or of everything."""
        first = not (self.folder / ".ninja_log").exists()
        chosen = ["--target", *targets] if targets else []
        command: Command = [self.cmake, "--build", self.folder, "--parallel", jobs(), *chosen]
        # ccache needs these to keep objects that were compiled with precompiled headers.
        variables = {**self.builder.variables, "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
        with locked(self.folder.with_suffix(".lock")):
            quietly(title, command, variables, repeats=first)

    def install(self, prefix: Path, component: str) -> None:
        """Copy the files of a component, if they have changed, below `prefix`."""
        where: Command = ["--prefix", prefix, "--component", component]
        title = f"installing the library into {prefix.parents[2].name}"
        command: Command = [self.cmake, "--install", self.folder, *where]
        quietly(title, command, self.builder.variables)


def configured(*options: str, folder: Path | None = None, source: Path = ROOT) -> Build:
    """The build folder of a checkout, configured again if its options changed.

    Ninja itself configures again when a CMakeLists.txt changes.
    """
    builder = build_environment(source)
    folder = folder or CACHE / "cmake" / f"release-{checkout()}"
    # A warning of another compiler than ours must not keep a user from the wheel.
    strict = f"-DNEML2_CAPI_WERROR={'ON' if os.environ.get('CI') == 'true' else 'OFF'}"
    wanted = [*FLAGS, strict, f"-DPython_EXECUTABLE={builder.python}", *options]
    if ccache := shutil.which("ccache"):  # it knows what this checkout was before
        wanted += [f"-DCMAKE_{name}_COMPILER_LAUNCHER={ccache}" for name in ("C", "CXX")]
    stamp = folder / "options.json"
    content = json.dumps(wanted)
    build = Build(folder, builder)
    with locked(folder.with_suffix(".lock")):
        if not stamp.exists() or stamp.read_text() != content:
            command: Command = [build.cmake, "-S", source, "-B", folder, "-G", "Ninja", *wanted]
            quietly(f"configuring the build in {folder.name}", command, builder.variables)
            stamp.write_text(content)
    return build


def slowest(folder: Path, count: int = 25) -> str:
    """The files that took longest to build, in seconds: a table, with the sum of all."""
    took: dict[str, float] = {}
    for line in (folder / ".ninja_log").read_text().splitlines():
        if found := re.match(r"(\d+)\t(\d+)\t\d+\t([^\t]+\.o)\t", line):
            name = re.sub(r"(^|/)CMakeFiles/[^/]+\.dir/", r"\1", found[3]).removesuffix(".o")
            took[name] = (int(found[2]) - int(found[1])) / 1000
    rows = sorted(took.items(), key=lambda row: -row[1])[:count]
    lines = [f"{seconds:6.1f}  {name}" for name, seconds in rows]
    return "\n".join([*lines, f"{sum(took.values()):6.1f}  all {len(took)} files"])
