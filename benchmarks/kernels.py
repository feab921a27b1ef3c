"""Costs of kernels: operations, time to compile, size, and time per point in lanes and alone.

    python benchmarks/kernels.py [NAME ...] [--cc CC] [--target T] [--stages]

prints a table of kernels of models of tests/models/compile.py, and of the graphs without one.
Times to write and to compile are processor times. It needs neml2 and torch if the graphs
are not in the cache. --stages prints instead where `neml2-capi compile --kernels only` spends its
processor time, and needs both.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from machine import children

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "models")]

import compile as models  # noqa: E402
from recipes import RECIPES  # noqa: E402

from neml2_capi.kernels.build import DEFAULT_TARGETS, FLAGS, TARGETS, build  # noqa: E402
from neml2_capi.kernels.elimination import newton_step  # noqa: E402
from neml2_capi.kernels.emit import source  # noqa: E402
from neml2_capi.kernels.folder import write_sources  # noqa: E402
from neml2_capi.kernels.program import Program  # noqa: E402
from neml2_capi.kernels.simplify import simplified  # noqa: E402
from neml2_capi.kernels.tables import symbol  # noqa: E402

C = ROOT / "neml2_capi" / "kernels" / "c"
EXAMPLES = ROOT / "examples" / "artifacts"
DEFAULT = ["isotropic_hardening", "chaboche", "crystal"]
_TIMER = """
#include <time.h>
#include "neml2_kernel.h"
extern const neml2_kernel %(symbol)s;
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
double seconds(const void *const *inputs, void *const *outputs, void *kept, long n, int one) {
  const neml2_kernel *kernel = &%(symbol)s;
  void (*run)(const void *const *, void *const *, const void *) = kernel->run;
  if (one && kernel->run_one) run = kernel->run_one;
  if (kernel->prepare) kernel->prepare(inputs, kept);
  const double start = now();
  for (long i = 0; i < n; ++i) run(inputs, outputs, kept);
  return (now() - start) / n;
}
"""
_HEAD = [
    "kernel",
    "ATen nodes",
    "operations as read",
    "simplified",
    "C text in",
    "compiled in",
    "code",
    "a point of a block",
    "one point",
]


def captured(name: str) -> Iterator[tuple[str, Program | str]]:
    """The programs of a model's graphs, or why they have no kernel."""
    yield from read_from(models.captured(name))


def read_from(folder: Path) -> Iterator[tuple[str, Program | str]]:
    for file in sorted(folder.glob("*.json")):
        document = json.loads(file.read_text())
        found = document.get("program")
        stem = Path(document["package"]).stem
        program = Program.from_json(json.dumps(found)) if found else None
        yield stem, program or document["reason"]
        if program and stem.endswith("_jacobian") and len(program.outputs) == 2:
            step = newton_step(program, [program.outputs[1].components])
            if step:
                yield stem.replace("_jacobian", "_solve"), step


def timed(command: list[str]) -> float:
    """The processor time of a command, without what a cache of compilers knows."""
    start = children()
    subprocess.run(command, check=True, capture_output=True)
    return children() - start


def stages(name: str, cc: str) -> list[str]:
    """Processor times of imports, of traces, of the C text, and of each target's object."""
    recipe = RECIPES[name]
    imports = timed([sys.executable, "-c", "import torch, neml2.cli.aoti_compile"])
    with tempfile.TemporaryDirectory() as scratch:
        capture = [sys.executable, str(ROOT / "tests" / "models" / "capture.py")]
        words = [str(recipe.input), "--model", recipe.model, *recipe.options]
        traced = timed([*capture, *words, f"{scratch}/graphs"]) - imports
        found = {f"{stem}.pt2": p for stem, p in read_from(Path(scratch) / "graphs")}
        root = next(p for p in (EXAMPLES / name, models.artifact(name)) if p.is_dir())
        metadata = json.loads((root / "metadata.json").read_text())
        start = time.process_time()
        folder = write_sources(Path(scratch) / name, "cpu/float64", found, metadata, {})
        written = time.process_time() - start
        objects = []
        for target in DEFAULT_TARGETS:
            start = children()
            build(folder, [target], cc)
            objects.append(children() - start)
    every = [imports, traced, written, *objects]
    return [name, *(f"{seconds:.1f} s" for seconds in (*every, sum(every)))]


