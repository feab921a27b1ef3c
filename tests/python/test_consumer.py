"""A project outside the tree finds the library, in a prefix and in the wheel, and its programs run.

The wheel is the installed package that these tests run with. The prefix is installed from the build
folder of the programs, and then moved.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import programs
import pytest
from native import CC, CXX, FORTRAN, PACKAGE, PREBUILT, ROOT, TESTS, command, needs_fortran
from patience import PATIENCE
from programs import cmake

import neml2_capi

SOURCES = TESTS / "consumer"
ROOT_OF_MODEL = PREBUILT / "elasticity"
LANGUAGES = ("c", "cpp", *(["fortran"] if FORTRAN else []))


@dataclass(frozen=True)
class Home:
    """Where the library was installed, and who looks for it."""

    cmake_package: Path
    pkgconfig: Path


def neml2_capi_says(*flags: str) -> str:
    """What the installed package prints. In the folder of the checkout, that one would answer."""
    return command(sys.executable, "-m", "neml2_capi", *flags, cwd=SOURCES)


def flags(*names: str) -> list[str]:
    return shlex.split(neml2_capi_says(*names))


@pytest.fixture(scope="module", params=["prefix", "wheel"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Home:
    if request.param == "wheel":
        return Home(*map(Path, flags("--cmakedir", "--pkgconfigdir")))
    folder = tmp_path_factory.mktemp("prefix")
    installed, moved = folder / "installed", folder / "moved to another place"
    command(cmake(), "--install", programs.folder(), "--prefix", installed)
    installed.rename(moved)
    (pkgconfig,) = moved.rglob("pkgconfig")
    return Home(pkgconfig.with_name("cmake") / "neml2_capi", pkgconfig)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The consumer, away from the tree."""
    return Path(shutil.copytree(SOURCES, tmp_path / "project"))


def check_stress(program: Path) -> None:
    """It finds the library without help, and computes what Python does."""
    variables = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run(
        [program, ROOT_OF_MODEL], capture_output=True, text=True, env=variables, timeout=PATIENCE
    )
    assert done.returncode == 0, f"{program.name}\n{done.stdout}{done.stderr}"
    strain = np.array([1e-3, -3e-4, -2.5e-4, 1e-4, -2e-4, 5e-5])
    expected = neml2_capi.Model(ROOT_OF_MODEL).forward({"strain": strain})["stress"]
    assert np.array_equal(np.array(done.stdout.split(), dtype=float), np.asarray(expected))


def build_by_hand(
    project: Path, compile_flags: list[str], link: list[str], modules: list[str]
) -> None:
    """Compile each program with one command, as people do, and run it."""
    command(CC, *compile_flags, "stress.c", "-o", "stress_c", *link, cwd=project)
    command(CXX, "-std=c++17", *compile_flags, "stress.cpp", "-o", "stress_cpp", *link, cwd=project)
    if FORTRAN:
        command(FORTRAN, *modules, "stress.f90", "-o", "stress_fortran", *link, cwd=project)
    for language in LANGUAGES:
        check_stress(project / f"stress_{language}")


@pytest.mark.wheel
@pytest.mark.native
def test_cmake_finds_the_library_and_installs_programs_that_do(home: Home, project: Path) -> None:
    build, prefix = project / "build", project / "installed"
    configure = [f"-Dneml2_capi_DIR={home.cmake_package}", f"-DCMAKE_INSTALL_PREFIX={prefix}"]
    command(cmake(), "-S", project, "-B", build, *configure)
    command(cmake(), "--build", build)
    command(cmake(), "--install", build)
    for language in LANGUAGES:
        check_stress(build / f"stress_{language}")
        check_stress(prefix / "bin" / f"stress_{language}")


@pytest.mark.wheel
@pytest.mark.native
def test_pkg_config_finds_the_library(home: Home, project: Path) -> None:
    if not shutil.which("pkg-config"):
        pytest.skip("pkg-config was not found")

    def ask(*options: str) -> list[str]:
        variable = f"PKG_CONFIG_PATH={home.pkgconfig}"
        return shlex.split(command("env", variable, "pkg-config", *options, "neml2_capi"))

    build_by_hand(project, ask("--cflags"), ask("--libs"), ask("--variable=fortran_module"))
    assert ask("--modversion") == [neml2_capi.__version__]


@pytest.mark.full("projects of users, configured and built")
def test_the_package_tells_the_flags(project: Path) -> None:
    build_by_hand(project, flags("--cflags"), flags("--libs"), flags("--fortran-module"))


