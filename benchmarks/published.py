"""One thread here against the 32 threads of NEML2's published figures, for its benchmark models.

    python benchmarks/published.py CHECKOUT [NAME ...] [--points N]

CHECKOUT is a clone of NEML2's repository: benchmark/ has models and their loading, and
benchmark/results what compiled models took on the processor named there. Models are compiled by
`neml2-capi compile --kernels only`, and driven through the same 99 steps. The least published time
per point and step, over all batch sizes, is compared. NEML2_CAPI_COMPILER names a Python that has
neml2 and torch.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import machine

from neml2_capi import Model, drive

NAMES = ("chaboche2", "isoharden")
STEPS = 99
#: Decades of the end times, from the first point to the last: end_time in the input files.
DECADES = {"chaboche2": (5.0, 5.0), "isoharden": (-1.0, 5.0)}


def compiled(checkout: Path, name: str, folder: Path) -> Model:
    """A model of the checkout, on its kernels and one thread."""
    source = checkout / "benchmark" / name / "model.i"
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(source), "nbatch:=2"]
    command += ["--model", "model", "--output-dir", str(folder), "--kernels", "only", "-q"]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    model = Model(folder / "model")
    model.options["threads"] = 1
    return model


def measured(model: Model, name: str, points: int) -> float:
    """Microseconds per point and step, the median of five transients."""
    fractions = np.linspace(0.0, 1.0, STEPS + 1)
    times = fractions[:, np.newaxis] * np.logspace(*DECADES[name], points)
    strain = fractions[:, np.newaxis, np.newaxis] * np.array([0.1, -0.05, -0.05, 0.0, 0.0, 0.0])
    taken = []
    for _ in range(5):
        begin = time.perf_counter()
        results = drive(model, times, {"strain": strain}, progress=False)
        taken.append(time.perf_counter() - begin)
    assert np.isfinite(results["stress"][-1]).all(), "a point failed"
    return statistics.median(taken) / (points * STEPS) * 1e6


def published(checkout: Path, name: str) -> tuple[float, str]:
    """The least time per point and step, and the processor."""
    folder = max((checkout / "benchmark" / "results").glob("*_cpu_float64_aoti"))
    rows = list(csv.DictReader((folder / f"{name}.csv").read_text().splitlines()))
    least = min(float(row["median_ms"]) / int(row["nbatch"]) for row in rows) / STEPS * 1e3
    cpu = json.loads((folder / "metadata.json").read_text())["cpu"]
    return least, f"{cpu['logical_cores']} threads of {cpu['model']}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES)
    parser.add_argument("--points", type=int, default=8192)
    arguments = parser.parse_args()
    os.environ.setdefault("NEML2_CAPI_COMPILER", sys.executable)
    print("| model | published, us | on | here, us | on | published / here |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in arguments.names:
        with tempfile.TemporaryDirectory() as scratch:
            ours = measured(
                compiled(arguments.checkout.resolve(), name, Path(scratch)), name, arguments.points
            )
        theirs, there = published(arguments.checkout, name)
        here = f"1 thread of {machine(None)['processor']}"
        print(f"| {name} | {theirs:.3f} | {there} | {ours:.3f} | {here} | {theirs / ours:.2f} |")


if __name__ == "__main__":
    main()
