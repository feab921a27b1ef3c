"""The tests in three tiers, each a superset of the one before; CONTRIBUTING.md has the table."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from tools.editable import install_checkout
from tools.environments import (
    Environment,
    build_environment,
    downloaded,
    other_torch,
    prepare,
    requirements,
    torch_to_be_had,
)
from tools.native import LIBRARY, configured
from tools.platform_tests import (
    platform_environment,
    programs_for_aarch64,
)
from tools.platforms import platform_wheel
from tools.prerequisites import PYTHONS
from tools.process import CACHE, LOGS, Command, duration, jobs, openly
from tools.wheel import built_wheel

TIERS = ("quick", "full", "everything")


def test(tier: str, interpreters: int, platform_tag: str | None, chosen: Sequence[str]) -> int:
    """Run a tier, or the `chosen` tests of it with no more built than they need."""
    start = time.monotonic()
    named = [_by_name(argument) for argument in chosen]
    if platform_tag:
        failures = _run_on_platform(platform_tag, named)
    else:
        failures = _run(tier, interpreters, named)
    _REPORT.unlink(missing_ok=True)
    if not _selects(chosen):
        size = sum(path.lstat().st_size for path in CACHE.rglob("*") if path.is_file())
        print(
            f"\n{tier} tests: {duration(time.monotonic() - start)} in all, {downloaded():.0f} MB "
            f"downloaded, {size / 1e9:.1f} GB in {CACHE}"
        )
    if failures:
        print("\nfailed:\n" + "\n".join(failures))
    return 1 if failures else 0


def _run(tier: str, interpreters: int, chosen: list[str]) -> list[str]:
    """Return what failed, with its reasons."""
    quick = tier == "quick"
    selected = _selects(chosen)
    build = configured()
    if selected:
        build.make(*LIBRARY, title="building the library")
    else:
        later = () if quick else ("examples",)
        build.make("all", *later, title="building the library and the test programs")
    environment, variables = _quick() if quick else _full()
    install_checkout(environment, build)
    variables["NEML2_CAPI_PROGRAMS"] = str(build.folder)
    if selected:  # then a test builds the programs that it runs
        variables["NEML2_CAPI_BUILD"] = build.cmake
    failures = []
    if _pytest(environment, variables, tier, chosen):
        failures += ["pytest", *_reasons()]
    if quick:
        return failures

    wheel = built_wheel()
    installed = prepare("wheel-test", requirements("test"), ["test"])
    installed.install_wheel(wheel)
    print("\nthe installed wheel", flush=True)
    if _pytest(installed, variables, tier, chosen, "-m", "wheel") not in (0, _NO_TESTS):
        failures += ["pytest on the wheel", *_reasons()]

    others = _other_interpreters()
    hosts = _with_hosts(others)
    if hosts:
        hosts.install_wheel(wheel)
        print("\nprograms of finite elements in Python", flush=True)
        if _pytest(hosts, variables, tier, chosen, "-m", "hosts") not in (0, _NO_TESTS):
            failures += ["pytest on the programs of finite elements", *_reasons()]

    pythons = others if interpreters > 1 or tier == "everything" else []
    if len(pythons) + 1 < interpreters:
        failures.append(f"{interpreters} CPythons wanted, {len(pythons) + 1} found")
    # The wheel by zig is published; the one above is of this machine's compiler.
    published = platform_wheel(f"manylinux_2_17_{platform.machine()}") if pythons else wheel
    for python in pythons:
        other = prepare("wheel-test", requirements("test"), ["test"], python)
        other.install_wheel(published)
        print(f"\nthe wheel of another compiler under {python}", flush=True)
        if _pytest(other, variables, "quick", chosen, "-q", "-m", _OF_PYTHON):
            failures += [f"pytest under {python}", *_reasons()]
    return failures


def _run_on_platform(tag: str, chosen: list[str]) -> list[str]:
    """Test the wheel of a platform under a Python of it, and for aarch64 all programs of tests/.

    Packages are for the machine that compiled them: models run on kernels, and what has none is
    left out.
    """
    failures = []
    environment = platform_environment(tag)
    variables = {"NEML2_CAPI_COMPILE": "0", "NEML2_CAPI_FOREIGN_PACKAGES": "1"}
    variables["CC"] = f"{tag.rpartition('_')[2]}-linux-gnu-gcc"
    print(f"\nthe wheel under Python on {tag}", flush=True)
    if _pytest(environment, variables, "quick", chosen, "-m", "not native"):
        failures += [f"pytest on {tag}", *_reasons()]
    if tag.endswith("aarch64") and not _selects(chosen):
        build = programs_for_aarch64()
        ctest = Path(build.cmake).with_name("ctest")
        print("\nthe programs of tests/ on aarch64", flush=True)
        if openly([ctest, "--test-dir", build.folder, "--output-on-failure", "-j", jobs()]):
            failures.append("programs on aarch64")
    return failures


def _quick() -> tuple[Environment, dict[str, str]]:
    """An environment without torch: models come from their archive."""
    environment = prepare("test", requirements("test"), ["test"])
    return environment, {"NEML2_CAPI_COMPILE": "0"}


def _full() -> tuple[Environment, dict[str, str]]:
    """An environment with torch, if there is one for this Python, and all that tests can use."""
    torch = torch_to_be_had(build_environment())
    extras = ["test", "full", "sweeps", *(["compile", "arrays"] if torch else [])]
    sizes = ["test", "full", "sweeps", *([torch, "arrays"] if torch else [])]
    environment = prepare("full-test", requirements(*extras), sizes)
    if not torch:
        print("no torch for this Python: the tests that need it or neml2-compile are skipped")
        return environment, {"NEML2_CAPI_COMPILE": "0"}
    variables = {"NEML2_CAPI_COMPILER": str(environment.python)}
    if "NEML2_CAPI_TEST_LIBTORCH" not in os.environ and (place := other_torch()):
        variables["NEML2_CAPI_TEST_LIBTORCH"] = str(place)
    return environment, variables


def _with_hosts(others: Sequence[str]) -> Environment | None:
    """The environment with libraries of finite elements; their wheels are for one CPython."""
    found = [python for python in others if python.endswith("python3.12")]
    if sys.version_info[:2] == (3, 12):
        found = [sys.executable]
    if not found:
        print("no CPython 3.12: what needs libraries of finite elements is left out")
        return None
    # It asks for fenics-dolfinx, which dolfinx-solver-real is under another name.
    alone = ["dolfinx-external-operator==0.11.0"]
    return prepare("hosts", requirements("test", "hosts"), ["test", "hosts"], found[0], alone)


# What can differ between two CPythons: each test of the other kinds has run under one already.
_OF_PYTHON = "not native and not numbers"

# pytest's status if nothing was chosen.
_NO_TESTS = 5


def _pytest(
    environment: Environment,
    variables: dict[str, str],
    tier: str,
    chosen: Sequence[str],
    *options: str,
) -> int:
    """Run the tests of a tier on all processors, or the `chosen` ones on one; the exit status."""
    which = chosen
    if not _selects(chosen):
        costs = CACHE / f"costs-{tier}-{environment.folder.name}.json"
        parallel = ["--numprocesses", jobs(), "--dist", "worksteal"]
        files = [f"--costs={costs}", f"--junitxml={_REPORT}"]
        which = [f"--tier={tier}", *files, *parallel, *chosen]
    _REPORT.unlink(missing_ok=True)
    # The program, not `python -m pytest`: that puts the checkout on the module path.
    command: Command = [environment.program("pytest"), *options, *which]
    # The path has the tools beside neml2-compile, and cmake for tests that build programs.
    tools = [environment.program(""), build_environment().program("")]
    # Compilers that ask ccache first, if Debian has it: tests and workers share what they make.
    path = [*map(str, tools), "/usr/lib/ccache", os.environ.get("PATH", "")]
    settings = {"PATH": os.pathsep.join(path), "CMAKE_GENERATOR": "Ninja"}
    return openly(command, {**variables, **settings})


# What pytest tells of its last run, in the format of JUnit.
_REPORT = LOGS / f"tests-{os.getpid()}.xml"


def _reasons() -> list[str]:
    """A line or two for each test that failed in pytest's last run: CI may show the end alone."""
    if not _REPORT.is_file():  # chosen tests were run, or pytest could not start
        return []
    found = []
    for case in ElementTree.parse(_REPORT).iter("testcase"):
        for kind in ("failure", "error"):
            for failure in case.iter(kind):
                message = " ".join(failure.get("message", "").split())
                found.append(f"  {case.get('classname')}::{case.get('name')}\n    {message[:600]}")
    return found


