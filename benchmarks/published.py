"""One thread here beside NEML2's published figures, for all its benchmark models.

    python benchmarks/published.py CHECKOUT [NAME ...] [--points N] [--target NAME]

CHECKOUT is a clone of NEML2's repository: benchmark/ has models and their loading, and
benchmark/results what compiled models took on the processor and the graphics card named there. A
model is compiled by `neml2-capi compile --kernels only`, driven on one thread through the steps of
its own driver, and compared at all of them with the same model in NEML2's Python, for a few of the
points. Times are microseconds a point for the whole history: the least published one over all
numbers of points, and the median of some runs here. Of mxpc, a point is a grain. It needs neml2,
torch and a C compiler.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine
from report import table

from neml2_capi import Model, drive
from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import folders

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("elasticity", "isoharden", "radret", "gtntheig", "chaboche2", "chaboche4", "chaboche6")
CRYSTALS = ("scpcoup", "scpcoupmult", "scpdecoup", "scpdecoupexp", "tcpsingle", "tcprandom", "mxpc")
TARGETS = ("x86-64-v3", "x86-64-v4")
DEVICES = ("cpu", "cuda")
#: Points that NEML2's Python evaluates, and grains of the polycrystal.
COMPARED = 4
GRAINS = 8
#: Models whose own tolerances are coarser than the comparison, and finer ones for it: absolute and
#: relative.
FINER = {"tcprandom": (1e-13, 1e-11)}
RUNS = 5


def prepared(checkout: Path, name: str, points: int, into: Path) -> None:
    """Write the loading of a model, and NEML2's own results for its first points."""
    sys.path.insert(0, str(ROOT / "tests" / "neml2"))
    import eager
    import torch
    from neml2 import load_input

    eager.install()
    torch.set_default_dtype(torch.float64)
    file = checkout / "benchmark" / name / "model.i"
    driver = load_input(file, pre=(f"nbatch={points}", "device=cpu")).get_driver("driver")
    found: dict[str, Any] = {"time": driver.prescribed_time.data.numpy()}
    found |= {f"force:{n}": v.data.numpy() for n, v in driver.prescribed.items()}
    found |= {f"initial:{n}": v.data.numpy() for n, v in driver.ics.items()}
    if name != "mxpc":
        few = slice(0, COMPARED)
        driver.prescribed_time = _some(driver.prescribed_time, few, 1)
        driver.prescribed = {n: _some(v, few, 1) for n, v in driver.prescribed.items()}
        driver.ics = {n: _some(v, few, 0) for n, v in driver.ics.items()}
    for part in driver.model.modules():
        if name in FINER and hasattr(part, "solver"):
            part.solver.atol, part.solver.rtol = FINER[name]
    with torch.no_grad():
        driver.run()
    for variable in driver.model.output_spec:
        rows = [row[variable].data.numpy() for row in driver.result_out[1:]]
        found[f"eager:{variable}"] = np.stack(np.broadcast_arrays(*rows))
    np.savez(into, **found)


def _some(value: Any, few: slice, axis: int) -> Any:
    """The first points of a typed tensor, whose points lie on an axis, if it has one for them."""
    data = value.data
    own = data.ndim - value.sub_batch_ndim - len(type(value).BASE_SHAPE)
    if own <= axis:
        return value
    data = data[(slice(None),) * axis + (few,)]
    return type(value)(data, sub_batch_ndim=value.sub_batch_ndim)


def compiled(checkout: Path, name: str, points: int, folder: Path) -> Path:
    """The artifact of a model on kernels."""
    source = checkout / "benchmark" / name / "model.i"
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(source)]
    command += [f"nbatch:={points if name == 'mxpc' else 2}", "device:=cpu", "--driver", "driver"]
    command += ["--output-dir", str(folder), "--kernels", "only", "--target", TARGETS[0], "-q"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip().splitlines()[-1])
    return next(folder.glob("*/metadata.json")).parent


def driven(artifact: Path, loading: Any, name: str) -> tuple[float, Any]:
    """Seconds of the whole history, the median of some runs, and results to be compared."""
    model = Model(artifact)
    model.options.update({"threads": 1, "kernels": "required"})
    known = {h.output for h in model.histories} | set(model.inputs.names)
    forces, initial = (
        {n.partition(":")[2]: loading[n] for n in loading.files if n.startswith(kind)}
        for kind in ("force:", "initial:")
    )
    forces = {name: value for name, value in forces.items() if name in model.inputs.names}
    initial = {name: value for name, value in initial.items() if name in known}

    def results() -> Any:
        return drive(
            model, loading["time"], forces, initial, least_step=1.0, progress=False, time="t"
        )

    taken = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        results()
        taken.append(time.perf_counter() - begin)
    if name in FINER:
        model.options.update(zip(("atol", "rtol"), FINER[name], strict=True))
    return statistics.median(taken), results()


