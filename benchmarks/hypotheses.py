"""Laws under the hypotheses of elements, beside the same laws in three dimensions.

    python benchmarks/hypotheses.py [--points N] [--rounds N] [--steps N] [--hypotheses NAME ...]

Points are strained to 1 % in steps, on kernels and one thread, each to a little more or less. What
is timed is the middle step, with the outputs and the derivative of the stress with respect to the
strain: under a hypothesis, and in three dimensions for the whole strain that was found there, so
that the states are the same. Both take turns; the ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from neml2_capi import Model, drive, examples

NAMES = ("xx", "yy", "zz", "yz", "xz", "xy")
HYPOTHESES = ("plane_strain", "plane_stress", "uniaxial", "beam", "shell")
STRAIN = dict(zip(NAMES, (1e-2, -4e-3, 2e-3, 1e-3, -2e-3, 5e-3), strict=True))


def parts_of(kind: str) -> list[int]:
    return [NAMES.index(name) for name in kind.partition("(")[2].rstrip(")").split(", ")]


def seconds(call: Any) -> float:
    start = time.perf_counter()
    call.run()
    return time.perf_counter() - start


def calls_of(law: str, hypothesis: str, points: int, steps: int) -> tuple[Any, Any]:
    """A call under the hypothesis, and one in three dimensions of the same points."""
    under, whole = Model(examples.path(law), hypothesis=hypothesis), Model(examples.path(law))
    given = parts_of(under.inputs["strain"].type)
    factors = np.sqrt([1, 1, 1, 2, 2, 2])
    target = np.array([STRAIN[name] for name in NAMES]) * factors
    amounts = 0.8 + 0.4 * np.random.default_rng(0).random((points, 1))
    times = np.linspace(0, 1, steps + 1)
    strain = times[:, None, None] * amounts * target[given]
    middle = steps // 2 + 1
    forces = {"strain": strain[: middle + 1]}
    results = drive(under, times[: middle + 1] * 100, forces)
    last: dict[str, Any] = {"t": times[middle] * 100, "t~1": times[middle - 1] * 100}
    last |= {"strain": strain[middle], "strain~1": strain[middle - 1]}
    for history in under.histories:
        if history.output is not None:
            last[history.input] = np.asarray(results[history.output])[middle - 1]

    def completed(step: int, name: str, free: str) -> np.ndarray[Any, Any]:
        full = np.zeros((points, 6))
        full[:, given] = strain[step] if name == "strain" else np.asarray(results[name])[step]
        if free in under.outputs.names:
            full[:, parts_of(under.outputs[free].type)] = np.asarray(results[free])[step]
        return full

    in_full = dict(last)
    for name in ("strain", "stress"):
        in_full[f"{name}~1"] = completed(middle - 1, name, f"{name}_transverse")
    in_full["strain"] = completed(middle, "strain", "strain_transverse")
    bound = []
    for model, inputs in ((under, last), (whole, in_full)):
        model.options.update({"threads": 1, "kernels": "required"})
        own = {
            n: np.broadcast_to(inputs[n], (points, *model.inputs[n].point_shape)).copy()
            for n in model.inputs.names
        }
        tangent = {"stress": {"strain": True}}
        bound.append(model.bind(own, derivatives=tangent, report={"iterations": True}))
    return bound[0], bound[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--hypotheses", nargs="+", default=HYPOTHESES)
    arguments = parser.parse_args()
    print("| law | hypothesis | us a point | in three dimensions | ratio | iterations |")
    print("|", " | ".join(["---"] * 6), "|")
    for law in ("elasticity", "isotropic_hardening", "chaboche"):
        for hypothesis in arguments.hypotheses:
            under, whole = calls_of(law, hypothesis, arguments.points, arguments.steps)
            pairs = [(seconds(under), seconds(whole)) for _ in range(arguments.rounds)]
            ratio = statistics.median(a / b for a, b in pairs)
            own, full = (1e6 * min(each) / arguments.points for each in zip(*pairs, strict=True))
            counts = [np.asarray(c.report["iterations"]).mean() for c in (under, whole)]
            print(
                f"| {law} | {hypothesis} | {own:.3f} | {full:.3f} | {ratio:.2f} | "
                f"{counts[0]:.1f}, {counts[1]:.1f} |"
            )


if __name__ == "__main__":
    main()
