"""The scenarios of tests/scenarios: a program in each language, and one result of all."""

from __future__ import annotations

import re
import shutil
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from native import TESTS, bits, run
from oracle import VISCOPLASTIC
from programs import built

pytestmark = pytest.mark.native

FOLDER = TESTS / "scenarios"
# The names in the table: a scenario that is missing in one language fails.
NAMES = re.findall(r"^\| `(\w+)` \|", (FOLDER / "README.md").read_text(), re.MULTILINE)

VALGRIND = shutil.which("valgrind")

LANGUAGES = ("c", "cpp", "f90", "py")

in_all = pytest.mark.parametrize("name", NAMES)
in_native = pytest.mark.parametrize("language", ["c", "cpp", "f90"])
in_others = pytest.mark.parametrize("language", ["cpp", "f90", "py"])


def program(name: str, language: str) -> Path:
    return built(f"scenario_{language}_{name}")


@cache
def printed(name: str, language: str) -> str:
    if language == "py":
        return run(sys.executable, FOLDER / f"{name}.py")
    return run(program(name, language))


def test_the_table_has_all_scenarios() -> None:
    written = {path.stem for suffix in LANGUAGES for path in FOLDER.glob(f"*.{suffix}")}
    assert written - {"scenario"} == set(NAMES)


@in_all
def test_a_scenario_in_c_passes(name: str) -> None:
    assert printed(name, "c")


@in_others
@in_all
def test_every_language_has_the_results_of_c(name: str, language: str) -> None:
    assert bits(printed(name, language)) == bits(printed(name, "c"))


@pytest.mark.full("valgrind")
@pytest.mark.skipif(VALGRIND is None, reason="valgrind was not found")
@in_native
@in_all
def test_a_scenario_leaks_nothing_under_valgrind(name: str, language: str) -> None:
    run(
        str(VALGRIND),
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
        "--error-exitcode=99",
        program(name, language),
        NEML2_TEST_NO_TRAPS="1",  # which valgrind does not know
    )


def test_the_viscoplastic_cycle_is_the_one_of_the_oracle() -> None:
    lines = [line.split() for line in printed("viscoplastic_cycle", "c").splitlines()]
    state = np.array([[float(word) for word in line[1:]] for line in lines if line[0] == "state"])
    amplitudes = 0.01 / (1 + 0.5 * np.arange(5))[:, np.newaxis]
    strain = amplitudes * np.array([1, -0.3, -0.25, 0.1, -0.2, 0.05])
    triangle = np.interp(np.arange(21), [0, 5, 15, 20], [0, 1, -1, 0])
    expected = np.zeros((5, VISCOPLASTIC.unknown_count))
    for old, new in pairwise(triangle):
        expected = VISCOPLASTIC.advance(expected, new * strain, old * strain, 1.0)
    # A step ends with a residual of 1e-10 of the one that it began with, or less: a trial stress of
    # some 1e3 MPa leaves 1e-7 MPa, and 20 steps that. Strains are less by Young's modulus.
    tolerance = np.full(VISCOPLASTIC.unknown_count, 20 * 1e-7)
    tolerance[6] /= VISCOPLASTIC.E
    assert np.all(np.abs(state - expected) <= tolerance)
