"""Programs of other releases with this library, and this release's programs with a later one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from native import PREBUILT, ROOT, TESTS
from programs import build, built, folder

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools import abi
from tools.header import EXPERIMENTAL, STABLE, Part, contract, parts_of

pytestmark = pytest.mark.native

INCLUDE = ROOT / "include"
FROZEN = TESTS / "abi" / "1.0"
#: The folder of the headers of 1.0, which that release keeps; until then those of now count.
RELEASED = (FROZEN / "neml2_capi.h").is_file()
OF_THEN = FROZEN if RELEASED else INCLUDE
LATER = pytest.mark.full("builds a library of a later release")


def edited(old: str, new: str) -> list[Part]:
    """The contract with a text of one header replaced."""
    found: list[Part] = []
    for name in (STABLE, EXPERIMENTAL):
        text = (INCLUDE / name).read_text(encoding="utf-8")
        found += parts_of(text.replace(old, new), name == EXPERIMENTAL)
    return found


def broken(before: Iterable[Part], now: Iterable[Part]) -> list[str]:
    """Return declarations of a frozen header that changed or went, which its programs need.

    Structures may have grown, and what is experimental may have gone, but not changed.
    """
    before, present = list(before), set(abi.declarations(now))
    gone = abi.experimental(before) - {abi.name_of(line) for line in present}
    return [
        line
        for line in abi.declarations(before)
        if line not in present
        and abi.name_of(line) not in gone
        and not line.endswith("bytes")
        and not line.startswith("NEML2_ABI_VERSION")
    ]


def run(program: Path, library: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A program with the library of a folder."""
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "NEML2_TEST_ARTIFACTS": str(PREBUILT),
    }
    return subprocess.run([program, *arguments], env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def later() -> Path:
    """The folder of the later library; tests/abi/later.py has what it adds."""
    for target in ("neml2_capi_later", "abi_later_function", "abi_later_field"):
        build(target)  # left out if everything is built
    return folder() / "tests" / "abi_later"


def test_a_release_keeps_its_header_and_module() -> None:
    """To mend it: cp include/neml2_capi*.h include/neml2_capi*.f90 tests/abi/1.0."""
    found = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M)
    assert found
    released = not found[1].startswith("1.0.0rc")
    assert RELEASED == (FROZEN / "neml2_capi.f90").is_file() == released


@pytest.mark.skipif(not RELEASED, reason="there is no 1.0 yet")
def test_nothing_that_is_frozen_has_changed() -> None:
    assert broken(contract(OF_THEN), contract(INCLUDE)) == []


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("NEML2_NOT_CONVERGED = 2,", "NEML2_NOT_CONVERGED = 4,", "NEML2_NOT_CONVERGED = 2"),
        (
            "call_run(neml2_call *call, int64_t",
            "call_run(neml2_call *call, int32_t",
            "neml2_call_run",
        ),
        ("  int64_t age; ", "  int32_t age; ", "neml2_history_info.age at 16: int64_t"),
        ("neml2_log_count(int64_t *out)", "neml2_log_number(int64_t *out)", "neml2_log_count"),
        (
            "neml2_scheduler_count(int64_t *out,",
            "neml2_scheduler_count(int32_t *out,",
            "neml2_scheduler_count",
        ),
    ],
)
def test_a_change_that_would_break_a_program_is_found(old: str, new: str, lost: str) -> None:
    found = broken(contract(INCLUDE), edited(old, new))
    assert any(lost in line for line in found), found


def test_what_is_experimental_may_go_and_structures_may_grow() -> None:
    before = contract(INCLUDE)
    grown = edited("} neml2_source;", "  int64_t later; /**< new */\n} neml2_source;")
    assert grown != before
    assert broken(before, grown) == []
    gone = [part for part in before if part.title != "neml2_scheduler_count"]
    assert len(gone) == len(before) - 1
    assert broken(before, gone) == []
    assert broken(before, [part for part in before if part.title != "neml2_log_count"])


def test_the_host_of_1_0_calls_every_function_that_is_frozen() -> None:
    declared = contract(OF_THEN)
    frozen = {part.title for part in declared if part.is_function} - abi.experimental(declared)
    called = set(re.findall(r"\bneml2_\w+(?=\()", (FROZEN / "host.c").read_text()))
    assert len(frozen) > 60
    assert frozen - called == set()


def test_functions_have_the_version_that_they_came_with() -> None:
    before = (
        "0.1.0 void neml2_old(void)\n1.2.0 void neml2_new(void)\n1.3.1 void neml2_tried(void)\n"
    )
    rule = "/* " + "-" * 20 + "\n * {}\n * " + "-" * 20 + " */\n"
    header = rule.format("Core") + "/** a */\nNEML2_CAPI void neml2_old(void);\n"
    header += "/** b */\nNEML2_CAPI void neml2_new(void);\n"
    tried = parts_of("/** c */\nNEML2_CAPI void neml2_tried(void);\n", experimental=True)
    script = abi.version_script([*parts_of(header), *tried], before)
    nodes = re.findall(r"(NEML2_\S+) \{(.*?)\}", script, re.DOTALL)
    assert [(node, re.findall(r"neml2_\w+", body)) for node, body in nodes] == [
        ("NEML2_1.0", ["neml2_old"]),
        ("NEML2_1.2", ["neml2_new"]),
        ("NEML2_EXPERIMENTAL_1.3", ["neml2_tried"]),
    ]


@LATER
@pytest.mark.parametrize("name", ["abi_1_0_c", "abi_1_0_fortran"])
def test_a_program_of_1_0_runs_with_a_later_library(name: str, later: Path) -> None:
    """One with a function, an option, and a field of a structure more; not built again."""
    done = run(built(name), later)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"runs with 1001\b", done.stdout)


@LATER
def test_a_program_that_needs_a_later_library_is_told_so_at_its_start(later: Path) -> None:
    program = built("abi_later_function")
    assert run(program, later).returncode == 0
    refused = run(program, folder() / "lib")
    assert refused.returncode != 0
    assert "version `NEML2_1.1' not found (required by" in refused.stderr


@LATER
def test_a_later_program_is_told_what_this_library_does_not_know(later: Path) -> None:
    program, artifact = built("abi_later_field"), PREBUILT / "elasticity"
    told = dict(re.findall(r"^(.+?): (.*)$", run(program, folder() / "lib", artifact).stdout, re.M))
    assert told["a field"].startswith(
        "-1 The structure 'source' has a field that this library does"
    )
    assert told["no field"].startswith("0") and told["inspect"].startswith("0")
    assert told["told"] == "0"  # a field that is not known is 0, and not what stood there
    assert told["an option"].startswith("-2 There is no option 'later'")
    with_later = run(program, later, artifact).stdout
    assert "an option: 0" in with_later and "a field: 0" in with_later
