"""Headers, faces and examples with every compiler on the path, by its name and version.

The oldest and the newest of each family are for the full tier, all for everything. What they said
stands in docs/compatibility.md. The compiler that `cc` is has its tests elsewhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import CC, INCLUDE, LINK, MODULES, PREBUILT, ROOT, TESTS, bits, c_program, command, run
from patience import PATIENCE
from programs import ctest

from neml2_capi import Graph

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.environments import checkout
from tools.header import contract, functions_of
from tools.native import configured
from tools.platforms import cross_environment, zig, zig_variables
from tools.process import CACHE

pytestmark = pytest.mark.native

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", f"-I{INCLUDE}")
# Containers of another layout than the library's, and programs that end where they err.
CHECKED = ("-D_GLIBCXX_DEBUG", "-D_GLIBCXX_DEBUG_PEDANTIC")
UNDEFINED = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
EXAMPLE = (PREBUILT / "elasticity", PREBUILT / "viscoplastic")
FUNCTIONS = set(functions_of(contract(INCLUDE)))


@dataclass(frozen=True)
class Compiler:
    """The commands of one version."""

    name: str
    c: tuple[str | Path, ...] = ()
    cxx: tuple[str | Path, ...] = ()
    fortran: tuple[str | Path, ...] = ()


def found(pattern: str) -> list[tuple[int, str]]:
    """The programs on the path that match, with their versions, the oldest first."""
    folders = [Path(place) for place in os.environ["PATH"].split(os.pathsep) if place]
    names = {file.name for folder in folders if folder.is_dir() for file in folder.iterdir()}
    matches = (re.fullmatch(pattern, name) for name in names)
    return sorted((int(match["version"]), match[0]) for match in matches if match)


def by_tier(compilers: Sequence[Compiler], *places: int) -> Iterable[Any]:
    """Parameters: those at the places for the full tier, the others for everything."""
    chosen = [compilers[place] for place in places if compilers]
    for compiler in compilers:
        tier = pytest.mark.full if compiler in chosen else pytest.mark.everything
        yield pytest.param(compiler, id=compiler.name, marks=tier("other compilers"))


GCC = [
    Compiler(name, (name,), (name.replace("gcc", "g++"),))
    for _, name in found(r"gcc-(?P<version>\d+)")
    if shutil.which(name.replace("gcc", "g++"))
]
CLANG = [
    Compiler(name, (name,), (name.replace("clang", "clang++"),))
    for _, name in found(r"clang-(?P<version>\d+)")
]
GFORTRAN = [
    # gfortran 11 takes texts of deferred length for uninitialized.
    Compiler(name, fortran=(name, "-frecursive", "-Wall", "-Wextra", "-Wno-maybe-uninitialized"))
    for _, name in found(r"gfortran-(?P<version>\d+)")
]
# Those before 20 lack arrays of assumed rank; it was `flang-new` until then.
FLANG = [
    Compiler(name, fortran=(name,))
    for version, name in found(r"flang-(?P<version>\d+)")
    if version >= 20
]
ZIG = pytest.param(None, id="zig", marks=pytest.mark.everything("zig's compiler, with libc++"))


@pytest.fixture
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    if request.param is not None:
        chosen: Compiler = request.param
        return chosen
    builder = cross_environment()
    for name, value in zig_variables(builder, "").items():
        monkeypatch.setenv(name, value)
    program = zig(builder)
    # The library needs a C++ run time of its own, which is none of the program's.
    link = "-Wl,--allow-shlib-undefined"
    return Compiler("zig", (program, "cc", link), (program, "c++", link))


def require(standard: str, *words: str | Path) -> None:
    """Skip the test if the compiler does not know the standard."""
    known = [*words, f"-std={standard}", "-fsyntax-only", "/dev/null"]
    if subprocess.run(known, capture_output=True).returncode:
        pytest.skip(f"it does not know {standard}")


def with_each(
    *families: Sequence[Compiler], places: Sequence[int], more: Sequence[Any] = ()
) -> pytest.MarkDecorator:
    """Mark a test to run with each compiler."""
    found = [parameter for family in families for parameter in by_tier(family, *places)]
    return pytest.mark.parametrize("compiler", [*found, *more], indirect=True)


OLDEST, NEWEST = 0, -1
C_FAMILY = with_each(GCC, CLANG, places=(OLDEST, NEWEST), more=[ZIG])
C_FAMILY_LONG = with_each(GCC, CLANG, places=(NEWEST,), more=[ZIG])
FORTRAN = with_each(GFORTRAN, FLANG, places=(OLDEST, NEWEST))


@C_FAMILY
@pytest.mark.parametrize("standard", ["c99", "c11", "c17", "c2x", "c++17", "c++20", "c++2b"])
def test_the_c_header(compiler: Compiler, standard: str, tmp_path: Path) -> None:
    words, language = (compiler.cxx, "c++") if "++" in standard else (compiler.c, "c")
    require(standard, *words, "-x", language)
    source = tmp_path / ("header.cpp" if language == "c++" else "header.c")
    source.write_bytes((TESTS / "abi" / "header.c").read_bytes())
    command(*words, f"-std={standard}", *STRICT, source, "-o", tmp_path / "program", *LINK)
    run(tmp_path / "program")


@C_FAMILY
@pytest.mark.parametrize("standard", ["c++17", "c++20", "c++2b"])
def test_the_face_in_cpp(compiler: Compiler, standard: str, tmp_path: Path) -> None:
    require(standard, *compiler.cxx, "-x", "c++")
    build = (*compiler.cxx, f"-std={standard}", *STRICT, TESTS / "abi" / "header.cpp")
    command(*build, "-DSECOND_FILE", "-c", "-o", tmp_path / "second.o")
    command(*build, tmp_path / "second.o", "-o", tmp_path / "program", *LINK)
    run(tmp_path / "program")


@C_FAMILY_LONG
def test_no_type_of_cpp_is_shared_with_the_library(compiler: Compiler, tmp_path: Path) -> None:
    """The tests of the face, with containers of another layout; zig's are of another library.

    They call nearly all of it.
    """
    used: set[str] = set()
    for source in sorted((TESTS / "cpp_face").glob("test_*.cpp")):
        program = tmp_path / source.stem
        build = (*compiler.cxx, "-std=c++17", "-O0", *STRICT, *CHECKED, *UNDEFINED)
        command(*build, source, "-o", program, *LINK)
        used |= set(re.findall(r"\bneml2_\w+", command("nm", "--undefined-only", program)))
        environment = {"NEML2_TEST_ARTIFACTS": PREBUILT, "NEML2_TEST_DATA": TESTS / "data"}
        done = subprocess.run(
            [program],
            env=os.environ | {name: str(place) for name, place in environment.items()},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode in (0, 77), f"{source.name}: {done.stdout}{done.stderr}"
    # An exception carries its status; the tests of the face do not call the others yet.
    uncalled = {"graph_constant_set", "operator_call_get_text", "stream_set", "xla_handler_get"}
    assert FUNCTIONS - used == {"neml2_error_status", *(f"neml2_{name}" for name in uncalled)}


@C_FAMILY
def test_the_example_in_c(compiler: Compiler, tmp_path: Path) -> None:
    source = ROOT / "examples" / "c" / "example.c"
    command(*compiler.c, "-std=c99", "-O2", *STRICT, source, "-o", tmp_path / "example", *LINK)
    assert bits(run(tmp_path / "example", *EXAMPLE)) == expected()


def expected() -> list[list[str]]:
    """The numbers of the example, by the compiler that the library is tested with."""
    return bits(run(c_program(ROOT / "examples" / "c" / "example.c", compiler=CC), *EXAMPLE))


@FORTRAN
def test_the_module_and_the_example_in_fortran(compiler: Compiler, tmp_path: Path) -> None:
    strict = ("-Werror",) if "gfortran" in compiler.name else ()
    source = ROOT / "examples" / "fortran" / "example.f90"
    build = (*compiler.fortran, "-std=f2018", "-O2", *strict, *MODULES, source)
    command(*build, "-o", tmp_path / "example", *LINK, cwd=tmp_path)
    assert bits(run(tmp_path / "example", *EXAMPLE)) == expected()


@FORTRAN
def test_the_scenarios_in_fortran(compiler: Compiler, tmp_path: Path) -> None:
    shared = (*MODULES, TESTS / "fortran" / "checks.f90", TESTS / "scenarios" / "scenario.f90")
    build = (*compiler.fortran, "-std=f2018", "-O1")
    command(*build, "-c", *shared, cwd=tmp_path)
    objects = sorted(tmp_path.glob("*.o"))
    for source in sorted((TESTS / "scenarios").glob("*.f90")):
        if source.stem in ("scenario", "threads"):  # threads are OpenMP's, a library of its own
            continue
        command(*build, source, *objects, "-o", tmp_path / source.stem, *LINK, cwd=tmp_path)
        run(tmp_path / source.stem)


@pytest.mark.everything("the library, compiled by others")
@with_each(GCC[:1], GCC[1:][-1:], CLANG[:1], CLANG[1:][-1:], places=())
def test_the_library_by(compiler: Compiler) -> None:
    """Without a warning, and each file by itself; its programs in C and C++ pass."""
    alone = ("-DNEML2_CAPI_UNITY=OFF", "-DNEML2_CAPI_PRECOMPILE=OFF")
    words = zip(("C", "CXX"), (compiler.c, compiler.cxx), strict=True)
    choice = [f"-DCMAKE_{language}_COMPILER={name}" for language, (name,) in words]
    place = CACHE / "cmake" / f"{compiler.name}-{checkout()}"
    build = configured(*choice, *alone, folder=place)
    build.make(title=f"building the library by {compiler.name}")
    ctest("--output-on-failure", "-R", "^(c|cpp|cpp_face|scenario_c|scenario_cpp)_", of=place)


# A loop over enough points that Inductor shares it among threads.
_PARALLEL = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
import torch
from graphs import Dim, compile_graph
points = torch.ones(1 << 18, 6, dtype=torch.float64)
batch = {0: Dim("batch", min=2, max=1 << 20)}
law = lambda a: torch.exp(a) * a + a.sum(1, True)
compile_graph(Path("parallel.pt2"), law, (points,), (batch,))
"""


