"""Start the contestants as processes and talk to them: the protocol of serve.h."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scenarios import ALL, BOUND, HAND, LANES, LIMIT, MFRONT, NEML2, NEML2_PYTHON, PYTHON, C, Key

HERE = Path(__file__).resolve().parent
PROGRAMS = dict.fromkeys((C, *LANES), "bench_ours")
PROGRAMS |= {LIMIT: "bench_limit", HAND: "bench_hand", MFRONT: "bench_mfront", NEML2: "bench_neml2"}
BEFORE = ", before"  # ends the name of a contestant of an earlier commit
KINDS = {PYTHON: "forward", BOUND: "bound", NEML2_PYTHON: "neml2"}


class Absent(Exception):
    """A contestant that cannot take part, and why."""


class Broken(Exception):
    """A contestant that took part and broke off, and why."""


@dataclass(frozen=True)
class Places:
    """Where the contestants are: the folder of the programs, and a Python with NEML2's runtime."""

    programs: Path | None
    reference: Path | None
    # An earlier commit: its checkout, a Python with its wheel, the folder of its programs.
    earlier: tuple[Path, Path, Path] | None = None

    def command(self, contestant: str) -> list[str | Path]:
        if contestant.endswith(BEFORE) and self.earlier:
            tree, interpreter, programs = self.earlier
            contestant = contestant.removesuffix(BEFORE)
            if contestant in KINDS:
                return [interpreter, tree / "benchmarks" / "evaluate.py", KINDS[contestant]]
            return [programs / PROGRAMS[contestant]]
        if contestant in KINDS:
            python = self.reference if contestant == NEML2_PYTHON else Path(sys.executable)
            if python is None:
                raise Absent("there is no Python with NEML2's own runtime")
            return [python, HERE / "evaluate.py", KINDS[contestant]]
        program = self.programs / PROGRAMS[contestant] if self.programs else None
        if program is None or not program.exists():
            raise Absent("its program was not built")
        return [program]


def threads_of(key: Key) -> int:
    return len(os.sched_getaffinity(0)) if key.threads == ALL else key.threads


class Contestant:
    """A process that evaluates one key on demand. Absent if it cannot."""

    def __init__(self, key: Key, places: Places, artifact: Path, inputs: Path) -> None:
        threads = str(threads_of(key))
        task: list[str | Path] = [artifact, inputs, key.operation, str(key.points), threads]
        variables = {"OMP_NUM_THREADS": threads, "NEML2_CAPI_THREADS": threads}
        command: list[str | Path] = [*places.command(key.contestant), *task]
        start = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        try:
            self.load = float(self._answer())
            self.start = time.perf_counter() - start
        except BaseException:
            self.close()
            raise

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline().strip()
        word, _, rest = line.partition(" ")
        if not line or word == "failed":
            raise Absent(rest or f"it ended with status {self._process.wait()}")
        return str(rest or word)

    def _ask(self, question: str) -> str:
        assert self._process.stdin
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        try:
            return self._answer()
        except Absent as reason:
            raise Broken(str(reason)) from None

    def run(self, calls: int) -> float:
        """The seconds that so many calls take."""
        return float(self._ask(f"run {calls}"))

    def results(self, folder: Path, points: int) -> dict[str, NDArray[np.float64]]:
        """Return the results of the first points, flat."""
        folder.mkdir(parents=True)
        self._ask(f"write {folder} {points}")
        return {path.stem: np.fromfile(path) for path in folder.glob("*.bin")}

    @property
    def memory(self) -> float:
        """The most that was resident so far, in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s*(\d+) kB", status)
        return int(found[1]) / 1e3 if found else float("nan")

    def close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        if self._process.stdout:
            self._process.stdout.close()
        self._process.wait()


@contextmanager
def started(key: Key, places: Places, artifact: Path, inputs: Path) -> Iterator[Contestant]:
    contestant = Contestant(key, places, artifact, inputs)
    try:
        yield contestant
    finally:
        contestant.close()
