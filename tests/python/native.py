"""Build C and Fortran programs against the installed package, as a user would, and run them."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

import neml2_capi

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
HOSTS = TESTS / "hosts"
PREBUILT = ROOT / "examples" / "artifacts"

PACKAGE = Path(neml2_capi.__file__).resolve().parent
INCLUDE = PACKAGE / "include"
LIBRARIES = PACKAGE / "lib"

CC = os.environ.get("CC", "cc")
CXX = os.environ.get("CXX", "c++")
FORTRAN = os.environ.get("FC") or shutil.which("gfortran")
MPICC, MPIFORT, MPIEXEC = (shutil.which(name) for name in ("mpicc", "mpifort", "mpiexec"))

WARNINGS = ("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
# What gfortran can find at run time; signaling NaN is found where traps are on.
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
    program = folder() / "-".join(source.stem for source in sources)
    command(
        compiler,
        "-std=c99",
        "-O1",
        "-g",
        *WARNINGS,
        f"-I{INCLUDE}",
        *sources,
        "-o",
        program,
        *flags,
        *LINK,
    )
    return program


@cache
def cpp_program(source: Path) -> Path:
    """A program of one C++17 source."""
    program = folder() / f"cpp_{source.stem}"
    build = (CXX, "-std=c++17", "-O1", "-g", *WARNINGS, f"-I{INCLUDE}")
    command(*build, source, "-o", program, *LINK)
    return program


@cache
def fortran_module(source: Path) -> Path:
    """The object of a Fortran module; its .mod file lies beside it."""
    made = folder() / f"{source.stem}.o"
    command(*_fortran(), "-c", source, "-o", made, cwd=folder())
    return made


@cache
def fortran_program(
    source: Path, *modules: Path, flags: Sequence[str] = (), compiler: str | None = FORTRAN
) -> Path:
    """A program that uses the Fortran module of the package, and other modules."""
    objects = [fortran_module(module) for module in (INCLUDE / "neml2_capi.f90", *modules)]
    program = folder() / f"fortran_{source.stem}"
    build = _fortran(compiler)
    command(*build, *flags, source, *objects, "-o", program, *LINK, cwd=folder())
    return program


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
        timeout=900,
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
