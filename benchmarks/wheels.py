"""Compare two wheels on the laws that they ship, in C: the published one beside the compiler's.

    python benchmarks/wheels.py FIRST.whl SECOND.whl [--pairs 9] [--only PATTERN]

Each wheel is unpacked, and the caller in C (`ours.cpp`) is compiled for its library by `c++`. A
pair are two new processes, which take turns; its ratio is the least time of the second over
the least of the first, so that what else runs on the machine counts little. Where pages of memory
happen to lie makes pairs differ: the median of all is shown. Fails if one is above 1.03.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import zipfile
from contextlib import ExitStack
from pathlib import Path

from contestants import Contestant, Places, started
from loading import write_inputs
from machine import machine
from report import table
from scenarios import CHABOCHE, HARDENING, C, Key

HERE = Path(__file__).resolve().parent
LIMIT = 1.03
TASKS = [
    Key(model, operation, points, 1, C)
    for model, operations in (
        ("elasticity", ("forward", "jacobian")),
        (HARDENING, ("forward", "tangent")),
        (CHABOCHE, ("forward", "tangent")),
    )
    for operation in operations
    for points in (1, 10_000)
]
#: Samples of a pair, and seconds of each.
SAMPLES, SECONDS = 60, 0.003


def unpacked(wheel: Path, folder: Path) -> Path:
    """The package of a wheel, beside a folder with the caller."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    package = folder / "neml2_capi"
    (library,) = package.glob("lib/libneml2_capi.so.*")
    programs = folder / "programs"
    programs.mkdir()
    command: list[str | Path] = ["c++", "-std=c++20", "-O2", HERE / "ours.cpp", library]
    command += ["-I", package / "include"]
    command += [f"-Wl,-rpath,{library.parent}", "-o", programs / "bench_ours"]
    subprocess.run(command, check=True)
    return package


def ratio(tasks: list[tuple[Key, Path, Path]], inputs: Path) -> float:
    """The least time of the second package over the least of the first."""
    with ExitStack() as stack:
        pair: list[Contestant] = [
            stack.enter_context(started(key, Places(programs, None), artifact, inputs))
            for key, programs, artifact in tasks
        ]
        once = [min(each.run(1), each.run(1)) for each in pair]
        calls = [max(1, int(SECONDS / seconds)) for seconds in once]
        times: list[list[float]] = [[], []]
        for _ in range(SAMPLES):
            for each, count, found in zip(pair, calls, times, strict=True):
                found.append(each.run(count) / count)
    first, second = map(min, times)
    return second / first


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheels", type=Path, nargs=2, metavar="WHEEL")
    parser.add_argument("--pairs", type=int, default=9, help="pairs of processes for each task")
    parser.add_argument("--only", default="", metavar="PATTERN", help="tasks that match")
    arguments = parser.parse_args()
    print(", ".join(f"{name} {value}" for name, value in machine(None).items()))
    slow, rows = 0, []
    with tempfile.TemporaryDirectory(prefix="neml2_capi_wheels_") as scratch:
        packages = [
            unpacked(wheel, Path(scratch) / str(number))
            for number, wheel in enumerate(arguments.wheels)
        ]
        for key in TASKS:
            title = f"{key.model}, {key.operation}, {key.points:,} point{'s' * (key.points > 1)}"
            if not re.search(arguments.only, title):
                continue
            artifacts = [package / "examples" / key.model for package in packages]
            inputs = Path(scratch) / title
            write_inputs(key.model, artifacts[0], inputs, key.points)
            tasks = [
                (key, package.parent / "programs", artifact)
                for package, artifact in zip(packages, artifacts, strict=True)
            ]
            found = sorted(ratio(tasks, inputs) for _ in range(arguments.pairs))
            median = statistics.median(found)
            slow += median > LIMIT
            rows.append([title, f"{median:.3f}", f"{found[0]:.3f}", f"{found[-1]:.3f}"])
            print(*rows[-1], flush=True)
    print("\n" + table(["task", "median", "least", "most"], rows))
    return 1 if slow or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
