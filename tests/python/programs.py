"""The programs of tests/ and examples/, which CMake builds and ctest knows how to run."""

from __future__ import annotations

import fcntl
import json
import os
import re
from functools import cache
from pathlib import Path

import pytest
from native import command

_FOLDER = os.environ.get("NEML2_CAPI_PROGRAMS", "")


def folder() -> Path:
    """The build folder; without one, the test is skipped."""
    if not _FOLDER:
        pytest.skip("NEML2_CAPI_PROGRAMS names no build folder: python3 build.py test")
    return Path(_FOLDER)


@cache
def found(*names: str) -> tuple[str, ...]:
    """Variables of CMake's cache, such as CMAKE_COMMAND."""
    lines = (folder() / "CMakeCache.txt").read_text()
    values = dict(re.findall(r"^(\w+):\w+=(.*)$", lines, re.MULTILINE))
    return tuple(values[name] for name in names)


def cmake() -> Path:
    return Path(*found("CMAKE_COMMAND"))


def ctest(*options: str, of: Path | None = None) -> str:
    """Run ctest in the build folder, or in another, and return what it printed."""
    return command(cmake().with_name("ctest"), "--test-dir", of or folder(), *options)


def registered() -> list[str]:
    """The programs that ctest knows; none without a build folder."""
    if not _FOLDER:
        return []
    return [test["name"] for test in json.loads(ctest("--show-only=json-v1"))["tests"]]


def built(name: str, why_not: str = "no Fortran compiler was found") -> Path:
    """A program by its name in CMake; skips the test if CMake leaves it out, and says why.

    Builds it first if `build.py test` was asked for a few tests only.
    """
    place = {"example": "bin", "cpp": "lib"}.get(name.partition("_")[0], "tests")
    if name.startswith("cpp_face"):
        place = "tests"
    program = folder() / place / name
    if "NEML2_CAPI_BUILD" in os.environ:
        build(name)
    if not program.exists():
        pytest.skip(why_not)
    return program


def build(name: str) -> None:
    """Bring a target up to date, if CMake knows it."""
    with (folder() / "targets.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = command(cmake(), "--build", folder(), "--target", "help")
        if re.search(rf"^{name}: phony$", known, re.MULTILINE):
            command(cmake(), "--build", folder(), "--target", name)
