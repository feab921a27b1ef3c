"""What the packages of an artifact would run on here, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from neml2_capi._ffi.errors import Error
from neml2_capi._ffi.inspection import RUNTIME_NAMES
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.runtime import libtorch, load
from neml2_capi._ffi.source import native_source


@dataclass(frozen=True)
class Choice:
    """Which runtime is taken for a package."""

    package: str
    #: "builtin" or "libtorch"; "" if none can run it.
    runtime: str
    why: str

    def __str__(self) -> str:
        return f"{self.package} runs on {self.runtime or 'nothing'}: {self.why}"


def choose(package: Path) -> Choice:
    """The runtime that "auto" selects. Opens libtorch if the built-in one lacks something."""
    try:
        taken(package, "builtin")
    except Error as error:
        lacking = _first_line(error, package)
    else:
        return Choice(package.name, "builtin", "the built-in runtime has all that it calls")
    try:
        runtime = taken(package, "auto")
    except Error as error:
        return Choice(package.name, "", _first_line(error, package))
    path, version = libtorch()
    return Choice(package.name, runtime, f"{lacking} (libtorch {version}: {path})")


def taken(package: Path, runtime: str) -> str:
    """The runtime that a load for `runtime` would take; Error with all that is wrong."""
    number, source = ffi.new("int32_t *"), native_source(package, runtime=runtime)
    load([runtime], lambda: lib.neml2_graph_check(number, source))
    return RUNTIME_NAMES[number[0]]


def _first_line(error: Error, package: Path) -> str:
    line = (str(error).splitlines() or [""])[0]
    return line.removeprefix(f"{package.name}: ").partition(". ")[0]
