"""Each allocation and each system call of some work fails in turn: the library says so and goes on.

Of the allocations a part fails, another one each day; `--everything` fails them all. The programs
of tests/torture tell more: `torture_memory elasticity --from 17 --to 17 --trace`.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from native import PREBUILT, run
from programs import built
from slow import later

from neml2_capi.plugin import make

pytestmark = pytest.mark.native

WORKS = (
    "elasticity",
    "elasticity-packages",
    "graph",
    "viscoplastic",
    "viscoplastic-packages",
    "plugin",
)
# Allocations between two that the quick and the full tier fail: some seconds for each test.
EVERY = {"viscoplastic": 701, "viscoplastic-packages": 701, "plugin": 701}


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("plugin") / "libsteel.so"
    make(PREBUILT / "combined_hardening", library, packages=True)
    return library


def torture(program: str, work: str, plugin: Path, every: int = 1) -> None:
    """Run the trials of a work, every so many; which one is the first depends on the day."""
    first = 1 + datetime.date.today().toordinal() % every
    trials = ("--every", str(every), "--from", str(first))
    try:
        print(run(built(program), work, *trials, "--plugin", plugin))
    except AssertionError as error:
        if " ended with 77\n" in str(error):
            pytest.skip("the system cannot be made to fail here")
        raise


@pytest.mark.parametrize("work", later(WORKS, ["viscoplastic-packages", "plugin"]))
def test_an_allocation_that_fails_is_told(work: str, plugin: Path) -> None:
    torture("torture_memory", work, plugin, EVERY.get(work, 211))


@pytest.mark.full("a tracer stops at each system call")
@pytest.mark.parametrize("work", WORKS)
def test_a_system_call_that_fails_is_told(work: str, plugin: Path) -> None:
    torture("torture_system", work, plugin)


@pytest.mark.everything("each allocation of a work fails, four times: many minutes")
@pytest.mark.parametrize("work", WORKS)
def test_every_allocation_that_fails_is_told(work: str, plugin: Path) -> None:
    torture("torture_memory", work, plugin)
