"""The benchmarks run. How fast anything is, is no test."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_quick_benchmark_writes_a_table_of_times(tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / "run.py"
    options = ["--quick", "--only", "elasticity, forward, 1 point$", "--output", str(tmp_path)]
    command = [sys.executable, str(script), *options]
    variables = {**os.environ, "NEML2_CAPI_COMPILE": "0"}
    result = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr

    document = json.loads((tmp_path / "results.json").read_text())
    measured = {entry["contestant"]: entry for entry in document["measured"]}
    assert set(measured) == {"Python", "Python, bound"}  # no programs and no NEML2 were named
    for entry in measured.values():
        assert all(math.isfinite(sample) and sample > 0 for sample in entry["samples"])
        assert entry["lower_quartile"] <= entry["median"] <= entry["upper_quartile"]
    table = (tmp_path / "results.md").read_text()
    assert "| elasticity " in table
    assert "NEML2, elasticity, forward, 1 point, threads 1: its program was not built" in table
