"""Every program of tests/ in C, C++ and Fortran ends with success."""

from __future__ import annotations

import os
import re

import pytest
from programs import build, ctest, registered
from slow import later

# Many sizes, values, forks or cycles.
SLOW = (
    *("cpp_test_dispatch", "cpp_test_hostile_metadata", "cpp_test_linear_algebra", "cpp_test_pow"),
    *("cpp_test_snapshots", "c_test_cycles", "c_test_forks", "c_test_schedulers"),
)


@pytest.mark.native
@pytest.mark.parametrize("name", later(registered(), SLOW))
def test_a_program_passes(name: str) -> None:
    if "NEML2_CAPI_BUILD" in os.environ:
        build(name)
    printed = ctest("--tests-regex", f"^{name}$", "--output-on-failure")
    if re.search(r"\*\*\*Skipped", printed):
        pytest.skip(f"{name} found nothing to test")
