"""Measure the lines of scenarios.py beside an earlier commit, and write the ratios.

    python against.py --programs DIR --before CHECKOUT PYTHON DIR [--output DIR] [--only PATTERN]

`python3 build.py bench --against COMMIT` prepares what this needs, and calls it. A ratio is the
time of this checkout over the commit's, each contestant beside itself, in turns. Where pages
of memory happen to lie makes a pair of processes differ by up to 15 %: a ratio above the limit is
measured by four more pairs, and the median counts. Kernels are of the examples that each ships.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from contestants import BEFORE, Places
from machine import machine
from report import Measured, table
from run import Bench, chosen
from scenarios import BOUND, LANES, MEMORY, PYTHON, C, Key, Line

OURS = (C, *LANES, PYTHON, BOUND)
LIMIT = 1.03
MORE_PAIRS = 4


def paired(line: Line) -> Line | None:
    """The line with our contestants, now and before; None if it has none of them."""
    ours = [name for name in OURS if name in line.contestants]
    if not ours:
        return None
    return line._replace(contestants=tuple(n for name in ours for n in (name, name + BEFORE)))


def ratios(measured: Measured) -> dict[Key, float]:
    """The time of each contestant over its time before."""
    found = {}
    for key in measured.samples:
        before = key._replace(contestant=key.contestant + BEFORE)
        if before in measured.samples:
            found[key] = measured.ratio(key, before)
    return found


def measure(bench: Bench, line: Line) -> tuple[dict[Key, float], list[str]]:
    """The ratios of a line and what went wrong; what is over the limit is measured again."""
    first = bench.measure(line)
    found = ratios(first)
    slow = {key: [ratio] for key, ratio in found.items() if ratio > LIMIT}
    names = {key.contestant for key in slow}
    again = tuple(n for n in line.contestants if n.removesuffix(BEFORE) in names)
    for _ in range(MORE_PAIRS if slow else 0):
        for key, ratio in ratios(bench.measure(line._replace(contestants=again))).items():
            slow.get(key, []).append(ratio)
    return found | {key: statistics.median(all_) for key, all_ in slow.items()}, first.notes


def written(found: dict[Key, float]) -> str:
    """A row for each task; what is over the limit is marked."""
    tasks = dict.fromkeys(key[:4] for key in found)
    rows = []
    for task in tasks:
        model, operation, points, threads = task
        cells = [
            f"{found[k]:.2f}{' !' * (found[k] > LIMIT)}" if k in found else "" for k in keys(task)
        ]
        rows.append([model, operation, f"{points:,}", str(threads or "all"), *cells])
    return table(["model", "operation", "points", "threads", *OURS], rows)


def keys(task: tuple[str, str, int, int]) -> list[Key]:
    return [Key(*task, contestant) for contestant in OURS]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=Path, metavar="DIR", help="the contestants in C")
    parser.add_argument(
        "--before",
        type=Path,
        nargs=3,
        required=True,
        metavar=("CHECKOUT", "PYTHON", "DIR"),
        help="the earlier commit: its files, a Python with its wheel, its contestants in C",
    )
    parser.add_argument("--output", type=Path, default=Path("bench-output"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="few samples, at most 1000 points")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="lines whose title it matches"
    )
    arguments = parser.parse_args()
    lines = [pair for line in chosen(arguments.only, arguments.quick) if (pair := paired(line))]
    tree, interpreter, programs = arguments.before
    places = Places(arguments.programs, None, (tree, interpreter, programs))
    found: dict[Key, float] = {}
    notes: list[str] = []
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="neml2_capi_bench_") as scratch:
        bench = Bench(places, Path(scratch), lines, arguments.quick)
        about = ", ".join(f"{name} {value}" for name, value in machine(None).items())
        for number, line in enumerate(lines, 1):
            print(f"[{number}/{len(lines)}] {line.title}", flush=True)
            more, told = measure(bench, line)
            found |= more
            notes += told
            text = f"# Times over the times of {tree.name}\n\n{about}\n\n{written(found)}\n"
            (arguments.output / "against.md").write_text(text, encoding="utf-8")
    print("\n" + written(found), *notes, sep="\n")
    slow = [key for key, ratio in found.items() if ratio > LIMIT and key.operation != MEMORY]
    print(f"\n{len(slow)} of {len(found)} above {LIMIT}; written: {arguments.output}/against.md")
    return 1 if slow or not found else 0


if __name__ == "__main__":
    sys.exit(main())
