"""The tests in C and C++ once more, with AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from native import PREBUILT, ROOT, TESTS, command, run

CMAKE, CTEST = shutil.which("cmake"), shutil.which("ctest")
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g"

# The Fortran programs hold no memory of their own that their tests would not see.
LEFT_OUT = "^fortran_"


@pytest.mark.skipif(not (CMAKE and CTEST), reason="cmake was not found")
def test_c_and_cpp_tests_are_clean(tmp_path: Path) -> None:
    assert CMAKE and CTEST
    command(
        CMAKE,
        *("-S", ROOT, "-B", tmp_path),
        f"-DPython_EXECUTABLE={sys.executable}",
        "-DNEML2_CAPI_TESTS=ON",
        "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_C_FLAGS={FLAGS}",
        f"-DCMAKE_CXX_FLAGS={FLAGS}",
    )
    command(CMAKE, "--build", tmp_path, "--parallel", str(os.cpu_count() or 1))
    leaks = f"suppressions={TESTS / 'sanitizers' / 'leaks.txt'}:print_suppressions=0"
    output = run(
        CTEST,
        *("--test-dir", tmp_path, "--output-on-failure", "-E", LEFT_OUT),
        ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
        LSAN_OPTIONS=leaks,
        UBSAN_OPTIONS="print_stacktrace=1",
        NEML2_TEST_ARTIFACTS=str(PREBUILT),
    )
    assert "100% tests passed" in output