def difference(results: Any, loading: Any) -> float:
    """The greatest difference to NEML2's Python at all steps, relative to a variable's greatest."""
    worst = 0.0
    for name in (n for n in loading.files if n.startswith("eager:")):
        theirs = loading[name]
        ours = np.asarray(results[name.partition(":")[2]])[1:]
        if ours.ndim > theirs.ndim:
            theirs = theirs[:, np.newaxis]
        elif theirs.ndim > ours.ndim:
            ours = ours[:, np.newaxis]
        ours = ours[:, : theirs.shape[1]] if theirs.shape[1] > 1 else ours[:, :1]
        if "orientation" in name:
            ours, theirs = _rotations(ours), _rotations(theirs)
        size = np.abs(theirs).max() or 1.0
        worst = max(worst, float(np.abs(ours - theirs).max() / size))
    return worst


def _rotations(parameters: Any) -> Any:
    """Unit quaternions, as outer products, of modified Rodrigues parameters (..., 3).

    A parameter and its shadow, the same rotation, have the same product.
    """
    square = (parameters**2).sum(-1, keepdims=True)
    quaternion = np.concatenate([1 - square, 2 * parameters], -1) / (1 + square)
    return quaternion[..., :, np.newaxis] * quaternion[..., np.newaxis, :]


def published(checkout: Path, name: str, device: str) -> tuple[float, int]:
    """The least published time of a point, microseconds, and its number of points."""
    folder = max((checkout / "benchmark" / "results").glob(f"*_{device}_float64_aoti"))
    rows = list(csv.DictReader((folder / f"{name}.csv").read_text().splitlines()))
    return min((float(r["median_ms"]) / int(r["nbatch"]) * 1e3, int(r["nbatch"])) for r in rows)


def hardware(checkout: Path) -> str:
    """The processor and the card of the published figures."""
    folder = checkout / "benchmark" / "results"
    known = [
        json.loads((max(folder.glob(f"*_{d}_float64_aoti")) / "metadata.json").read_text())
        for d in DEVICES
    ]
    cpu = known[0]["cpu"]
    return f"{cpu['logical_cores']} threads of {cpu['model']}; {known[1]['cuda']['device_name']}"


def row(checkout: Path, name: str, points: int, targets: list[str]) -> list[str]:
    """The cells of a model."""
    points = GRAINS if name == "mxpc" else points
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        file = folder / "loading.npz"
        # A process of its own keeps torch's threads and memory out of what is timed.
        process = multiprocessing.get_context("spawn").Process(
            target=prepared, args=(checkout, name, points, file)
        )
        process.start()
        artifact = compiled(checkout, name, points, folder)
        process.join()
        loading = np.load(file)
        theirs = [published(checkout, name, device)[0] for device in DEVICES]
        cells = [name, *(f"{value:.2f}" for value in theirs)]
        worst = 0.0
        for target in targets:
            copy = folder / target
            shutil.copytree(artifact, copy)
            for kernels in folders(copy):
                build(kernels, (target,))
            taken, results = driven(copy, loading, name)
            ours = taken / points * 1e6
            cells += [f"{ours:.2f}", *(f"{value / ours:.2f}" for value in theirs)]
            worst = max(worst, difference(results, loading))
    return [*cells, f"{worst:.1e}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES + CRYSTALS)
    parser.add_argument("--points", type=int, default=2048)
    parser.add_argument("--target", action="append", choices=TARGETS, help="both by default")
    arguments = parser.parse_args()
    checkout, targets = arguments.checkout.resolve(), arguments.target or list(TARGETS)
    os.environ.setdefault("NEML2_CAPI_COMPILER", sys.executable)
    here = machine(None)
    print(f"Published: {hardware(checkout)}. Here: one thread of {here['processor']}.\n")
    heads = ["model", *DEVICES]
    for target in targets:
        heads += [target, *(f"{device} / {target}" for device in DEVICES)]
    heads += ["difference"]
    rows = []
    for name in arguments.names:
        try:
            rows.append(row(checkout, name, arguments.points, targets))
        except Exception as error:
            reason = f"{error}".replace("|", "\\|")[:150]
            rows.append([name, *[""] * (len(heads) - 2), reason])
        print(*rows[-1], sep=" | ", flush=True)
    print("\n" + table(heads, rows))


if __name__ == "__main__":
    main()
