"""The core alone, a library without backends: it runs all that has kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from native import ROOT, TESTS

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.environments import checkout
from tools.native import Build, configured
from tools.process import CACHE, Command

pytestmark = [pytest.mark.native, pytest.mark.full("builds the library once more")]

# They compare with stored references, or ask for what needs a tensor: substeps, a batch that
# converges as a whole, solving oneself, kernels that are switched off.
REFERENCES = ["test_reference.py", "test_reference_derivatives.py", "test_derivatives.py"]
OPTIONS = ["test_solvers.py", "test_reports.py", "test_bind.py", "test_parameters.py"]

# The engine in Python runs packages.
OF_PACKAGES = [
    "tests/python/test_bind.py::test_the_python_engine_binds_nothing",
    "tests/python/test_reports.py::test_the_error_names_the_package_of_the_residual[python]",
]

REFUSED = """
from neml2_capi import FatalError, Graph
from neml2_capi._ffi import runtime
for call in (lambda: Graph("some.pt2"), runtime.libtorch):
    try:
        call()
    except FatalError as error:
        assert "it was built with: none" in str(error), error
    else:
        raise AssertionError("it is there")
"""


@pytest.fixture(scope="module")
def core() -> Build:
    folder = CACHE / "cmake" / f"core-{checkout()}"
    build = configured("-DNEML2_CAPI_BACKENDS=", folder=folder)
    build.make(title="building the core and its programs")
    return build


def run(core: Build, *command: str | Path) -> None:
    (library,) = core.folder.glob("lib/libneml2_capi.so.?")
    names = {"NEML2_CAPI_LIBRARY": str(library), "NEML2_CAPI_FOREIGN_PACKAGES": "1"}
    done = subprocess.run(command, env=os.environ | names, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr


def test_it_has_no_provider(core: Build) -> None:
    assert not list(core.folder.glob("lib/libn2*.so"))


def test_its_programs_pass(core: Build) -> None:
    command: Command = ["ctest", "--test-dir", core.folder, "--output-on-failure", "-j2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.parametrize("files", [REFERENCES, OPTIONS], ids=["references", "options"])
def test_python_tests_pass_on_kernels(core: Build, files: list[str]) -> None:
    tests = [TESTS / "python" / file for file in files]
    chosen = ("-m", "not native and not full", *(f"--deselect={test}" for test in OF_PACKAGES))
    run(core, sys.executable, "-m", "pytest", "-q", f"--rootdir={ROOT}", *chosen, *tests)


def test_what_needs_a_backend_is_unsupported(core: Build) -> None:
    run(core, sys.executable, "-c", REFUSED)