def row(stem: str, program: Program, cc: str, target: str) -> list[str]:
    start = time.process_time()
    simple = simplified(program)
    text = source(simple, stem, "A measurement.")
    printed = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        built, size, times = measured(Path(folder), stem, text, simple, cc, target)
    return [
        stem,
        f"{program.graph_nodes:,}" if program.graph_nodes else "-",
        f"{program.operations:,}",
        f"{simple.operations:,}",
        f"{printed:.2f} s",
        f"{built:.2f} s",
        f"{size / 1024:.0f} KiB",
        *(f"{of_one * 1e9:.1f} ns" for of_one in times),
    ]


def measured(
    folder: Path, stem: str, text: str, program: Program, cc: str, target: str
) -> tuple[float, int, tuple[float, float]]:
    """Seconds to compile, bytes of code, and seconds per point, in a block and alone."""
    kernel, timer = folder / "kernel.c", folder / "timer.c"
    kernel.write_text(text)
    timer.write_text(_TIMER % {"symbol": symbol(stem)})
    lanes = TARGETS[target].lanes
    flags = [*FLAGS, f"-march={TARGETS[target].march}", f"-DNEML2_KERNEL_LANES={lanes}", f"-I{C}"]
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([cc, *flags, "-c", str(kernel), "-o", f"{folder}/kernel.o"], check=True)
    built = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start
    sizes = subprocess.run(["size", f"{folder}/kernel.o"], capture_output=True, text=True)
    library = folder / "timer.so"
    flags = [*(f for f in flags if f not in ("-std=c99", "-fvisibility=hidden")), "-shared"]
    objects = [str(timer), f"{folder}/kernel.o"]
    subprocess.run([cc, *flags, *objects, "-o", str(library)], check=True)
    return built, int(sizes.stdout.splitlines()[1].split()[0]), run(library, program, lanes)


def run(library: Path, program: Program, lanes: int) -> tuple[float, float]:
    """Seconds per point, in a block and alone, each the least of several loops."""
    seconds = ctypes.CDLL(str(library)).seconds
    seconds.restype = ctypes.c_double
    random = np.random.default_rng(1)
    inputs = [_scratch(array.components, lanes) for array in program.inputs]
    for values in inputs:
        values[:] = random.uniform(0.3, 1.3, len(values))[:, None]
    outputs = [_scratch(array.components, lanes) for array in program.outputs]
    kept = _scratch(len(program.steps) + 1, lanes)
    pointers: list[Any] = [
        (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        for arrays in (inputs, outputs)
    ]
    count = max(200_000 // max(program.operations, 1), 20)

    def least(one: bool) -> float:
        memory = ctypes.c_void_p(kept.ctypes.data)
        loops = (seconds(*pointers, memory, ctypes.c_long(count), int(one)) for _ in range(70))
        return float(min(loops))

    return least(False) / lanes, least(True)


def _scratch(components: int, lanes: int) -> Any:
    memory = np.zeros(components * lanes * 8 + 128, dtype=np.uint8)
    start = -memory.ctypes.data % 128
    return memory[start : start + components * lanes * 8].view(float).reshape(components, lanes)


def main() -> None:
    layout = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("names", nargs="*", default=DEFAULT, metavar="NAME")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--target", default="x86-64-v3", choices=list(TARGETS))
    parser.add_argument("--stages", action="store_true", help="where compile spends its time")
    arguments = parser.parse_args()
    if arguments.stages:
        head = ["model", "imports", "traces", "C text", *DEFAULT_TARGETS, "all"]
        print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
        for name in arguments.names:
            print("| " + " | ".join(stages(name, arguments.cc)) + " |", flush=True)
        return
    print("| " + " | ".join(_HEAD) + " |\n|" + " --- |" * len(_HEAD))
    missing = []
    for name in arguments.names:
        for stem, found in captured(name):
            if isinstance(found, str):
                missing.append(f"| {name}/{stem} | {found} |")
                continue
            cells = row(stem, found, arguments.cc, arguments.target)
            cells[0] = f"{name}/{stem}"
            print("| " + " | ".join(cells) + " |", flush=True)
    if missing:
        print("\n| graph without a kernel | because |\n| --- | --- |")
        print("\n".join(missing))


if __name__ == "__main__":
    main()
