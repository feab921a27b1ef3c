"""Build C and Fortran programs against the installed package, as a user would, and run them."""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from archive import made_once
from patience import PATIENCE

import neml2_capi

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # for tools; last: the package of the checkout has no library
TESTS = ROOT / "tests"
HOSTS = TESTS / "hosts"
PREBUILT = ROOT / "examples" / "artifacts"
# Packages of the archive are of another machine than this Python: models run on their kernels.
FOREIGN = os.environ.get("NEML2_CAPI_FOREIGN_PACKAGES") == "1"

PACKAGE = Path(neml2_capi.__file__).absolute().parent
INCLUDE = PACKAGE / "include"
# In the order of compilation.
MODULES = tuple(INCLUDE / f"neml2_capi{part}.f90" for part in ("_c", "", "_experimental"))
LIBRARIES = PACKAGE / "lib"

CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
FORTRAN = os.environ.get("FC") or shutil.which("gfortran")
MPICC, MPIFORT, MPIEXEC = (shutil.which(name) for name in ("mpicc", "mpifort", "mpiexec"))

WARNINGS = ("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
# What gfortran can find at run time; signaling NaN is found if traps are on.
CHECKS = ("-fcheck=all", "-finit-real=snan", "-finit-derived")
LINK = (f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-lneml2_capi", "-lm", "-pthread")

# For Open MPI, in a container and with more ranks than processors.
MPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}

needs_fortran = pytest.mark.skipif(FORTRAN is None, reason="no Fortran compiler was found")


@cache
def folder() -> Path:
    """Where the programs are built; gone when the tests end."""
    path = Path(tempfile.mkdtemp(prefix="neml2_capi-native-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def example_of(header: Path, until: str) -> str:
    """The program in the introduction of a header of C or C++, which ends at the line `until`."""
    text = header.read_text().partition("\n * EXAMPLE\n")[2].partition(f"\n * {until}")[0]
    return "\n".join(line[7:] for line in text.splitlines() if line.startswith(" *     ")) + "\n"


def command(*arguments: str | Path, cwd: Path | None = None) -> str:
    """Run a tool and return what it printed; an error shows it."""
    texts = [str(argument) for argument in arguments]
    done = subprocess.run(texts, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(texts)}\n{done.stdout}{done.stderr}"
    return done.stdout


@cache
def c_program(*sources: Path, flags: Sequence[str] = (), compiler: str = CC) -> Path:
    """A program of C99 sources; `flags` go to the linker too."""
    build = [compiler, "-std=c99", "-O1", "-g", *WARNINGS, f"-I{INCLUDE}"]
    return kept("program", build, *sources, *flags, *LINK) / "program"


@cache
def fortran_modules(*sources: Path) -> Path:
    """The folder of modules that were compiled in this order: their .mod files and objects."""
    return kept("", _fortran(), "-c", *sources)


@cache
def fortran_program(
    source: Path, *modules: Path, flags: Sequence[str] = (), compiler: str | None = FORTRAN
) -> Path:
    """A program that uses the Fortran modules of the package, and others."""
    made = fortran_modules(*MODULES, *modules)
    build = (*_fortran(compiler), *flags, f"-I{made}")
    return kept("program", build, source, *sorted(made.glob("*.o")), *LINK) / "program"


def kept(output: str, build: Sequence[str], *arguments: str | Path) -> Path:
    """The folder in which a command was run once for all workers and runs, by content.

    It makes the file `output`, or what it makes of itself. Files that the command names count with
    what they hold, and so do the headers; the library does not, which programs find when they run.
    """
    known = [*build, *(str(argument) for argument in arguments)]
    words = len(known)
    files = {Path(word.removeprefix("-I")) for word in known if "/" in word}
    for file in sorted({*files, *INCLUDE.glob("*.h*")}):
        if file.is_file() and not file.is_relative_to(LIBRARIES):
            known.append(hashlib.sha256(file.read_bytes()).hexdigest())
    programs = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neml2_capi"
    place = programs / "programs" / hashlib.sha256("\0".join(known).encode()).hexdigest()[:16]

    def make(folder: Path) -> None:
        folder.mkdir()
        command(*known[:words], *(("-o", output) if output else ()), cwd=folder)

    return made_once(place, make)


def _fortran(compiler: str | None = FORTRAN) -> tuple[str, ...]:
    assert compiler is not None
    # Procedures are recursive in Fortran 2018, as several threads need it; in gfortran, when told.
    return (compiler, "-std=f2018", "-frecursive", "-O1", "-g", "-Wall", "-Wextra", "-Werror")


def run(program: str | Path, *arguments: str | Path, **environment: str) -> str:
    """Run a program to success and return what it printed; `environment` is added to ours."""
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "NEML2_TEST_ARTIFACTS": str(PREBUILT), **environment},
        timeout=PATIENCE,
    )
    assert done.returncode == 0, (
        f"{Path(program).name} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done.stdout


def python(script: str, *arguments: str | Path, **environment: str) -> str:
    """Run a script of tests/hosts in a process of its own, like a program."""
    return run(sys.executable, HOSTS / script, *arguments, **environment)


def bits(printed: str) -> list[list[str]]:
    """The words of each line that a program printed, with numbers in hexadecimal.

    17 digits, however they are written, become the one value that they mean.
    """
    return [[_bits(word) for word in line.split()] for line in printed.splitlines()]


def _bits(word: str) -> str:
    try:
        return float(word).hex()
    except ValueError:
        return word


def installed(*modules: str) -> None:
    """Skip the test if one of the modules is not there; a program that it runs imports them."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: python3 build.py test --full")
