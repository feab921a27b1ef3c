"""The Fortran module: its introduction, what the compiler refuses, and packages of all kinds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import test_float32
from native import (
    CHECKS,
    FORTRAN,
    INCLUDE,
    LINK,
    MODULES,
    PREBUILT,
    TESTS,
    command,
    folder,
    fortran_modules,
    fortran_program,
    needs_fortran,
    run,
)
from programs import built

from tools.header import contract, functions_of

MODULE = INCLUDE / "neml2_capi.f90"
FLAGS = ("-std=f2018", "-Wall", "-Wextra", "-Werror")

pytestmark = [needs_fortran, pytest.mark.native]

# The artifact of a model of float32.
root = test_float32.root

# Arguments of bind_input("strain", ...).
ACCEPTED = ["strain", "strain(:, 2:3)", "strain(1:3, :)", "single", "pointer", "cube", "number"]
REFUSED = ["plain", "2 * strain", "strain + 0", "[1.0_real64]"]

PROGRAM = """
program binding
  use, intrinsic :: iso_fortran_env, only: int32, real32, real64
  use neml2_capi, only: neml2_call, neml2_view
  implicit none(type, external)
  type(neml2_call) :: evaluation
  real(real64), target :: strain(6, 8), cube(6, 4, 2)
  real(real32), target :: single(6, 8)
  real(real64), pointer :: pointer(:, :)
  real(real64) :: plain(6, 8)
  integer(int32), target :: number(6, 8)
  pointer => strain
  strain = 0
  cube = 0
  single = 0
  plain = 0
  number = 0
  call evaluation%{statement}
end program binding
"""


def introduction() -> str:
    """The first program of the introduction."""
    found = re.search(r"^! >>> first\.f90\n(.*?)^! <<<\n", MODULE.read_text(), re.MULTILINE | re.S)
    assert found
    return re.sub(r"^!( {5})?", "", found[1], flags=re.MULTILINE)


def compiles(source: str) -> bool:
    assert FORTRAN is not None
    (folder() / "binding.f90").write_text(source)
    module = fortran_modules(*MODULES)
    build = (FORTRAN, "-std=f2018", "-fsyntax-only", f"-I{module}", "binding.f90")
    return subprocess.run(build, cwd=folder(), capture_output=True).returncode == 0


def test_the_first_program_runs_as_it_stands(tmp_path: Path) -> None:
    assert FORTRAN is not None
    (tmp_path / "first.f90").write_text(introduction())
    (tmp_path / "aoti").symlink_to(PREBUILT)
    # In one command, as the introduction says.
    command(FORTRAN, *FLAGS, *MODULES[:2], "first.f90", "-o", "first", *LINK, cwd=tmp_path)
    done = subprocess.run([tmp_path / "first"], cwd=tmp_path, capture_output=True, text=True)
    # Hooke's law with E = 200e3 and nu = 0.3: uniaxial strain of 1e-3.
    axial, lateral = 200 * 0.7 / (1.3 * 0.4), 200 * 0.3 / (1.3 * 0.4)
    stress = [float(word) for word in done.stdout.split()]
    assert stress == pytest.approx([axial, lateral, lateral, 0, 0, 0], rel=1e-6)


@pytest.mark.full("the Fortran module, compiled again and again")
@pytest.mark.parametrize("options", [("-O0", "-g"), ("-O3",), ("-O1", "-g", *CHECKS)], ids=" ".join)
def test_the_module_compiles_without_a_warning(options: tuple[str, ...], tmp_path: Path) -> None:
    assert FORTRAN is not None
    command(FORTRAN, *FLAGS, *options, "-c", *MODULES, cwd=tmp_path)


def test_it_calls_every_function_of_the_header() -> None:
    # DLPack and XLA are for C and Python, and a package that cannot be loaded says why.
    left_out = {"tensor_from_dlpack", "tensor_to_dlpack", "graph_check", "xla_handler_get"}
    functions = {name.removeprefix("neml2_") for name in functions_of(contract(INCLUDE))}
    procedures = "".join(path.read_text().partition("\ncontains\n")[2] for path in MODULES)
    assert set(re.findall(r"\bc_(\w+)", procedures)) & functions == functions - left_out


def test_no_line_is_longer_than_the_standard_has_it() -> None:
    assert max(len(line) for path in MODULES for line in path.read_text().splitlines()) <= 132


@pytest.mark.parametrize("argument", ACCEPTED)
def test_an_array_with_an_address_of_its_own_is_accepted(argument: str) -> None:
    assert compiles(PROGRAM.format(statement=f'bind_input("strain", neml2_view({argument}))'))


SILENT = """
program silent
  use, intrinsic :: iso_fortran_env, only: real64
  use neml2_capi, only: neml2_call, neml2_model, neml2_view
  implicit none(type, external)
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: strain(6, 2) = 1e-3_real64, stress(6, 2)
  character(:), allocatable :: errmsg
  call model%load("{artifact}")
  call evaluation%create(model, errmsg=errmsg)
  call evaluation%bind_input("{name}", neml2_view(strain))
  call evaluation%bind_output("stress", neml2_view(stress))
  call evaluation%run(2)
  print "(a, f0.3)", "done ", stress(1, 1)
