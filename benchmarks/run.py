"""Measure the lines of scenarios.py side by side, and write what they took.

    python run.py [--programs DIR] [--reference PYTHON] [--output DIR] [--quick] [--only PATTERN]

`python3 build.py bench` prepares what this needs, and calls it. The contestants of a line are all
started, their results are compared, and then they take turns, so that what disturbs the machine
meets all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import report
from compare import Results, differing
from contestants import BEFORE, Absent, Broken, Contestant, Places, started
from loading import write_inputs
from machine import machine
from scenarios import LANES, LIMIT, LINES, LOAD, MEMORY, START, Key, Line

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "models"))

import compile as models  # noqa: E402  (tests/models is no package)


class Bench:
    """What all lines share: how thorough, where the contestants are, and inputs once written."""

    def __init__(self, places: Places, scratch: Path, lines: list[Line], quick: bool) -> None:
        self.places, self.scratch, self.lines = places, scratch, lines
        self.rounds, self.sample, self.budget = (3, 0.01, 3.0) if quick else (9, 0.05, 25.0)
        self._inputs: dict[str, tuple[Path, Path, float]] = {}

    def inputs(self, model: str) -> tuple[Path, Path, float]:
        """The artifact of a model, its inputs for as many points as any line takes, and the mean
        count of Newton steps."""
        if model not in self._inputs:
            artifact = self.scratch / "packages" / model
            shutil.copytree(prepared(model), artifact, ignore=shutil.ignore_patterns("kernels"))
            most = max(max(line.points) for line in self.lines if line.model == model)
            folder = self.scratch / model
            self._inputs[model] = artifact, folder, write_inputs(model, artifact, folder, most)
        return self._inputs[model]

    def measure(self, line: Line) -> report.Measured:
        measured = report.Measured(line)
        try:
            artifact, folder, measured.steps = self.inputs(line.model)
            if START in line.operations:
                self._start_over_and_over(line, measured, artifact, folder)
            else:
                self._side_by_side(line, measured, artifact, folder)
        except Absent as reason:
            measured.notes.append(f"{line.title}: {reason}")
        except Broken as reason:
            measured.agree = False
            measured.notes.append(f"{line.title}: {reason}")
        return measured

    def _side_by_side(
        self, line: Line, measured: report.Measured, artifact: Path, folder: Path
    ) -> None:
        with ExitStack() as stack:
            contestants = {}
            for key in line.tasks():
                try:
                    contestants[key] = stack.enter_context(
                        started(key, self.places, self._artifact_of(key, artifact), folder)
                    )
                except Absent as reason:
                    measured.notes.append(f"{describe(key)}: {reason}")
            self._compare(contestants, measured)
            self._take_turns(contestants, measured)
            measured.memory = {key: c.memory for key, c in contestants.items()}

    def _take_turns(self, contestants: dict[Key, Contestant], measured: report.Measured) -> None:
        calls = {key: self._calls(key, contestant) for key, contestant in contestants.items()}
        measured.samples = {key: [] for key in contestants}
        end = time.monotonic() + self.budget
        for _ in range(self.rounds):
            for key, contestant in contestants.items():
                time.sleep(0.002)  # threads of the one before fall asleep
                measured.samples[key].append(contestant.run(calls[key]) / calls[key])
            if time.monotonic() > end:
                break

    def _calls(self, key: Key, contestant: Contestant) -> int:
        """As many as fill a sample."""
        calls = 1
        # If many points took long at load, one call is enough. Of few points that tells nothing:
        # Python imports meanwhile.
        if key.points <= 1000 or contestant.load < 0.5:
            while (took := contestant.run(calls)) < self.sample / 2:
                calls = min(10 * calls, int(1.2 * calls * self.sample / took) + 1)
        return calls

    def _compare(self, contestants: dict[Key, Contestant], measured: report.Measured) -> None:
        """All must have computed the same: values to 1e-9, derivatives to 1e-6 of the greatest."""
        expected: dict[tuple[str, int], Results] = {}
        for number, (key, contestant) in enumerate(contestants.items()):
            if key.contestant == LIMIT:
                continue
            with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
                results = contestant.results(Path(folder) / str(number), 1000)
            first = expected.setdefault((key.operation, key.points), results)
            for name in differing(results, first):
                measured.agree = False
                measured.notes.append(f"{describe(key)}: another result for {name}")

    def _artifact_of(self, key: Key, packages: Path) -> Path:
        """The artifact of a contestant: with kernels for one that runs on them."""
        target = LANES.get(key.contestant.removesuffix(BEFORE))
        if not target:
            return packages
        if target.endswith("v4") and "avx512dq" not in Path("/proc/cpuinfo").read_text():
            raise Absent("this machine has no AVX-512")
        if self.places.earlier:
            return self._shipped(key, target)
        try:
            return models.with_kernels(key.model, target)
        except models.NotCompiledError as error:
            raise Absent(str(error)) from error

    def _shipped(self, key: Key, target: str) -> Path:
        """An example as the checkout of the contestant ships it, with objects up to a target."""
        assert self.places.earlier
        is_before = key.contestant.endswith(BEFORE)
        shipped = (self.places.earlier[0] if is_before else ROOT) / "neml2_capi" / "examples"
        if not (shipped / key.model).is_dir():
            raise Absent("it is no example, of which kernels are compared")
        folder = self.scratch / ("before" if is_before else "now") / target / key.model
        if not folder.exists():
            shutil.copytree(shipped / key.model, folder)
            later = [each for each in LANES.values() if each > target]
            for file in folder.glob("kernels/*/kernels.json"):
                document = json.loads(file.read_text())
                document["objects"] = [o for o in document["objects"] if o["target"] not in later]
                file.write_text(json.dumps(document))
        return folder

    def _start_over_and_over(
        self, line: Line, measured: report.Measured, artifact: Path, folder: Path
    ) -> None:
        """New processes in turns: the time to the first result, and the memory at that moment."""
        keys = [key for key in line.tasks() if key.operation == START]
        for _ in range(self.rounds):
            for key in list(keys):
                forward = key._replace(operation="forward")
                try:
                    with started(forward, self.places, artifact, folder) as contestant:
                        values = contestant.start, contestant.load, contestant.memory
                except Absent as reason:
                    measured.notes.append(f"{describe(key)}: {reason}")
                    keys.remove(key)
                    continue
                for operation, value in zip((START, LOAD, MEMORY), values, strict=True):
                    samples = measured.samples.setdefault(key._replace(operation=operation), [])
                    samples.append(value)


def describe(key: Key) -> str:
    threads = "all threads" if key.threads == 0 else f"threads {key.threads}"
    points = f"{key.points:,} point" + "s" * (key.points != 1)
    return f"{key.contestant}, {key.model}, {key.operation}, {points}, {threads}"


def prepared(model: str) -> Path:
    """The artifact of a model: from the archive of the tests or the examples, or compiled."""
    try:
        return Path(models.artifact(model))
    except models.NotCompiledError as reason:
        prebuilt = ROOT / "examples" / "artifacts" / model
        if not prebuilt.is_dir():
            raise Absent(f"{model}: {reason}") from None
        return prebuilt


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=Path, metavar="DIR", help="the contestants in C and C++")
    parser.add_argument("--reference", type=Path, metavar="PYTHON", help="with NEML2's runtime")
    parser.add_argument("--output", type=Path, default=Path("bench-output"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="few samples, at most 1000 points")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="lines whose title it matches"
    )
    arguments = parser.parse_args()
    lines = list(chosen(arguments.only, arguments.quick))
    if not lines:
        parser.error(f"no line matches {arguments.only!r}; the lines are:\n" + all_titles())
    places = Places(arguments.programs, arguments.reference)
    done: list[report.Measured] = []
    with tempfile.TemporaryDirectory(prefix="neml2_capi_bench_") as scratch:
        bench = Bench(places, Path(scratch), lines, arguments.quick)
        known = machine(places.reference)
        for number, line in enumerate(lines, 1):
            start = time.monotonic()
            print(f"[{number}/{len(lines)}] {line.title} ... ", end="", flush=True)
            done.append(bench.measure(line))
            print(f"{time.monotonic() - start:.0f} s", flush=True)
            report.write(done, known, arguments.output)
    print("\n" + "\n\n".join(report.tables(done)))
    for measured in done:
        print(*measured.notes, sep="\n", end="\n" if measured.notes else "")
    print(f"\nwritten: {arguments.output}/results.md and results.json")
    return 0 if all(measured.agree for measured in done) else 1


def chosen(pattern: str, quick: bool) -> Iterator[Line]:
    """The lines of which the title matches; what is quick has few points."""
    for line in LINES:
        if not re.search(pattern, line.title):
            continue
        points = tuple(n for n in line.points if not quick or n <= 1000)
        if points:
            yield line._replace(points=points)


def all_titles() -> str:
    return os.linesep.join(line.title for line in LINES)


if __name__ == "__main__":
    sys.exit(main())
