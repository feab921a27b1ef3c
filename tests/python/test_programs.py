"""Every program of tests/ in C, C++ and Fortran ends with success."""

from __future__ import annotations

import os
import re

import pytest
from programs import build, ctest, registered

TEN_THOUSAND = pytest.mark.full("10,000 dispatches")
LATER = {"cpp_test_dispatch": TEN_THOUSAND, "c_test_schedulers": TEN_THOUSAND}
NAMES = [pytest.param(name, marks=LATER.get(name, ())) for name in registered()]


@pytest.mark.native
@pytest.mark.parametrize("name", NAMES)
def test_a_program_passes(name: str) -> None:
    if "NEML2_CAPI_BUILD" in os.environ:
        build(name)
    printed = ctest("--tests-regex", f"^{name}$", "--output-on-failure")
    if re.search(r"\*\*\*Skipped", printed):
        pytest.skip(f"{name} found nothing to test")
