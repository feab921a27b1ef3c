"""Hosts with threads or processes of their own: their results equal a serial one's."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from native import (
    CHECKS,
    HOSTS,
    MPI_SETTINGS,
    MPICC,
    MPIEXEC,
    MPIFORT,
    TESTS,
    bits,
    c_program,
    fortran_program,
    needs_fortran,
    run,
)

pytestmark = pytest.mark.native

MODULES = (TESTS / "fortran" / "checks.f90", TESTS / "scenarios" / "scenario.f90")
TRAPS = (*CHECKS, "-ffpe-trap=invalid,zero,overflow")


@cache
def elements_in_c() -> str:
    return run(c_program(HOSTS / "openmp_elements.c", flags=("-fopenmp",)))


def test_openmp_threads_share_a_model() -> None:
    assert len(elements_in_c().splitlines()) == 8


@pytest.mark.full("the Fortran module, compiled again")
@needs_fortran
def test_openmp_threads_share_a_model_in_fortran() -> None:
    program = fortran_program(HOSTS / "openmp_elements.f90", *MODULES, flags=("-fopenmp", *TRAPS))
    assert bits(run(program)) == bits(elements_in_c())


def ranks_in_c(ranks: int) -> str:
    return on_ranks(c_program(HOSTS / "mpi_ranks.c", compiler=str(MPICC)), ranks)


def on_ranks(program: Path, ranks: int) -> str:
    return run(str(MPIEXEC), "-n", str(ranks), program, **MPI_SETTINGS)


@pytest.mark.full("MPI")
@pytest.mark.skipif(not (MPICC and MPIEXEC), reason="mpicc and mpiexec were not found")
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_mpi_ranks_have_a_model_each(ranks: int) -> None:
    assert len(ranks_in_c(ranks).splitlines()) == 64


@pytest.mark.full("MPI")
@needs_fortran
@pytest.mark.skipif(
    not (MPICC and MPIFORT and MPIEXEC), reason="mpifort and mpiexec were not found"
)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_mpi_ranks_have_a_model_each_in_fortran(ranks: int) -> None:
    program = fortran_program(HOSTS / "mpi_ranks.f90", *MODULES, flags=TRAPS, compiler=MPIFORT)
    assert bits(on_ranks(program, ranks)) == bits(ranks_in_c(1))
