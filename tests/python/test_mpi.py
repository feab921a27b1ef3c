"""Ranks of MPI: each keeps a device of its node and has its own points, and none waits for ever."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from native import (
    HOSTS,
    INCLUDE,
    MPI_SETTINGS,
    MPICC,
    MPIEXEC,
    MPIFORT,
    PREBUILT,
    ROOT,
    TESTS,
    c_program,
    command,
    folder,
    fortran_program,
    needs_fortran,
)
from patience import PATIENCE
from programs import built, cmake

from neml2_capi import mpi

EXAMPLE = ROOT / "examples" / "mpi"
ARTIFACT = PREBUILT / "viscoplastic"

needs_c = pytest.mark.skipif(not (MPICC and MPIEXEC), reason="mpicc and mpiexec were not found")
needs_f08 = pytest.mark.skipif(not (MPIFORT and MPIEXEC), reason="no mpifort, or no mpiexec")
needs_mpi4py = pytest.mark.skipif(
    not (MPIEXEC and importlib.util.find_spec("mpi4py")), reason="mpi4py or mpiexec was not found"
)
pytestmark = pytest.mark.full("MPI")

LANGUAGES = [
    pytest.param("c", marks=needs_c),
    pytest.param("fortran", marks=[needs_fortran, needs_f08]),
    pytest.param("python", marks=needs_mpi4py),
]


@cache
def example(language: str) -> tuple[str | Path, ...]:
    """The command of the example in one language."""
    if language == "python":
        return (sys.executable, "-m", "mpi4py", EXAMPLE / "beam.py")
    why = "MPI was not found (Debian: libopenmpi-dev)"
    return (built(f"example_mpi_{language}", why),)


@cache
def communicators(language: str) -> tuple[str | Path, ...]:
    """The command of the host in tests/hosts that asks about communicators."""
    source = HOSTS / "mpi_communicators"
    if language == "c":
        return (c_program(source.with_suffix(".c"), compiler=str(MPICC)),)
    if language == "fortran":
        return (
            fortran_program(
                source.with_suffix(".f90"),
                TESTS / "fortran" / "checks.f90",
                flags=(str(INCLUDE / "neml2_capi_mpi.f90"),),  # a source, for the same compiler
                compiler=MPIFORT,
            ),
        )
    return (sys.executable, "-m", "mpi4py", source.with_suffix(".py"))


def on_ranks(ranks: int, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command on ranks; without MPI's launcher if they are 0."""
    launcher = [str(MPIEXEC), "-n", str(ranks)] if ranks else []
    return subprocess.run(
        [*launcher, *map(str, arguments)],
        env={**os.environ, **MPI_SETTINGS, "NEML2_CAPI_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def bend(language: str, ranks: int, file: Path) -> tuple[str, bytes]:
    """What the example prints and writes."""
    done = on_ranks(ranks, *example(language), ARTIFACT, file)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, file.read_bytes()


@cache
def bent_in(language: str) -> tuple[str, bytes]:
    """The same without a launcher: a serial program."""
    return bend(language, 0, folder() / f"beam_{language}")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_points_on_ranks_have_the_bits_of_a_serial_program(
    language: str, ranks: int, tmp_path: Path
) -> None:
    assert bend(language, ranks, tmp_path / "states") == bent_in(language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_step_is_cut_on_all_ranks_where_points_of_some_fail(language: str) -> None:
    printed, _ = bent_in(language)
    cuts = [int(points) for points in re.findall(r"is cut: (\d+) points failed", printed)]
    assert cuts
    assert all(0 < points < 140 * 8 / 4 for points in cuts), "no rank would fail as a whole"
    assert len(re.findall(r"^at \S+ s: curvature", printed, re.MULTILINE)) == 4


@needs_c
@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_the_languages_agree(language: str) -> None:
    states, others = (np.frombuffer(bent_in(name)[1]) for name in ("c", language))
    assert states.size == 140 * 8 * 19
    assert np.allclose(states, others, rtol=1e-9, atol=1e-9)
    moments, of_others = (
        [float(number) for number in re.findall(r"moment (\S+)", bent_in(name)[0])]
        for name in ("c", language)
    )
    assert np.allclose(moments, of_others, rtol=1e-5)
    # Bent to and fro: it yields, and flows back before it is straight.
    first, yielding, reverse, back = moments
    assert 0 < first < yielding < 5 * first
    assert reverse < -yielding
    assert 0 < back < yielding


@needs_c
@needs_f08
@needs_fortran
def test_a_project_of_its_own_finds_what_it_needs(tmp_path: Path) -> None:
    """Away from the tree, against the installed package."""
    package = command(sys.executable, "-m", "neml2_capi", "--cmakedir").strip()
    sources, build = shutil.copytree(EXAMPLE, tmp_path / "mpi"), tmp_path / "build"
    command(cmake(), "-S", sources, "-B", build, f"-Dneml2_capi_DIR={package}")
    command(cmake(), "--build", build)
    for language in ("c", "fortran"):
        done = on_ranks(1, build / f"example_mpi_{language}")
        assert "usage: mpiexec -n RANKS" in done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_fewer_ranks_than_devices_are_refused(language: str, tmp_path: Path) -> None:
    done = on_ranks(1, *example(language), ARTIFACT, tmp_path / "states", "cpu", "cuda:0")
    assert done.returncode != 0
    assert re.search(r"rank 0: .*idle", done.stderr), done.stderr
    assert not (tmp_path / "states").exists()


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_rank_waits_for_one_whose_device_cannot_be_used(language: str, tmp_path: Path) -> None:
    """The artifact has no packages for CUDA: of four ranks, two cannot load it."""
    done = on_ranks(4, *example(language), ARTIFACT, tmp_path / "states", "cpu", "cuda:0")
    assert done.returncode != 0
    for rank in (1, 3):
        assert re.search(rf"rank {rank}: .*cuda", done.stderr), done.stderr
    if language != "python":  # mpi4py ends all when the first has failed
        for rank in (0, 2):
            assert f"rank {rank}: another rank of the communicator has failed" in done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("ranks", [1, 4])
def test_any_communicator_gives_the_rank_on_the_node(language: str, ranks: int) -> None:
    done = on_ranks(ranks, *communicators(language))
    assert (done.returncode, done.stderr) == (0, "")
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert lines == [
        (
            *(rank, ranks),
            *(rank // 2, (ranks + 1 - rank % 2) // 2),
            *(ranks - 1 - rank, ranks),
            *(0, 1),
            (ranks - 1 - rank) % 3,
        )
        for rank in range(ranks)
    ]


@needs_c
def test_the_header_is_for_c_plus_plus_too() -> None:
    source = folder() / "mpi_header.cpp"
    source.write_text("#include <neml2_capi_mpi.h>\nint main() { return 0; }\n")
    flags = ("-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{INCLUDE}")
    command("mpicxx", "-DOMPI_SKIP_MPICXX", *flags, "-fsyntax-only", source)


def test_the_package_tells_where_the_module_is() -> None:
    module = command(sys.executable, "-m", "neml2_capi", "--fortran-mpi-module").strip()
    assert Path(module) == INCLUDE / "neml2_capi_mpi.f90"


def test_without_mpi4py_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match="pip install mpi4py"):
        mpi.local_rank()
