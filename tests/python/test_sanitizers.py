"""The tests in C and C++ once more, with AddressSanitizer and UndefinedBehaviorSanitizer; and what
threads do with ThreadSanitizer."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from native import CXX, ROOT, command, run

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g"

# The Fortran programs are not instrumented. AddressSanitizer holds freed memory back, up to 256 MB,
# which is what the test of the resident memory would measure.
LEFT_OUT = "^fortran_|_cycles$"

# Thread-local memory of the packages is not followed: LeakSanitizer of GCC 12 guesses where it lies
# when it is first used, and may then die of reading elsewhere.
OPTIONS = (
    "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:intercept_tls_get_addr=0"
)


def jobs() -> str:
    return str(len(os.sched_getaffinity(0)))


def build(tmp_path: Path, name: str, flags: str, *targets: str) -> tuple[str, Path]:
    """Build the tests, or these targets, with flags: cmake, and the folder.

    `build.py test` has configured a build of the tests before: what it found is used again.
    """
    cmake, python, folder = _configured(tmp_path, name)
    command(
        cmake,
        *("-S", ROOT, "-B", folder),
        f"-DPython_EXECUTABLE={python}",
        "-DNEML2_CAPI_TESTS=ON",
        "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_C_FLAGS={flags}",
        f"-DCMAKE_CXX_FLAGS={flags}",
    )
    chosen = ("--target", *targets) if targets else ()
    command(cmake, "--build", folder, "--parallel", jobs(), *chosen)
    return cmake, folder


def _configured(tmp_path: Path, name: str) -> tuple[str, str, Path]:
    """cmake, the Python that has the parsers that the library is built with, and a folder."""
    programs = os.environ.get("NEML2_CAPI_PROGRAMS")
    if programs:
        cache = (Path(programs) / "CMakeCache.txt").read_text()
        found = dict(re.findall(r"^(CMAKE_COMMAND|Python_EXECUTABLE):\w+=(.+)$", cache, re.M))
        folder = Path(f"{programs}-{name}")  # kept: the next run compiles what has changed
        return found["CMAKE_COMMAND"], found["Python_EXECUTABLE"], folder
    cmake = shutil.which("cmake")
    if not cmake:
        pytest.skip("cmake was not found")
    return cmake, sys.executable, tmp_path


def test_c_and_cpp_tests_are_clean(tmp_path: Path) -> None:
    cmake, folder = build(tmp_path, "sanitized", FLAGS)
    output = run(
        Path(cmake).with_name("ctest"),
        *("--test-dir", folder, "--output-on-failure", "-E", LEFT_OUT, "--parallel", jobs()),
        ASAN_OPTIONS=OPTIONS,
        UBSAN_OPTIONS="print_stacktrace=1",
    )
    assert "100% tests passed" in output


def test_schedulers_have_no_races(tmp_path: Path) -> None:
    """The scheduler knows no models, so that it is built without the rest of the library."""
    sources = ["threads/scheduler.cpp", "threads/worker.cpp", "base/error.cpp"]
    program = tmp_path / "test_scheduler"
    command(
        *(CXX, "-std=c++20", "-fsanitize=thread", "-O1", "-g", "-pthread"),
        *(f"-I{ROOT}", f"-I{ROOT / 'include'}", "-o", program),
        *(ROOT / "capi" / source for source in sources),
        ROOT / "tests" / "cpp" / "test_scheduler.cpp",
    )
    run(program, TSAN_OPTIONS="halt_on_error=1:die_after_fork=0")


@pytest.mark.skipif(
    os.environ.get("NEML2_CAPI_TSAN") != "1",
    reason="it takes a quarter of an hour: it runs with NEML2_CAPI_TSAN=1",
)
def test_devices_that_share_a_model_have_no_races(tmp_path: Path) -> None:
    """The whole library, and 10,000 dispatches through models, of which some fail."""
    targets = "cpp_test_dispatch", "neml2_builtin"
    _, folder = build(tmp_path, "threads", "-fsanitize=thread -O1 -g", *targets)
    (provider,) = (folder / "lib").glob("libn2*.so")
    program = folder / "lib" / targets[0]
    run(program, provider, "10000", TSAN_OPTIONS="halt_on_error=1:die_after_fork=0")
