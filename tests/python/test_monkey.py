"""Random calls of the ABI: tests/c/test_monkey.c calls every function; here are more of them."""

from __future__ import annotations

import re

import pytest
from native import ROOT, run
from programs import built

from tools.header import contract, functions_of


def test_the_monkey_calls_every_function() -> None:
    called = set(re.findall(r"\b(neml2_\w+)\(", (ROOT / "tests/c/test_monkey.c").read_text()))
    assert set(functions_of(contract(ROOT / "include"))) - called == {
        "neml2_libtorch_open"  # looks through the file system
    }


@pytest.mark.native
@pytest.mark.everything("a million random calls")
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("threads", [1, 4])
def test_a_million_calls_crash_nothing(seed: int, threads: int) -> None:
    run(
        built("c_test_monkey"),
        *(str(1_000_000 // threads), str(seed), str(threads)),
    )
