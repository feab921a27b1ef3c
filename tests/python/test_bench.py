"""The benchmarks run. How fast anything is, is no test."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from native import CXX, INCLUDE, LINK, PREBUILT, kept
from patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from compare import differing  # noqa: E402  (benchmarks is no package)

pytestmark = pytest.mark.native


@pytest.mark.full("builds and runs a benchmark")
def test_a_quick_benchmark_writes_a_table_of_times(tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / "run.py"
    options = ["--quick", "--only", "elasticity, forward, 1 point$", "--output", str(tmp_path)]
    command = [sys.executable, str(script), *options]
    variables = {**os.environ, "NEML2_CAPI_COMPILE": "0"}
    result = subprocess.run(
        command, capture_output=True, text=True, env=variables, timeout=PATIENCE
    )
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


@pytest.mark.full("builds and runs a benchmark")
def test_the_program_of_the_benchmark_binds_what_it_reads(tmp_path: Path) -> None:
    """Once std::bind took all of its arrays, found by its argument, and bound none."""
    header, source = (ROOT / "benchmarks" / name for name in ("evaluation.h", "ours.cpp"))
    build = [CXX, "-std=c++17", "-O1", f"-I{INCLUDE}", "-include", str(header), str(source)]
    program = kept("program", build, *LINK, "-ldl") / "program"
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "index.txt").write_text("strain 6\n")
    np.tile([1e-3, 0, 0, 0, 0, 0], (2, 1)).tofile(inputs / "strain.bin")
    task = [str(program), str(PREBUILT / "elasticity"), str(tmp_path), "forward", "2", "1"]
    done = subprocess.run(
        task, input=f"write {tmp_path} 2\n", capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.split()[::2] == ["ready", "written"], done.stdout
    stress = np.fromfile(tmp_path / "stress.bin").reshape(2, 6)
    # E = 200 GPa, nu = 0.3: the oedometric modulus, and the first Lame constant
    lame = 200e3 * 0.3 / (1.3 * 0.4)
    modulus = 200e3 * 0.7 / (1.3 * 0.4)
    expected = np.multiply([modulus, lame, lame], 1e-3)
    np.testing.assert_allclose(stress[1, :3], expected, rtol=1e-12)


@pytest.mark.everything("it compiles networks for two minutes")
def test_the_benchmark_of_packages_prints_two_tables_of_times() -> None:
    pytest.importorskip("torch")
    command = [sys.executable, str(ROOT / "benchmarks" / "packages.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    forward, backward = (part.splitlines() for part in done.stdout.split("backward\n"))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (*forward, *backward)
        if line.startswith("| ") and "save" not in line and "---" not in line
    ]
    torchs = ["aoti_load_package", "aot_compile", "eager"]
    names = ["Model, kernels", "Graph, built-in", "Graph, libtorch", *torchs]
    gradients = ["Model, kernels", "Graph, built-in", "aot_compile", "eager"]
    assert [row[0] for row in rows] == names + gradients
    for name, *times in rows:
        assert times.count("-") == (4 if name == "eager" else 0), name
        # one quick sample can take 0.00: the clock may tick in hundredths of a second
        assert all(float(time) >= 0 for time in times if time != "-"), name


def test_contestants_that_computed_something_else_are_found() -> None:
    expected = {
        "stress": np.array([100.0, 1.0]),
        "stress,strain": np.array([1e5, 1.0]),
        "stress,guess": np.array([1e-8, 0.0]),
    }
    same = {"stress": np.array([100.0, 1.0 + 1e-8]), "stress,strain": np.array([1e5, 1.01])}
    assert differing(same | {"stress,guess": np.array([0.0, 0.0])}, expected) == []
    assert differing(same, expected) == []  # what is zero may be left out

    assert differing({"stress,strain": expected["stress,strain"]}, expected) == ["stress"]
    other = {"stress": np.array([100.0, 1.0 + 1e-6]), "stress,strain": np.array([1e5, 2.0])}
    assert differing(other, expected) == ["stress", "stress,strain"]
    assert differing(same | {"stress": np.array([np.nan, 1.0])}, expected) == ["stress"]
    assert differing(same | {"stress": np.array([100.0])}, expected) == ["stress"]


def _on_device(device: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "benchmarks" / "device.py")
    command = [sys.executable, script, "elasticity", "--device", device, "--points", "100"]
    return subprocess.run([*command, *options], capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.full("compiles a text")
@pytest.mark.parametrize(("options", "moved"), [((), 120), (("--jacobian",), 408)])
def test_the_ceilings_of_a_device_are_those_of_operations_and_bytes(
    options: tuple[str, ...], moved: int
) -> None:
    """Hooke's law by hand: 5 sums, 3 differences and 10 products; 12 numbers, 36 of the tangent,
    and 24 bytes of the report."""
    done = _on_device("opencl:0", "--gflops", "18", "--gbytes", str(moved), *options)
    if "OpenCL" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    row = [cell.strip() for cell in done.stdout.splitlines()[-1].split("|")[1:-1]]
    by_operations = "nan" if options else "1e+09"  # the tangent's are not counted
    assert row[10:] == ["18", str(moved), by_operations, "1e+09"]
    assert row[7:9] == ["nan", "nan"]  # tensors and packages are CUDA's
    assert all(float(number) > 0 for number in (*row[2:7], row[9]))


@pytest.mark.full("compiles a text")
def test_a_device_that_is_not_there_is_told_by_the_benchmark() -> None:
    done = _on_device("opencl:99")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Another device: --device opencl:0" in done.stderr
