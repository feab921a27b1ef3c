"""Models of any size: what they take to compile, and what a site costs.

    NEML2_CAPI_COMPILER=... python benchmarks/sizes.py [NAME ...] [--sizes N ...] [--points N]

Compiles the models of sizes/ by `neml2-capi compile --kernels only`, for growing numbers of sites:
cells in a row, bins of a size distribution that share what is dissolved, and crystals with a mean
stress. It tells the operations of the Jacobian and of the Newton step, the C text of all kernels,
the processor seconds of the compilation, and the time of a step on one thread: a point and a site
of many points, and a site if there is one point alone. The last column is the difference from
NEML2's own solution without a compiler, relative to the greatest number.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import children
from numpy.typing import NDArray

from neml2_capi import Model

HERE = Path(__file__).parent / "sizes"
#: The folder of eager.py: NEML2's solvers without its extension.
EAGER = HERE.parents[1] / "tests" / "neml2"
Inputs = dict[str, NDArray[Any]]


def cells(sites: int, points: int) -> Inputs:
    place = (np.arange(sites) + 0.5) / sites
    bump = np.exp(-0.5 * ((place - 0.25) / 0.1) ** 2)
    scale = 1.0 + 0.1 * np.random.default_rng(0).random((points, 1))
    return {"c~1": scale * bump, "t": np.full(points, 0.05), "t~1": np.zeros(points)}


def bins(sites: int, points: int) -> Inputs:
    number = np.random.default_rng(0).random((points, sites)) * 1e-3 / sites
    return {"number~1": number, "t": np.full(points, 0.01), "t~1": np.zeros(points)}


def grains(sites: int, points: int) -> Inputs:
    random = np.random.default_rng(0)
    axial = np.tile([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], (points, 1))
    return {
        "elastic_strain~1": np.zeros((points, sites, 6)),
        "orientation~1": 0.3 * random.standard_normal((points, sites, 3)),
        "slip_hardening~1": np.zeros((points, sites)),
        "deformation_rate~1": 1e-3 * axial,
        "target_cauchy_stress~1": np.zeros((points, 6)),
        "control": axial,
        "prescribed": 1e-3 * axial,
        "vorticity": np.zeros((points, 3)),
        "t": np.full(points, 0.5),
        "t~1": np.zeros(points),
    }


@dataclass(frozen=True)
class Case:
    inputs: Callable[[int, int], Inputs]
    #: Variables whose sites the compiler must be told.
    sited: tuple[str, ...]
    sizes: tuple[int, ...]


CASES = {
    "cells": Case(cells, ("c",), (8, 32, 128, 512)),
    "bins": Case(bins, ("number",), (8, 32, 128, 512)),
    "grains": Case(grains, (), (2, 8, 32, 128)),
}

#: NEML2's own solution of the first points, in the interpreter that has it.
_EAGER = """
import sys
import numpy as np
import torch
torch.set_default_dtype(torch.float64)
import neml2
file, sites, folder, helpers = sys.argv[1:]
sys.path.insert(0, helpers)
import eager
eager.install()
given = np.load(f"{folder}/given.npz")
model = neml2.load_model(file, "model")
values = []
for name, kind in model.input_spec.items():
    value = torch.tensor(given[name])
    values.append(kind(value, sub_batch_ndim=value.ndim - 1 - len(kind.BASE_SHAPE)))
made = model(*values)
made = made if isinstance(made, tuple) else (made,)
results = zip(model.output_spec, made)
np.savez(f"{folder}/eager.npz", **{name: value.data.detach().numpy() for name, value in results})
"""


def compiled(name: str, sites: int, folder: Path) -> float:
    """Compile a model into a folder; return the processor seconds."""
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(HERE / f"{name}.i")]
    command += [f"n:={sites}", "--model", "model", "--output-dir", str(folder), "-q"]
    command += ["--kernels", "only"]
    for variable in CASES[name].sited:
        command += ["--example-batch-shape", f"{variable}=(2;{sites})"]
    begin = children()
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    return children() - begin


def microseconds(model: Model, inputs: Inputs) -> float:
    """The time of a point, the least of seven samples."""
    call, points = model.bind(inputs), len(inputs["t"])
    calls, taken = max(64 // points, 1), []
    for _ in range(7):
        begin = time.process_time()
        for _ in range(calls):
            call()
        taken.append(time.process_time() - begin)
    return min(taken) / (calls * points) * 1e6


def difference(name: str, sites: int, folder: Path, model: Model) -> float:
    """Between two points by kernels and by NEML2 without a compiler."""
    given = CASES[name].inputs(sites, 2)
    arrays: dict[str, Any] = dict(given)
    np.savez(folder / "given.npz", **arrays)
    text = re.sub("^n = .*", f"n = {sites}", (HERE / f"{name}.i").read_text(), flags=re.MULTILINE)
    file = folder / f"{name}.i"
    file.write_text(text)
    python = os.environ.get("NEML2_CAPI_COMPILER", sys.executable)
    subprocess.run([python, "-c", _EAGER, *map(str, (file, sites, folder, EAGER))], check=True)
    eager, ours = np.load(folder / "eager.npz"), model.forward(given)
    return max(
        float(np.abs(eager[key].reshape(value.shape) - value).max() / np.abs(value).max())
        for key, value in ours.items()
    )


def line(name: str, sites: int, points: int, folder: Path) -> str:
    """The row of a size in the table."""
    seconds = compiled(name, sites, folder)
    kernels = folder / "model" / "kernels" / "float64"
    document = json.loads((kernels / "kernels.json").read_text())
    operations = {k["name"].rpartition("_")[2]: k["operations"] for k in document["kernels"]}
    text = sum(file.stat().st_size for file in kernels.glob("*.c")) / 1e3
    model = Model(folder / "model")
    model.options["threads"] = 1
    time_of_point = microseconds(model, CASES[name].inputs(sites, points))
    alone = microseconds(model, CASES[name].inputs(sites, 1)) / sites
    apart = f"{difference(name, sites, folder, model):.0e}"
    counts = f"{operations['jacobian']} | {operations['solve']}"
    rest = f"{time_of_point:.2f} | {time_of_point / sites:.4f} | {alone:.4f} | {apart}"
    return f"| {name} | {sites} | {counts} | {text:.0f} | {seconds:.0f} | {rest} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(CASES))
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--points", type=int, default=256)
    arguments = parser.parse_args()
    os.environ.setdefault("NEML2_CAPI_COMPILER", sys.executable)
    heads = ["model", "sites", "Jacobian", "step", "C, kB", "compile, s", "us a point", "a site"]
    heads += ["a site of one point", "eager"]
    print(f"| {' | '.join(heads)} |")
    print(f"|{' --- |' * len(heads)}")
    for name in arguments.names:
        for sites in arguments.sizes or CASES[name].sizes:
            with tempfile.TemporaryDirectory() as scratch:
                print(line(name, sites, arguments.points, Path(scratch)), flush=True)


if __name__ == "__main__":
    main()
