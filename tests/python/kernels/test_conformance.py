"""The table of tests/conformance, on kernels: no result is of a wrong class, few units are lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="graphs are read with torch")
pytest.importorskip("mpmath", reason="the exact values are mpmath's")

from kernel_setup import native_target

sys.path.append(str(Path(__file__).resolve().parents[2] / "conformance"))

import conformance
from table import OPERATORS

pytestmark = pytest.mark.full("operators are exported by torch")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_operators_mean_on_kernels_what_they_mean_in_torch(dtype: str) -> None:
    names = list(OPERATORS)
    found: dict[str, Any] = {
        name: verdict
        for name, _, verdict in conformance.verdicts(names, dtype, [native_target()], 2)
    }
    wrong = {
        name: (conformance.cell(verdict), verdict.example, verdict.at)
        for name, verdict in found.items()
        if not conformance.is_right(OPERATORS[name], verdict)
    }
    assert len(found) >= 100
    assert not wrong
    assert np.isfinite([verdict.ulp for verdict in found.values()]).all()