end program silent
"""


@pytest.mark.parametrize(
    "artifact, name, message",
    [
        ("nowhere", "strain", "There is no folder"),
        ("elasticity", "strian", "Its inputs are: strain."),
        ("elasticity", "strain", ""),
    ],
)
def test_without_a_stat_an_error_ends_the_program(
    artifact: str, name: str, message: str, tmp_path: Path
) -> None:
    source = tmp_path / "silent.f90"
    source.write_text(SILENT.format(artifact=PREBUILT / artifact, name=name))
    done = subprocess.run([fortran_program(source)], capture_output=True, text=True)
    assert (done.returncode == 0) == (message == "")
    assert message in done.stderr
    assert ("done" in done.stdout) == (message == "")


def test_only_arrays_of_inputs_outputs_and_derivatives_have_steps() -> None:
    for bind, names in (("input", '"strain"'), ("derivative", '"stress", "strain"')):
        statement = f"bind_{bind}({names}, neml2_view(strain), step_stride=6)"
        assert compiles(PROGRAM.format(statement=statement))
    for role in ("parameter", "tangent", "jvp", "cotangent", "adjoint"):
        statement = f'bind_{role}("E", neml2_view(strain), step_stride=6)'
        assert not compiles(PROGRAM.format(statement=statement))


@pytest.mark.parametrize("argument", REFUSED)
def test_what_would_be_copied_or_does_not_fit_is_refused(argument: str) -> None:
    assert not compiles(PROGRAM.format(statement=f'bind_input("strain", neml2_view({argument}))'))


def test_packages_of_integers_and_single_precision(graphs: Path) -> None:
    """The part of the test that compiled graphs are for."""
    run(built("fortran_test_graphs"), graphs)


def test_a_model_of_single_precision(root: Path) -> None:
    run(built("fortran_test_single_precision"), root)


@pytest.mark.full("the Fortran module, compiled again and again")
@pytest.mark.parametrize("option", ["-O0", "-O2", "-O3"])
def test_private_copies_of_threads(option: str, tmp_path: Path) -> None:
    """What stands in an unset copy differs with the code around it."""
    assert FORTRAN is not None
    sources = [TESTS / "fortran" / f"{name}.f90" for name in ("checks", "test_private")]
    program = tmp_path / "program"
    options = (*FLAGS, "-fopenmp", option)
    command(FORTRAN, *options, *MODULES, *sources, "-o", program, *LINK, cwd=tmp_path)
    run(program)


@pytest.mark.full("valgrind")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind was not found")
def test_private_copies_leak_nothing_under_valgrind() -> None:
    # To see that a copy is unset means to read it.
    leaks = ("--leak-check=full", "--errors-for-leak-kinds=definite", "--undef-value-errors=no")
    program = built("fortran_test_private")
    run("valgrind", *leaks, "--error-exitcode=99", program, NEML2_TEST_NO_TRAPS="1")


def test_no_function_result_has_a_length_that_threads_share() -> None:
    """gfortran 12 keeps the length of a deferred one in a static variable."""
    objects = sorted(fortran_modules(*MODULES).glob("*.o"))
    symbols = command(os.environ.get("NM", "nm"), *objects)
    assert not re.search(r" b slen\.", symbols)