@pytest.mark.everything("torch compiles a package")
@with_each(CLANG, places=())
def test_parallel_regions_by(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code of clang calls another OpenMP than g++'s; neither is loaded."""
    pytest.importorskip("torch")
    own = Path(f"/usr/lib/llvm-{compiler.name.rpartition('-')[2]}/lib")
    headers = sorted(own.glob("clang/*/include/omp.h"))
    if not headers:
        pytest.skip(f"{compiler.name} has no OpenMP")
    monkeypatch.setenv("CXX", str(compiler.cxx[0]))
    monkeypatch.setenv("CPATH", str(headers[0].parent))
    monkeypatch.setenv("LIBRARY_PATH", str(own))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    command(sys.executable, "-c", _PARALLEL, TESTS / "models", cwd=tmp_path)
    with zipfile.ZipFile(tmp_path / "parallel.pt2") as package:
        (code,) = (name for name in package.namelist() if name.endswith(".wrapper.so"))
        assert b"__kmpc_fork_call" in package.read(code)
    a = np.linspace(0.0, 1.0, 30).reshape(5, 6)
    result = Graph(tmp_path / "parallel.pt2", runtime="builtin")(a)[0]
    np.testing.assert_allclose(result, np.exp(a) * a + a.sum(1, keepdims=True), rtol=1e-14)
    assert "libomp" not in Path("/proc/self/maps").read_text()
