"""Time two wheels beside each other on the laws that they ship.

    python benchmarks/wheels.py FIRST.whl SECOND.whl [--laws NAME ...] [--points 1 100 10000]

Each wheel is unpacked and served by processes of its own, which take turns: a bound call on one
thread, from a state behind three steps of loading. The ratio is the time of the first wheel over
the second's: the median over the rounds of a pair of processes, and of the pairs. Wheels that
differ by their compiler alone, as the published one (zig's) from the one of `build.py wheel`,
differ by the library: the kernels of the laws are the same objects.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

LAWS = ("elasticity", "isotropic_hardening", "chaboche")
POINTS = (1, 100, 10_000)
SAMPLE = 0.05  # seconds


def serve(law: str, points: int) -> None:
    """Answer each line, a number of calls, with the seconds that they take."""
    import numpy as np

    from neml2_capi import Model, examples

    model = Model(examples.path(law))
    model.options["threads"] = 1
    random = np.random.default_rng(0)
    strain, turn = random.standard_normal((2, points, 6)) * 2e-3
    timed = any(variable.name == "t" for variable in model.inputs)
    state = model.state(points)

    def inputs(now: np.ndarray, step: int) -> dict[str, np.ndarray]:
        return state.inputs({"strain": now} | ({"t": float(step)} if timed else {}))

    for step in range(1, 4):
        state.advance(model.forward(inputs(strain * step / 3, step)))
    call = model.bind({name: np.array(value) for name, value in inputs(strain + turn, 4).items()})
    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in range(int(line)):
            call()
        print(time.perf_counter() - begin, flush=True)


class Served:
    """A process that makes calls with the package of a folder."""

    def __init__(self, package: Path, law: str, points: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, "--serve", law, str(points)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(package)},
        )

    def seconds(self, calls: int) -> float:
        assert self._process.stdin and self._process.stdout
        print(calls, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def ratio(packages: list[Path], law: str, points: int, rounds: int) -> tuple[float, float]:
    """The ratio of a pair of processes, and the seconds of a call of the second one."""
    served = [Served(package, law, points) for package in packages]
    calls = 1
    while (taken := served[1].seconds(calls)) < SAMPLE / 2:
        calls *= max(2, round(SAMPLE / max(taken, 1e-6) / 2))
    served[0].seconds(calls)
    samples = [[one.seconds(calls) / calls for one in served] for _ in range(rounds)]
    for one in served:
        one.close()
    return (
        statistics.median(first / second for first, second in samples),
        statistics.median(second for _, second in samples),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheels", nargs="*", type=Path, metavar="WHEEL")
    parser.add_argument("--laws", nargs="+", default=LAWS)
    parser.add_argument("--points", nargs="+", type=int, default=POINTS)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--serve", nargs=2, metavar=("LAW", "POINTS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve[0], int(arguments.serve[1]))
        return
    if len(arguments.wheels) != 2:
        parser.error("name two wheels")
    with tempfile.TemporaryDirectory() as scratch:
        packages = [Path(scratch) / name for name in ("first", "second")]
        for wheel, package in zip(arguments.wheels, packages, strict=True):
            zipfile.ZipFile(wheel).extractall(package)
        print("| law | points | second, us | first / second | of the pairs |")
        print("| --- | --- | --- | --- | --- |")
        for law in arguments.laws:
            for points in arguments.points:
                found = [
                    ratio(packages, law, points, arguments.rounds) for _ in range(arguments.pairs)
                ]
                ratios = sorted(each for each, _ in found)
                microseconds = 1e6 * statistics.median(second for _, second in found)
                print(
                    f"| {law} | {points:,} | {microseconds:.3g} | {statistics.median(ratios):.3f} "
                    f"| {ratios[0]:.3f} to {ratios[-1]:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
