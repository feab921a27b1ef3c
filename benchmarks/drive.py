"""Time drive() beside the calls of the library that make its steps, one at a time.

    python benchmarks/drive.py [NAME ...] [--points 2048] [--steps 99] [--rounds 15]

Models of neml2_capi.examples go through the same steps, on one thread: by drive(), which records
the strains and all outputs, and by a bound call for each step, of which the calls alone are timed.
Both take turns. Nanoseconds a point and step: the median of the rounds, and the least.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from neml2_capi import Model, drive, examples

NAMES = ("elasticity", "isotropic_hardening", "chaboche")
DIRECTION = np.array([0.02, -0.01, -0.01, 0.002, 0.001, -0.003])


def loading(points: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Times, and strains that turn once; each point has an amplitude of its own."""
    fractions = np.linspace(0.0, 1.0, steps + 1)
    amplitude = np.sin(1.5 * np.pi * fractions)[:, np.newaxis] * np.linspace(0.5, 1.0, points)
    return 10.0 * fractions, amplitude[..., np.newaxis] * DIRECTION


def of_calls(model: Model, times: np.ndarray, strain: np.ndarray) -> tuple[float, np.ndarray]:
    """Seconds in the calls of all steps, and the last stress."""
    points = strain.shape[1]
    inputs = {each.name: np.zeros((points, *each.point_shape)) for each in model.inputs}
    call = model.bind(inputs, report=True)
    histories = [(h.input, h.output or h.current or "") for h in model.histories]
    taken = 0.0
    for step in range(1, len(times)):
        call.inputs["strain"][...] = strain[step]
        if "t" in call.inputs:
            call.inputs["t"][...] = times[step]
        begin = time.perf_counter()
        call()
        taken += time.perf_counter() - begin
        last = np.array(call.outputs["stress"]) if step == len(times) - 1 else None
        for history, current in histories:
            call.swap(history, current)
    assert last is not None
    return taken, last


def of_drive(model: Model, times: np.ndarray, strain: np.ndarray) -> tuple[float, np.ndarray]:
    """Seconds of the whole, and the last stress."""
    begin = time.perf_counter()
    results = drive(model, times, {"strain": strain}, progress=False)
    return time.perf_counter() - begin, np.array(results["stress"][-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES)
    parser.add_argument("--points", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=99)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    times, strain = loading(arguments.points, arguments.steps)
    scale = 1e9 / (arguments.points * arguments.steps)
    print("| model | drive | least | calls alone | least | drive / calls | least |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.names:
        model = Model(examples.path(name))
        model.options["threads"] = 1
        driven, called = [], []
        for _ in range(arguments.rounds):
            seconds, one = of_drive(model, times, strain)
            driven.append(seconds * scale)
            seconds, other = of_calls(model, times, strain)
            called.append(seconds * scale)
            np.testing.assert_array_equal(one, other)
        ratio = statistics.median(a / b for a, b in zip(driven, called, strict=True))
        print(
            f"| {name} | {statistics.median(driven):.1f} | {min(driven):.1f} "
            f"| {statistics.median(called):.1f} | {min(called):.1f} "
            f"| {ratio:.2f} | {min(driven) / min(called):.2f} |"
        )


if __name__ == "__main__":
    main()
