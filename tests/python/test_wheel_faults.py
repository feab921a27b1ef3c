"""What once went wrong stays right in the installed wheel, built and called as a user does.

Other tests have each of them in full; here the wheel's objects are at work, with the flags that it
tells, and nothing of a build folder.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from native import CC, CXX, PREBUILT, TESTS
from patience import PATIENCE

from neml2_capi import examples

pytestmark = pytest.mark.wheel

#: Forks among busy threads, limits of a batch system, moves of C++ objects.
PROGRAMS = ("c/test_forks.c", "c/test_limits.c", "cpp_face/test_moves.cpp")


def ran(*command: str | Path, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def told(*flags: str, folder: Path) -> list[str]:
    return shlex.split(ran(sys.executable, "-m", "neml2_capi", *flags, folder=folder))


@pytest.mark.parametrize("source", PROGRAMS)
def test_a_program_passes(source: str, tmp_path: Path) -> None:
    compiler = [CXX, "-std=c++17"] if source.endswith(".cpp") else [CC, "-std=c99"]
    flags = told("--cflags", "--libs", folder=tmp_path)
    headers = [f"-I{(TESTS / source).parent}", f"-I{TESTS / 'c'}"]
    ran(
        *compiler, *headers, TESTS / source, *flags, "-lm", "-lpthread", "-o", "it", folder=tmp_path
    )
    ran("./it", folder=tmp_path, NEML2_TEST_ARTIFACTS=str(PREBUILT))


@pytest.fixture
def library(tmp_path: Path) -> Path:
    made = tmp_path / "libsteel.so"
    command = (sys.executable, "-m", "neml2_capi", "plugin", examples.path("chaboche"), "-o", made)
    ran(*command, folder=tmp_path)
    return made


LOAD = """
import ctypes, sys
for name in sys.argv[1:]:
    library = ctypes.CDLL(name)
    library.umat_, library.NEML2_Tridimensional
print(len(sys.argv) - 1)
"""


def test_forty_plug_ins_load_beside_the_package(library: Path, tmp_path: Path) -> None:
    copies = [tmp_path / f"libsteel{number}.so" for number in range(40)]
    for copy in copies:
        shutil.copy(library, copy)
    code = "import neml2_capi\n" + LOAD
    assert ran(sys.executable, "-c", code, *copies, folder=tmp_path).strip() == "40"


def test_a_stripped_plug_in_has_its_artifact(library: Path, tmp_path: Path) -> None:
    if not shutil.which("strip"):
        pytest.skip("there is no strip")
    stripped = tmp_path / "libstripped.so"
    ran("strip", "-o", stripped, library, folder=tmp_path)
    code = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
count = ctypes.c_ushort.in_dll(library, "NEML2_nInternalStateVariables").value
assert count == 3, count
"""
    ran(sys.executable, "-c", code, stripped, folder=tmp_path)


def test_a_limit_of_files_ends_no_process(tmp_path: Path) -> None:
    code = 'import neml2_capi, neml2_capi.examples as e; neml2_capi.Model(e.path("chaboche"))'
    line = f"ulimit -f 1; exec {shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    ran("bash", "-c", line, folder=tmp_path)


def test_an_infinite_stress_is_refused(tmp_path: Path) -> None:
    code = """
import numpy as np
from neml2_capi import FatalError, Model, examples, experiments
try:
    experiments.creep(Model(examples.path("chaboche")), [0.0, 1, 2], np.inf)
except FatalError as error:
    assert "stress" in str(error), error
else:
    raise SystemExit("it was reached")
"""
    ran(sys.executable, "-c", code, folder=tmp_path)
