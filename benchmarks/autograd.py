"""What a training step through neml2_capi.torch.Module costs, beside direct calls of the adjoints.

    python benchmarks/autograd.py [--points 1 100 10000] [--rounds 9]

A step evaluates the model and goes backward with given cotangents. It is compared with what gives
the same gradients without autograd: Model.vjp() for those of the inputs, Model.param_vjp() for
those of the parameters, and both calls for both. One thread each; the time is that of the
processor, so that what else runs on the machine matters little; the two take turns, and the ratio
is the median of those of the rounds. The target is 1.5.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "models"))

import compile as models  # (tests/models is no package)
from loading import _last_step

from neml2_capi.torch import Model, Module

# Artifacts with derivatives by parameters, and the loading of each.
MODELS = {
    "elasticity_parameters": "elasticity",
    "isotropic_hardening": "isotropic_hardening",
    "radial_return": "radial_return",
}
TARGET = 1.5
# The least time of a sample in seconds.
SAMPLE = 0.05


def cpu_time(function: Callable[[], object], calls: int) -> float:
    """Processor time of a call in seconds."""
    start = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - start) / calls


def compare(one: Callable[[], object], other: Callable[[], object], rounds: int) -> list[float]:
    """The median times of a call of each, and the median ratio."""
    one(), other(), other()  # allocate, and remember
    calls = max(1, int(SAMPLE / max(cpu_time(other, 3), 1e-7)))
    samples = [(cpu_time(one, calls), cpu_time(other, calls)) for _ in range(rounds)]
    times = [statistics.median(column) for column in zip(*samples, strict=True)]
    return [*times, statistics.median(a / b for a, b in samples)]


def measure(name: str, points: int, rounds: int) -> None:
    """Print the lines of a model."""
    model = Model(models.artifact(name))
    model.options["threads"] = 1
    given, _ = _last_step(model, MODELS[name])
    where = torch.arange(points) % len(next(iter(given.values())))
    fixed = {key: torch.as_tensor(value)[where].contiguous() for key, value in given.items()}
    weights = {key: torch.ones_like(value) for key, value in model.forward(fixed).items()}
    module = Module(model)
    history = {entry.input for entry in model.histories if entry.output}
    cases: dict[str, tuple[set[str], bool]] = {
        "parameters": (set(), True),
        "inputs": (set(fixed), False),
        "inputs and parameters": (set(fixed), True),
    }
    if history:
        cases["history and parameters"] = (history, True)
    for case, (wanted, trained) in cases.items():
        module.requires_grad_(trained)
        inputs = {key: value.clone().requires_grad_(key in wanted) for key, value in fixed.items()}

        def step(inputs: dict[str, torch.Tensor] = inputs) -> None:
            for tensor in (*inputs.values(), *module.parameters()):
                tensor.grad = None
            outputs = module(inputs)
            torch.autograd.backward(list(outputs.values()), list(weights.values()))

        def direct(wanted: set[str] = wanted, trained: bool = trained) -> None:
            if wanted:
                model.vjp(fixed, weights)
            if trained:
                model.param_vjp(fixed, weights)

        ours, theirs, ratio = compare(step, direct, rounds)
        verdict = "" if ratio <= TARGET else "  above the target"
        print(
            f"{name:22} {points:6d} points, {case:22}  step {1e6 * ours:10.1f} us, direct "
            f"{1e6 * theirs:10.1f} us, ratio {ratio:5.2f}{verdict}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--points", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.models:
        for points in arguments.points:
            measure(name, points, arguments.rounds)


if __name__ == "__main__":
    main()
