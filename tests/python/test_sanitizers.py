"""The tests in C and C++ once more, with AddressSanitizer and UndefinedBehaviorSanitizer, and what
fuzzing has reached; and what threads do with ThreadSanitizer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from native import CXX, ROOT, command, run
from programs import ctest, folder

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.native import configured

pytestmark = [pytest.mark.native, pytest.mark.full("sanitizers")]

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1"

# The Fortran programs are not instrumented. AddressSanitizer holds freed memory back, up to 256 MB,
# which is what the test of the resident memory would measure.
LEFT_OUT = "^fortran_|_cycles$"

# Thread-local memory of the packages is not followed: LeakSanitizer of GCC 12 guesses where it lies
# when it is first used, and may then die of reading elsewhere.
OPTIONS = (
    "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:intercept_tls_get_addr=0"
)


def build(name: str, flags: str, *targets: str) -> Path:
    """Build the tests, or these targets, with flags, in a folder that is kept; the folder."""
    options = [f"-DCMAKE_{language}_FLAGS={flags}" for language in ("C", "CXX")]
    of = Path(f"{folder()}-{name}")
    made = configured("-DCMAKE_BUILD_TYPE=Debug", *options, folder=of)
    made.make(*targets, title=f"building the library with sanitizers in {of.name}")
    return of


def test_c_and_cpp_tests_are_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    sanitized = build("sanitized", FLAGS)
    monkeypatch.setenv("ASAN_OPTIONS", OPTIONS)
    monkeypatch.setenv("UBSAN_OPTIONS", "print_stacktrace=1")
    printed = ctest("--output-on-failure", "-E", LEFT_OUT, "--parallel", "2", of=sanitized)
    assert "100% tests passed" in printed


def test_schedulers_have_no_races(tmp_path: Path) -> None:
    """The scheduler knows no models, so that it is built without the rest of the library."""
    sources = [
        "threads/scheduler.cpp",
        "threads/worker.cpp",
        "base/error.cpp",
        "base/print_number.cpp",
        "base/interrupt.cpp",
        "base/locks.cpp",
        "platform/files_posix.cpp",
        "platform/linux.cpp",
        "platform/posix.cpp",
    ]
    program = tmp_path / "test_scheduler"
    command(
        *(CXX, "-std=c++20", "-fsanitize=thread", "-O1", "-g", "-pthread"),
        *(f"-I{ROOT}", f"-I{ROOT / 'include'}", "-o", program),
        *(ROOT / "capi" / source for source in sources),
        ROOT / "tests" / "cpp" / "test_scheduler.cpp",
    )
    run(program, TSAN_OPTIONS="halt_on_error=1:die_after_fork=0")


@pytest.mark.everything("the library with ThreadSanitizer")
def test_threads_that_share_a_model_have_no_races() -> None:
    """10,000 dispatches through models, of which some fail; parameters that are set meanwhile."""
    targets = "cpp_test_dispatch", "cpp_test_snapshots", "neml2_builtin"
    libraries = build("threads", "-fsanitize=thread -O1 -g1", *targets) / "lib"
    (provider,) = libraries.glob("libn2*.so")
    options = {"TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0"}
    run(libraries / targets[0], provider, "10000", **options)
    run(libraries / targets[1], **options)
