"""Time calls with the option bounds = warn beside the same calls with bounds = off.

    python benchmarks/bounds.py [--points N] [--rounds N]

Bounds are of the strain, component by component, and all points are within. Values and the
derivative of the stress with respect to the strain, on kernels and one thread. Both take turns; the
ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi import Model, examples
from neml2_capi.artifact import bounds


def seconds(model: Model, call: Any, policy: str) -> float:
    model.options["bounds"] = policy
    call.run()  # makes a plan for the option
    start = time.perf_counter()
    call.run()
    return time.perf_counter() - start


def ratio_of(law: str, points: int, rounds: int) -> tuple[float, float]:
    """Nanoseconds of a point without a look, and how many times as long one with a look takes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / law
        shutil.copytree(examples.path(law), path)
        bounds.write(path, bounds.from_mappings({"strain": (-0.05, 0.05)}, None))
        model = Model(path)
    model.options["threads"] = 1
    amounts = 0.8 + 0.4 * np.random.default_rng(0).random((points, 1))
    inputs = {v.name: np.zeros((points, *v.point_shape)) for v in model.inputs}
    inputs["strain"] = amounts * np.array([1e-2, -4e-3, 2e-3, 1e-3, -2e-3, 5e-3])
    if "t" in inputs:
        inputs["t"] = np.ones(points)
    call = model.bind(inputs, derivatives={"stress": {"strain": True}})
    pairs = [(seconds(model, call, "warn"), seconds(model, call, "off")) for _ in range(rounds)]
    without = statistics.median(off for _, off in pairs)
    return without / points * 1e9, statistics.median(warn / off for warn, off in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=21)
    given = parser.parse_args()
    for law in ("elasticity", "isotropic_hardening", "chaboche"):
        nanoseconds, ratio = ratio_of(law, given.points, given.rounds)
        print(f"{law}: {nanoseconds:.0f} ns a point without, {ratio:.3f} times as long with bounds")


if __name__ == "__main__":
    main()
