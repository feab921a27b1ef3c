"""Time from an input file of NEML2 to the first result: with kernels alone, and with packages.

    python benchmarks/first_result.py [NAME ...] [--rounds N]

compiles models of tests/models/recipes.py by `neml2-capi compile --kernels only` and by
neml2-compile, and evaluates one point in a new process. Both take the same options, and turns.
NEML2_CAPI_COMPILER names a Python that has neml2 and torch.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "models")]

from recipes import RECIPES, Recipe  # noqa: E402

MODELS = ("isotropic_hardening", "chaboche", "crystal")
KERNELS, PACKAGES = "kernels only", "neml2-compile"
_FIRST = """
import sys
import numpy as np
from neml2_capi import Model
model = Model(sys.argv[1])
inputs = {v.name: np.full(v.point_shape, 1e-6) for v in model.inputs}
outputs, report = model.evaluate(inputs)
assert set(outputs) == set(model.outputs.names)
"""


def compiler() -> str:
    """The Python that compiles."""
    return os.environ.get("NEML2_CAPI_COMPILER") or sys.executable


def command(way: str, recipe: Recipe, folder: Path) -> list[str]:
    """The command that compiles a model in this way."""
    words = [str(recipe.input), "--model", recipe.model, "--output-dir", str(folder)]
    if way == KERNELS:
        ours = [sys.executable, "-m", "neml2_capi.cli", "compile", *words]
        return [*ours, *recipe.options, "--kernels", "only", "-q"]
    return [compiler(), "-m", "neml2.cli.aoti_compile", *words, "--device", "cpu", *recipe.options]


def _run(words: list[str], folder: str, variables: dict[str, str]) -> None:
    """Run a command outside of a checkout, whose package has no library."""
    subprocess.run(words, check=True, env=variables, cwd=folder, capture_output=True)


def seconds(way: str, recipe: Recipe) -> tuple[float, float]:
    """Return the times of compiling and of the first result after it."""
    tools = os.pathsep.join([str(Path(compiler()).parent), os.environ.get("PATH", "")])
    variables = {**os.environ, "PATH": tools, "NEML2_CAPI_COMPILER": compiler()}
    with tempfile.TemporaryDirectory() as scratch:
        # A cache of its own keeps torch from taking what it compiled before.
        variables["TORCHINDUCTOR_CACHE_DIR"] = str(Path(scratch) / "cache")
        folder = Path(scratch) / "made"
        start = time.perf_counter()
        _run(command(way, recipe, folder), scratch, variables)
        compiled = time.perf_counter()
        first = [sys.executable, "-c", _FIRST, str(folder / recipe.model)]
        _run(first, scratch, variables)
        return compiled - start, time.perf_counter() - compiled


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", default=MODELS)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    print("| model | way | compile, s | first result, s | in all, s | packages / kernels |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in arguments.names:
        taken: dict[str, list[tuple[float, float]]] = {KERNELS: [], PACKAGES: []}
        for _ in range(arguments.rounds):
            for way, samples in taken.items():
                samples.append(seconds(way, RECIPES[name]))
        total = {way: statistics.median(map(sum, samples)) for way, samples in taken.items()}
        for way, samples in taken.items():
            parts = [statistics.median(part) for part in zip(*samples, strict=True)]
            ratio = f"{total[PACKAGES] / total[way]:.1f}" if way == KERNELS else ""
            figures = " | ".join(f"{part:.2f}" for part in (*parts, total[way]))
            print(f"| {name} | {way} | {figures} | {ratio} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failure:
        sys.exit(f"{' '.join(map(str, failure.cmd))}\n{failure.stderr.decode()}")
