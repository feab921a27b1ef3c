"""Loading, running and freeing again and again leaves nothing behind."""

from __future__ import annotations

import pytest
from native import PREBUILT, python, run
from programs import built

pytestmark = pytest.mark.numbers

both = pytest.mark.parametrize("model", ["elasticity", "viscoplastic"])


@pytest.mark.full("many cycles")
@both
def test_cycles_leave_nothing_behind(model: str) -> None:
    run(built("c_test_cycles"), PREBUILT / model, "500")


@pytest.mark.everything("ten thousand cycles")
@both
def test_ten_thousand_cycles_leave_nothing_behind(model: str) -> None:
    run(built("c_test_cycles"), PREBUILT / model, "10000")


@pytest.mark.full("many cycles")
def test_python_leaves_nothing_behind() -> None:
    python("cycles.py", PREBUILT)