def test_several_flags_make_one_line() -> None:
    line = flags("--cflags", "--libs", "--version")
    assert line == [*flags("--cflags"), *flags("--libs"), neml2_capi.__version__]
    assert line[0] == f"-I{flags('--includedir')[0]}"
    assert line[1] == f"-L{flags('--libdir')[0]}"


@pytest.mark.wheel
@pytest.mark.native
def test_the_package_may_lie_in_a_folder_with_blanks(project: Path) -> None:
    place = project / "site packages"
    shutil.copytree(PACKAGE, place / "neml2_capi")

    def shell(line: str) -> str:
        say = f"{shlex.quote(sys.executable)} -m neml2_capi"
        script = line.replace("SAY", say)
        return command("env", f"PYTHONPATH={place}", "sh", "-ec", script, cwd=project)

    shell(f'eval "{CC} stress.c $(SAY --cflags --libs) -o stress_c"')
    check_stress(project / "stress_c")
    for path in ("--includedir", "--libdir", "--cmakedir", "--pkgconfigdir"):
        shell(f'test -e "$(SAY {path})"')


def test_the_package_called_with_nothing_says_what_it_can() -> None:
    assert "--cmakedir" in neml2_capi_says()


@pytest.mark.parametrize("content", [None, b"no library"], ids=["missing", "broken"])
def test_without_a_library_one_line_says_what_is_wrong(
    tmp_path: Path, content: bytes | None
) -> None:
    library = tmp_path / "libneml2_capi.so.1"
    if content:
        library.write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "neml2_capi", "--cflags"],
        env={**os.environ, "NEML2_CAPI_LIBRARY": str(library)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("neml2_capi: ") and str(library) in done.stderr


def refused(project: Path, home: Home, lists: str) -> str:
    """What cmake says of a project that cannot be built; words only, it breaks lines."""
    (project / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.20)\n{lists}\n")
    done = subprocess.run(
        [cmake(), "-S", project, "-B", project / "build", f"-Dneml2_capi_DIR={home.cmake_package}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0, done.stdout
    return " ".join(done.stderr.split())


@pytest.mark.wheel
@pytest.mark.native
@pytest.mark.parametrize("version", ["99", "0.99"])
def test_another_version_than_wanted_is_refused(home: Home, project: Path, version: str) -> None:
    lists = f"project(consumer LANGUAGES C)\nfind_package(neml2_capi {version} REQUIRED)"
    message = refused(project, home, lists)
    assert f'compatible with requested version "{version}"' in message
    assert f"version: {neml2_capi.__version__}" in message


@pytest.mark.wheel
@pytest.mark.native
def test_the_fortran_component_needs_the_language(home: Home, project: Path) -> None:
    find = "find_package(neml2_capi REQUIRED COMPONENTS fortran)"
    message = refused(project, home, f"project(consumer LANGUAGES C)\n{find}")
    assert "component fortran needs the language Fortran: enable it before" in message


@pytest.mark.wheel
@pytest.mark.native
def test_the_fortran_target_needs_the_language(home: Home, project: Path) -> None:
    lists = """
        project(consumer LANGUAGES C)
        find_package(neml2_capi REQUIRED)
        add_executable(stress_c stress.c)
        target_link_libraries(stress_c PRIVATE neml2_capi::fortran)"""
    assert "fortran_needs_the_language_Fortran" in refused(project, home, lists)


@pytest.mark.wheel
@pytest.mark.native
@needs_fortran
def test_a_directory_may_enable_fortran_after_another_found_the_library(
    home: Home, project: Path
) -> None:
    (project / "later").mkdir()
    (project / "CMakeLists.txt").write_text("""
        cmake_minimum_required(VERSION 3.20)
        project(consumer LANGUAGES C)
        find_package(neml2_capi REQUIRED)
        add_subdirectory(later)""")
    (project / "later" / "CMakeLists.txt").write_text("""
        enable_language(Fortran)
        find_package(neml2_capi REQUIRED COMPONENTS fortran)
        find_package(neml2_capi REQUIRED COMPONENTS fortran)  # twice does no harm
        add_library(routine SHARED ../stress.f90)
        target_link_libraries(routine PRIVATE neml2_capi::fortran)""")
    build = project / "build"
    command(cmake(), "-S", project, "-B", build, f"-Dneml2_capi_DIR={home.cmake_package}")
    command(cmake(), "--build", build)


@pytest.mark.full("projects of users, configured and built")
def test_a_project_that_contains_the_sources_has_the_same_targets(project: Path) -> None:
    """Configured only: the library itself is built often enough."""
    (python,) = programs.found("Python_EXECUTABLE")
    options = (f"-DNEML2_CAPI_SOURCE={ROOT}", f"-DPython_EXECUTABLE={python}")
    command(cmake(), "-S", project, "-B", project / "build", *options)
