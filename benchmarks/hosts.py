"""Time a material in the programs that call it: one call, and its share of the whole job.

    python benchmarks/hosts.py [HOST ...] [--ccx PROGRAM]

CalculiX and Kratos load a plug-in, and call it point by point; between them and the plug-in stands
umat_timer.c, which takes 0.1 us a call. The programs of examples/hosts call the model for all
points at once; there Model.jacobian is timed. One thread, the median of three jobs each. Hosts that
are not installed are left out: `pip install neml2_capi[hosts]`, and for CalculiX
`bash $(python -m neml2_capi --calculix)`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neml2_capi.plugin import make

ROOT = Path(__file__).resolve().parents[1]
ARTIFACT = ROOT / "examples" / "artifacts" / "combined_hardening"
BUILT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neml2_capi" / "hosts"
ELEMENTS = (24, 6, 6)  # of the beam
ROUNDS = 3
# A program of examples/hosts, whose material is timed.
TIMED = """
import json, runpy, sys, time
import numpy as np
from neml2_capi import Model
calls = points = 0
spent = 0.0
of_model = Model.jacobian
def jacobian(model, inputs, *more, **options):
    global calls, points, spent
    start = time.perf_counter()
    made = of_model(model, inputs, *more, **options)
    spent += time.perf_counter() - start
    calls += 1
    points += made[0]["stress"].size // 6
    return made
Model.jacobian = jacobian
program = sys.argv.pop(1)
sys.path.insert(0, program.rpartition("/")[0])
runpy.run_path(program, run_name="__main__")
open("report.json", "w").write(json.dumps([calls, points, spent]))
"""


class Job(NamedTuple):
    """Times of a job, in seconds."""

    calls: int
    points: int
    material: float
    whole: float


def run(command: list[str], folder: Path, **variables: str) -> float:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NEML2_CAPI_NUM_THREADS": "1", **variables}
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(
            f"{command} ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr}"
        )
    return time.perf_counter() - start


def timer(folder: Path) -> Path:
    """A library that times a plug-in beside it."""
    make(ARTIFACT, folder / "libsteel.so")
    library = folder / "library" / "libTIMED.so"
    library.parent.mkdir()
    source = Path(__file__).with_name("umat_timer.c")
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", library, source, "-ldl"], check=True)
    return library


def with_timer(command: Callable[[Path, Path], list[str]]) -> Callable[[Path], Job]:
    def job(folder: Path) -> Job:
        library = timer(folder)
        whole = run(
            command(folder, library),
            folder,
            LD_LIBRARY_PATH=str(library.parent),
            TIMED_UMAT=str(folder / "libsteel.so"),
            TIMED_REPORT=str(folder / "report"),
        )
        calls, spent = map(int, (folder / "report").read_text().split())
        return Job(calls, calls, 1e-9 * spent, whole)

    return job


def beam() -> str:
    """A deck: a cantilever whose tip is bent in ten increments."""
    shape = [n + 1 for n in ELEMENTS]
    number = np.arange(1, np.prod(shape) + 1).reshape(shape)
    lines = ["*NODE, NSET=NALL"]
    lines += [f"{n}, {i}, {j}, {k}" for (i, j, k), n in np.ndenumerate(number)]
    lines.append("*ELEMENT, TYPE=C3D8, ELSET=EALL")
    corners = [(0, 0, 0), (0, 1, 0), (0, 1, 1), (0, 0, 1)]
    corners += [(1, b, c) for _, b, c in corners]
    for element, (i, j, k) in enumerate(np.ndindex(*ELEMENTS), 1):
        nodes = (number[i + a, j + b, k + c] for a, b, c in corners)
        lines.append(f"{element}, {', '.join(map(str, nodes))}")
    for name, nodes in (("FIXED", number[0]), ("TIP", number[-1])):
        lines += [f"*NSET, NSET={name}", *(f"{n}," for n in nodes.ravel())]
    lines += ["*MATERIAL, NAME=@ABAQUS_TIMED@STEEL", "*DEPVAR", "13"]
    lines += ["*USER MATERIAL, CONSTANTS=2", "200000, 150"]
    lines += ["*SOLID SECTION, ELSET=EALL, MATERIAL=@ABAQUS_TIMED@STEEL"]
    lines += ["*BOUNDARY", "FIXED, 1, 3", "*STEP, INC=100", "*STATIC, DIRECT", "1, 10"]
    lines += [
        "*BOUNDARY",
        "TIP, 3, 3, 0.5",
        "*NODE PRINT, NSET=TIP, TOTALS=ONLY",
        "RF",
        "*END STEP",
    ]
    return "\n".join(lines) + "\n"


def calculix(program: Path) -> Callable[[Path], Job]:
    def command(folder: Path, library: Path) -> list[str]:
        (folder / "beam.inp").write_text(beam())
        return [str(program), "beam"]

    return with_timer(command)


def kratos(folder: Path, library: Path) -> list[str]:
    cube = ROOT / "tests" / "hosts" / "kratos.py"
    return [sys.executable, str(cube), str(library), "200000,150", "13", "20", "1e-2"]


def in_python(name: str, *arguments: str) -> Callable[[Path], Job]:
    def job(folder: Path) -> Job:
        program = ROOT / "examples" / "hosts" / f"{name}.py"
        whole = run(
            [sys.executable, "-c", TIMED, str(program), str(ARTIFACT), *arguments],
            folder,
            LD_LIBRARY_PATH=f"{sys.prefix}/lib",
        )
        calls, points, spent = json.loads((folder / "report.json").read_text())
        return Job(calls, points, spent, whole)

    return job


def hosts(ccx: Path) -> dict[str, tuple[bool, Callable[[Path], Job]]]:
    """By name: whether it is there, and its job."""

    def there(*modules: str) -> bool:
        return all(importlib.util.find_spec(module) for module in modules)

    return {
        "CalculiX": (ccx.exists(), calculix(ccx)),
        "Kratos": (there("KratosMultiphysics"), with_timer(kratos)),
        "scikit-fem": (there("skfem"), in_python("scikit_fem")),
        "FEniCSx": (there("dolfinx", "dolfinx_external_operator"), in_python("fenicsx")),
        "PETSc SNES": (there("petsc4py", "skfem"), in_python("petsc_snes")),
        "simcoon": (there("simcoon"), in_python("simcoon_law")),
    }


def measure(job: Callable[[Path], Job]) -> Job:
    jobs = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            jobs.append(job(Path(folder)))
    return sorted(jobs, key=lambda each: each.material / each.calls)[ROUNDS // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("host", nargs="*")
    parser.add_argument("--ccx", type=Path, default=BUILT / "calculix-2.20-O2" / "ccx")
    arguments = parser.parse_args()
    print(
        "| host | calls | points of a call | a call, us | a point, us | the job, s | material, % |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, (is_there, job) in hosts(arguments.ccx).items():
        if arguments.host and name not in arguments.host:
            continue
        if not is_there:
            print(f"| {name} | not installed | | | | | |")
            continue
        found = measure(job)
        cells = [
            f"{found.calls:,}",
            f"{found.points / found.calls:,.0f}",
            f"{1e6 * found.material / found.calls:.1f}",
            f"{1e6 * found.material / found.points:.2f}",
            f"{found.whole:.2f}",
            f"{100 * found.material / found.whole:.0f}",
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
