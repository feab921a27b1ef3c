"""What the tests of kernels share: compilers, captured graphs, and folders of built kernels."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from native import FOREIGN

from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import write_sources
from neml2_capi.kernels.program import Program

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "models"))

import compile as models  # noqa: E402  (tests/models is no package)

#: What this machine runs, from the oldest instruction set on.
TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
_NEEDS = {"x86-64-v2": "sse4_2", "x86-64-v3": "avx2", "x86-64-v4": "avx512dq"}


def runs_here(target: str) -> bool:
    if platform.machine() != "x86_64":
        return False
    return _NEEDS[target] in Path("/proc/cpuinfo").read_text().split()


def native_target() -> str:
    """A target whose objects run on this machine."""
    if platform.machine() == "aarch64":
        return "aarch64"
    return "x86-64-v3" if runs_here("x86-64-v3") else "x86-64-v2"


@pytest.fixture(autouse=True, scope="session")
def kernels_for_this_processor() -> Iterator[None]:
    """Build the kernels of a law for one instruction set instead of all, if none is named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neml2_capi.kernels.build.DEFAULT_TARGETS", (native_target(),))
        yield


def require_compiler(cc: str) -> str:
    if not shutil.which(cc):
        pytest.skip(f"{cc} is not installed")
    return cc


@pytest.fixture(params=["gcc", "clang"])
def cc(request: pytest.FixtureRequest) -> str:
    """Each of the two compilers; $CC if this Python is of another machine than they."""
    if FOREIGN:
        if request.param == "clang":
            pytest.skip("its compiler is gcc")
        return os.environ["CC"]
    return require_compiler(request.param)


@pytest.fixture(scope="session")
def any_cc() -> str:
    """One compiler of C."""
    for found in (os.environ.get("CC"), "gcc", "clang", "cc"):
        if found and shutil.which(found):
            return found
    pytest.skip("no C compiler is installed")


class Captured:
    """The graphs of a recipe of tests/models/compile.py, as scalar operations."""

    def __init__(self, name: str) -> None:
        try:
            folder = models.captured(name)
        except models.NotCompiledError as error:
            pytest.skip(str(error))
        self.programs: dict[str, Program | str] = {}
        for file in sorted(folder.glob("*.json")):
            document = json.loads(file.read_text())
            found = document.get("program")
            package = Path(document["package"]).name
            self.programs[package] = (
                Program.from_json(json.dumps(found)) if found else document["reason"]
            )

    def write(self, root: Path, metadata: Any = None) -> Path:
        """The sources of its kernels, in an artifact that holds no packages."""
        versions = {"neml2": "3.1.0", "torch": "2.13.0"}
        return write_sources(root, "cpu/float64", self.programs, metadata or {}, versions)


@pytest.fixture(scope="session")
def captured() -> Callable[[str], Captured]:
    """The graphs of a recipe, captured once."""
    known: dict[str, Captured] = {}

    def of(name: str) -> Captured:
        if name not in known:
            known[name] = Captured(name)
        return known[name]

    return of


@pytest.fixture
def built(tmp_path: Path, any_cc: str) -> Callable[..., dict[str, Any]]:
    """Kernels of programs, built and loaded."""
    from loaded import load

    def of(
        programs: dict[str, Program], target: str = "", cc: str = "", **options: Any
    ) -> dict[str, Any]:
        root = tmp_path / f"artifact{len(list(tmp_path.iterdir()))}"
        packages = {f"{name}.pt2": program for name, program in programs.items()}
        folder = write_sources(root, "cpu/float64", packages, {}, {"neml2": "none"})
        (made,) = build(folder, [target or native_target()], cc or any_cc, **options)
        return load(made)

    return of


def model_names() -> list[str]:
    """The models whose graphs are there."""
    names: list[str] = models.graph_names()
    return names


def with_kernels(name: str, target: str = "") -> Path:
    """An artifact of the tests with kernels; the test is skipped if it was not compiled."""
    try:
        return models.with_kernels(name, target or native_target())
    except models.NotCompiledError as error:
        pytest.skip(str(error))


_OTHERS = [target for target in TARGETS if runs_here(target) and target != native_target()]
_IN_FULL = pytest.mark.full("kernels for one processor tell most")


@pytest.fixture(
    scope="session",
    params=[native_target(), *(pytest.param(target, marks=_IN_FULL) for target in _OTHERS)],
)
def target(request: pytest.FixtureRequest) -> str:
    """Each instruction set that this machine has."""
    chosen: str = request.param
    return chosen
