"""Steps that are too large for Newton's method: what the option `rescue` solves, and what it costs.

    python benchmarks/rescue.py [--points N] [--rounds N] [--strains E ...] [--step SECONDS]

Points at rest are strained in one step, in random directions, under J2 plasticity with isotropic
hardening and under Chaboche's law, on kernels and one thread. Every solution is put into the
equations of the step in numpy, tests/python/oracle.py, which share nothing with the library: the
last column is the greatest |r| over the stress of the elastic step. Times are the least of the
rounds, in which off and on take turns.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Model, examples

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "python")]

import oracle  # noqa: E402  (tests/python is no package)

LAWS = {"isotropic_hardening": oracle.ISOTROPIC_HARDENING, "chaboche": oracle.VISCOPLASTIC}
STATE = ("stress", "equivalent_plastic_strain", "X1", "X2")
Arrays = dict[str, NDArray[np.float64]]


def inputs_of(model: Model, strain: NDArray[np.float64], step: float) -> Arrays:
    rest = {v.name: np.zeros((len(strain), *v.point_shape)) for v in model.inputs}
    return rest | {"strain": strain, "t": np.full(len(strain), step)}


def seconds(call: Any) -> float:
    start = time.perf_counter()
    call.run()
    return time.perf_counter() - start


def residual_of(name: str, found: Any, inputs: Arrays) -> NDArray[np.float64]:
    """|r| of each point in the equations of the step, over |C : strain|."""
    law, strain = LAWS[name], inputs["strain"]
    parts = [found[each].reshape(len(strain), -1) for each in STATE if each in found]
    state = np.concatenate(parts, axis=1)
    r = law.residual(state, np.zeros_like(state), strain, np.zeros_like(strain), inputs["t"])
    scale = np.linalg.norm(oracle.elastic_stress(strain, law.E, law.nu), axis=1)
    return np.asarray(np.linalg.norm(r, axis=1) / scale)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--strains", type=float, nargs="+", default=[0.1, 0.3, 0.5])
    parser.add_argument("--step", type=float, default=1.0, metavar="SECONDS")
    arguments = parser.parse_args()
    directions = np.random.default_rng(0).standard_normal((arguments.points, 6))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    columns = ("law", "strain", "rescue", "solved", "iterations, mean, most", "solves")
    print("|", " | ".join((*columns, "us a point", "residual")), "|")
    print("|", " | ".join(["---"] * 8), "|")
    for name in LAWS:
        for strain in arguments.strains:
            calls = []
            for most in (0, 100):
                model = Model(examples.path(name))
                model.options.update({"threads": 1, "kernels": "required", "rescue": most})
                inputs = inputs_of(model, strain * directions, arguments.step)
                reports = dict.fromkeys(("status", "iterations", "rescue_solves"), True)
                calls.append(model.bind(inputs, report=reports))
            pairs = [[seconds(call) for call in calls] for _ in range(arguments.rounds)]
            for which, call in enumerate(calls):
                report = {key: np.asarray(value) for key, value in call.report.items()}
                solved = report["status"] == 0
                residual = residual_of(name, call.outputs, inputs)[solved].max(initial=0.0)
                iterations, solves = report["iterations"], report["rescue_solves"]
                us = min(pair[which] for pair in pairs) / arguments.points * 1e6
                print(
                    f"| {name} | {strain:.0%} | {'on' if which else 'off'} | {solved.sum()} of "
                    f"{len(solved)} | {iterations.mean():.1f}, {iterations.max()} | "
                    f"{solves.max()} | {us:.2f} | {residual:.0e} |"
                )


if __name__ == "__main__":
    main()
