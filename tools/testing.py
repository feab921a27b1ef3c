"""The tests in three tiers, each a superset of the one before; CONTRIBUTING.md has the table."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tools.editable import install_checkout
from tools.environments import (
    OTHER_TORCHES,
    Environment,
    build_environment,
    device_variables,
    has_torch,
    other_torch,
    prepare,
    requirements,
)
from tools.native import LIBRARY, configured
from tools.platform_tests import platform_environment, programs_for_aarch64
from tools.platforms import platform_wheel
from tools.prerequisites import PYTHONS
from tools.process import CACHE, LOGS, Command, duration, jobs, openly
from tools.wheel import built_wheel


def test(tier: str, interpreters: int, platform: str | None, others: Sequence[str]) -> int:
    """Run a tier, or the tests that `others` choose with no more built than they need."""
    start = time.monotonic()
    named = [_by_name(argument) for argument in others]
    failures = _run_on_platform(platform, named) if platform else _run(tier, interpreters, named)
    _REPORT.unlink(missing_ok=True)
    if not _selects(others):
        size = sum(path.lstat().st_size for path in CACHE.rglob("*") if path.is_file())
        print(
            f"\n{tier} tests: {duration(time.monotonic() - start)} in all, "
            f"{size / 1e9:.1f} GB in {CACHE}"
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
    environment, variables = _environment(tier)
    install_checkout(environment, build)
    variables["NEML2_CAPI_PROGRAMS"] = str(build.folder)
    if selected:  # then a test builds the programs that it runs
        variables["NEML2_CAPI_BUILD"] = build.cmake
    failures = run_pytest("pytest", environment, variables, tier, chosen)
    if quick:
        return failures

    def run(title: str, environment: Environment, wheel: Path, tier: str, *options: str) -> None:
        environment.install_wheel(wheel)
        failures.extend(run_pytest(title, environment, variables, tier, chosen, *options))

    wanted, wheel = requirements("test"), built_wheel()
    run("the installed wheel", prepare("wheel-test", wanted), wheel, tier, "-m", "wheel")

    found = interpreters_found()
    if hosts := _with_hosts(found.get((3, 12))):
        run("programs of finite elements in Python", hosts, wheel, tier, "-m", "hosts")

    if len(found) < interpreters:
        failures.append(f"{interpreters} CPythons wanted, {len(found)} found")
    others = [python for python in found.values() if python != sys.executable]
    pythons = others if interpreters > 1 or tier == "everything" else []
    # The wheel by zig is published; the one above is of this machine's compiler.
    published = platform_wheel(f"manylinux_2_17_{os.uname().machine}") if pythons else wheel
    either = ("quick", "-q", "-m", _OF_PYTHON)
    for python in pythons:
        title = f"the wheel of another compiler under {python}"
        run(title, prepare("wheel-test", wanted, python), published, *either)
    if tier == "everything":
        oldest = prepare("oldest-numpy", wanted, min(found.items())[1], [_NUMPY])
        run(f"the wheel with {_NUMPY}", oldest, published, *either)
    return failures


def _run_on_platform(tag: str, chosen: list[str]) -> list[str]:
    """Test the wheel of a platform under a Python of it, and for aarch64 all programs of tests/.

    Packages are for the machine that compiled them: models run on kernels, and what has none is
    left out.
    """
    environment = platform_environment(tag)
    variables = {"NEML2_CAPI_COMPILE": "0", "NEML2_CAPI_FOREIGN_PACKAGES": "1"}
    variables["CC"] = f"{tag.rpartition('_')[2]}-linux-gnu-gcc"
    title = f"the wheel under Python on {tag}"
    failures = run_pytest(title, environment, variables, "quick", chosen, "-m", "not native")
    if tag.endswith("aarch64") and not _selects(chosen):
        build = programs_for_aarch64()
        ctest = Path(build.cmake).with_name("ctest")
        print("\nthe programs of tests/ on aarch64", flush=True)
        if openly([ctest, "--test-dir", build.folder, "--output-on-failure", "-j", jobs()]):
            failures.append("programs on aarch64")
    return failures


def _environment(tier: str) -> tuple[Environment, dict[str, str]]:
    """The environment of a tier; all but the quick one have torch, if this Python has it."""
    if tier == "quick":  # models come from their archive
        return prepare("test", requirements("test")), {"NEML2_CAPI_COMPILE": "0"}
    torch = has_torch()
    extras = ["test", "full", "sweeps", *(["compile", "arrays"] if torch else [])]
    environment = prepare("full-test", requirements(*extras))
    variables = device_variables()
    if not torch:
        print("no torch for this Python: the tests that need it or neml2-compile are skipped")
        return environment, {**variables, "NEML2_CAPI_COMPILE": "0"}
    variables["NEML2_CAPI_COMPILER"] = str(environment.python)
    if "NEML2_CAPI_TEST_LIBTORCH" not in os.environ:
        releases = list(OTHER_TORCHES)[: None if tier == "everything" else 1]
        places = map(str, filter(None, map(other_torch, releases)))
        variables["NEML2_CAPI_TEST_LIBTORCH"] = os.pathsep.join(places)
    return environment, variables


def _with_hosts(python: str | None) -> Environment | None:
    """The environment with libraries of finite elements; their wheels are for one CPython."""
    if not python:
        print("no CPython 3.12: what needs libraries of finite elements is left out")
        return None
    # It asks for fenics-dolfinx, which dolfinx-solver-real is under another name.
    alone = ["dolfinx-external-operator==0.11.0"]
    return prepare("hosts", requirements("test", "hosts"), python, alone)


# The oldest numpy that pyproject.toml promises, which the oldest Python takes.
_NUMPY = "numpy==1.24.*"

# What can differ between two CPythons: each test of the other kinds has run under one already.
_OF_PYTHON = "not native and not numbers"

# pytest's status if nothing was chosen.
_NO_TESTS = 5


def run_pytest(
    title: str,
    environment: Environment,
    variables: dict[str, str],
    tier: str,
    chosen: Sequence[str],
    *options: str,
) -> list[str]:
    """Run the tests of a tier on all processors, or the `chosen` ones on one, and say what failed.

    A mark among the options may choose nothing.
    """
    print(f"\n{title}", flush=True)
    which = [f"--junitxml={_REPORT}", *chosen]
    if not _selects(chosen):
        costs = CACHE / f"costs-{tier}-{environment.folder.name}.json"
        parallel = ["--numprocesses", jobs(), "--dist", "worksteal"]
        which = [f"--tier={tier}", f"--costs={costs}", *parallel, *which]
    _REPORT.unlink(missing_ok=True)
    # The program, not `python -m pytest`: that puts the checkout on the module path.
    command: Command = [environment.program("pytest"), *options, *which]
    # The path has the tools beside neml2-compile, and cmake for tests that build programs.
    tools = [environment.program(""), build_environment().program("")]
    # Compilers that ask ccache first, if Debian has it: tests and workers share what they make.
    path = [*map(str, tools), "/usr/lib/ccache", os.environ.get("PATH", "")]
    settings = {"PATH": os.pathsep.join(path), "CMAKE_GENERATOR": "Ninja"}
    # A test has one processor; threads of numpy's own would wait for work on the others.
    settings["OPENBLAS_NUM_THREADS"] = "1"
    status = openly(command, {**variables, **settings})
    if status == 0 or (status == _NO_TESTS and "-m" in options):
        return []
    return [title, *_failed()]


# What pytest tells of its last run, in the format of JUnit.
_REPORT = LOGS / f"tests-{os.getpid()}.xml"


def _failed() -> Iterator[str]:
    """Yield a line or two for each test that failed in pytest's last run: CI may show no more."""
    for case in ElementTree.parse(_REPORT).iter("testcase") if _REPORT.is_file() else ():
        for wrong in (*case.findall("failure"), *case.findall("error")):
            why = " ".join(wrong.get("message", "").split())
            yield f"  {case.get('classname')}::{case.get('name')}\n    {why[:600]}"


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
        folder = source.resolve().parent.name
        kind = f"scenario_{source.suffix[1:]}" if folder == "scenarios" else folder
        name = f"{kind}_{source.stem}"
    if _PROGRAM.fullmatch(name):
        return f"tests/python/test_programs.py::test_a_program_passes[{name}]"
    return argument


def interpreters_found() -> dict[tuple[int, int], str]:
    """CPythons by their version, this one among them: on the path, and in pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = {sys.version_info[:2]: sys.executable}
    for version in PYTHONS:
        name = "python{}.{}".format(*version)
        candidates = [*sorted(map(str, pyenv.glob(f"*/bin/{name}"))), shutil.which(name) or ""]
        query = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
        for candidate in filter(None, candidates):
            answer = subprocess.run([candidate, "-c", query], capture_output=True, text=True)
            if answer.stdout.split() == [str(part) for part in version]:
                found.setdefault(version, candidate)
    return found
