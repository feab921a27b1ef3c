"""The cost of failed points: a batch of which 1 % is NaN, over the same batch without.

    python benchmarks/failing.py [NAME ...] [--points N] [--rounds N]

Models run on their kernels, on one thread, from arrays that were bound once. Both batches take
turns.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from loading import write_inputs

from neml2_capi import Model
from neml2_capi.errors import ConvergenceError

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "models")]

import compile as models  # noqa: E402  (tests/models is no package)

NAMES = ("isotropic_hardening", "chaboche")


def call_of(model: Model, inputs: dict[str, Any], share: float) -> Any:
    """A bound call; this share of its points has a strain that is NaN."""
    strain = inputs["strain"].copy()
    if share:
        strain[:: round(1 / share)] = np.nan
    return model.bind(inputs | {"strain": strain})


def seconds(call: Any) -> float:
    start = time.perf_counter()
    with contextlib.suppress(ConvergenceError):
        call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=51)
    arguments = parser.parse_args()
    print("| model | kernels | all good, us | 1 % NaN, us | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for name in arguments.names:
        for target in ("x86-64-v3", "x86-64-v4"):
            root = models.with_kernels(name, target)
            with tempfile.TemporaryDirectory() as scratch:
                write_inputs(name, root, Path(scratch), arguments.points)
                model = Model(root)
                model.options.update({"threads": 1, "kernels": "required"})
                folder = Path(scratch) / "inputs"
                inputs = {
                    v.name: np.fromfile(folder / f"{v.name}.bin").reshape(-1, *v.point_shape)
                    for v in model.inputs
                }
            calls = [call_of(model, inputs, share) for share in (0.0, 0.01)]
            pairs = [[seconds(call) for call in calls] for _ in range(arguments.rounds)]
            good, spoiled = (statistics.median(times) * 1e6 for times in zip(*pairs, strict=True))
            ratio = statistics.median(second / first for first, second in pairs)
            print(f"| {name} | {target} | {good:.0f} | {spoiled:.0f} | {ratio:.3f} |")


if __name__ == "__main__":
    main()