def _selects(arguments: Sequence[str]) -> bool:
    """Tell whether arguments of pytest choose among the tests, rather than how to run them."""
    return any(not argument.startswith("-") or argument in ("-k", "-m") for argument in arguments)


# A program of the tests in C, C++ or Fortran, by its name in CMake or by its source.
_PROGRAM = re.compile(r"(abi|c|cpp|cpp_face|fortran|scenario_(c|cpp|f90))_\w+")


def _by_name(argument: str) -> str:
    """Return pytest's name of a test, if `argument` is a program or its source."""
    source = Path(argument)
    name = argument
    if source.suffix in (".c", ".cpp", ".f90") and source.is_file():
        kind = source.resolve().parent.name
        name = f"{kind}_{source.stem}"
        if kind == "scenarios":
            name = f"scenario_{source.suffix[1:]}_{source.stem}"
    if _PROGRAM.fullmatch(name):
        return f"tests/python/test_programs.py::test_a_program_passes[{name}]"
    return argument


def _other_interpreters() -> list[str]:
    """CPythons but this one, one of each version: on the path, and those that pyenv installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found: dict[tuple[int, int], str] = {}
    for version in PYTHONS:
        name = "python{}.{}".format(*version)
        candidates = [*sorted(map(str, pyenv.glob(f"*/bin/{name}"))), shutil.which(name) or ""]
        query = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
        for candidate in filter(None, candidates):
            answer = subprocess.run([candidate, "-c", query], capture_output=True, text=True)
            if answer.stdout.split() == [str(part) for part in version]:
                found.setdefault(version, candidate)
    found.pop((sys.version_info[0], sys.version_info[1]), None)
    return list(found.values())
