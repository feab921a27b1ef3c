"""Laws under the hypotheses of elements, beside the same laws in three dimensions.

    python benchmarks/hypotheses.py [--points N] [--rounds N] [--steps N] [--hypotheses NAME ...]

Points are strained to 1 % in steps, a crystal by its rate, on kernels and one thread, each to a
little more or less. What is timed is the middle step, with the outputs and the derivative of the
stress with respect to the strain: under a hypothesis, and in three dimensions for the whole strain
that was found there, so that the states are the same. Both take turns; the ratio is the median over
the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("models", "python", "python/kernels")]

from kernel_setup import with_kernels  # noqa: E402
from states import recorded  # noqa: E402

from neml2_capi import Model, drive, examples  # noqa: E402

NAMES = ("xx", "yy", "zz", "yz", "xz", "xy")
HYPOTHESES = ("plane_strain", "plane_stress", "uniaxial", "beam", "shell")
STRAIN = dict(zip(NAMES, (1e-2, -4e-3, 2e-3, 1e-3, -2e-3, 5e-3), strict=True))


def parts_of(kind: str) -> list[int]:
    return [NAMES.index(name) for name in kind.partition("(")[2].rstrip(")").split(", ")]


def seconds(call: Any) -> float:
    start = time.perf_counter()
    call.run()
    return time.perf_counter() - start


class Law(NamedTuple):
    """A law: its artifact, its strain or rate of strain, and what else it is given."""

    path: Path
    strain: str = "strain"
    scale: float = 1.0
    more: Mapping[str, Any] = MappingProxyType({})
    initial: Mapping[str, Any] = MappingProxyType({})


def law_of(name: str) -> Law:
    if name != "crystal":
        return Law(examples.path(name))
    state = recorded(name, "in")
    initial = {n: state[f"{n}~1"][0] for n in ("dislocation_density", "orientation")}
    vorticity = {"vorticity": np.array([1e-3, -2e-3, 1.5e-3])}
    return Law(with_kernels(name), "deformation_rate", 1e-3, vorticity, initial)


def calls_of(law: Law, hypothesis: str, points: int, steps: int) -> tuple[Any, Any]:
    """A call under the hypothesis, and one in three dimensions of the same points."""
    of = law.strain
    under, whole = Model(law.path, hypothesis=hypothesis, strain=of), Model(law.path)
    given = parts_of(under.inputs[of].type)
    factors = np.sqrt([1, 1, 1, 2, 2, 2])
    target = law.scale * np.array([STRAIN[name] for name in NAMES]) * factors
    amounts = 0.8 + 0.4 * np.random.default_rng(0).random((points, 1))
    times = np.linspace(0, 1, steps + 1)
    strain = times[:, None, None] * amounts * target[given]
    middle = steps // 2 + 1
    forces = {of: strain[: middle + 1], **law.more}
    results = drive(under, times[: middle + 1] * 100, forces, law.initial)
    last: dict[str, Any] = {"t": times[middle] * 100, "t~1": times[middle - 1] * 100, **law.more}
    last |= {"t~2": times[middle - 2] * 100, of: strain[middle], f"{of}~1": strain[middle - 1]}
    for history in under.histories:
        if history.output is not None:
            last[history.input] = np.asarray(results[history.output])[middle - 1]

    def completed(step: int, name: str, free: str) -> np.ndarray[Any, Any]:
        full = np.zeros((points, 6))
        full[:, given] = strain[step] if name == of else np.asarray(results[name])[step]
        if free in under.outputs.names:
            full[:, parts_of(under.outputs[free].type)] = np.asarray(results[free])[step]
        return full

    in_full = dict(last)
    for name in (of, "stress"):
        in_full[f"{name}~1"] = completed(middle - 1, name, f"{name}_transverse")
    in_full[of] = completed(middle, of, f"{of}_transverse")
    bound = []
    for model, inputs in ((under, last), (whole, in_full)):
        model.options.update({"threads": 1, "kernels": "required"})
        own = {
            n: np.broadcast_to(inputs[n], (points, *model.inputs[n].point_shape)).copy()
            for n in model.inputs.names
        }
        tangent = {"stress": {of: True}}
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
    for law in ("elasticity", "isotropic_hardening", "chaboche", "crystal"):
        for hypothesis in arguments.hypotheses:
            under, whole = calls_of(law_of(law), hypothesis, arguments.points, arguments.steps)
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
