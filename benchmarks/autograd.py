"""What a training step through neml2_capi.torch.Module costs, beside direct calls of the adjoints.

    python benchmarks/autograd.py [--points 1 100 10000] [--rounds 15] [--models ...]

A step evaluates the module and goes backward with given cotangents. Beside it, for the same
gradients without autograd, on the same torch tensors:

    adjoints   Model.vjp() for those of the inputs, Model.param_vjp() for those of the parameters,
               and both calls for both
    by hand    Model.forward(), from whose outputs a loss has its cotangents, and then the adjoints
    torch      nothing but what torch takes: an autograd.Function of as many tensors, in and out,
               that computes nothing, and backward through it to the same gradients

One thread; the time is that of the processor, so that what else runs on the machine matters less;
the four take turns, and each number is the median of those of the rounds, with the ratio of the
least times in brackets. The target is a step of 1.5 times the adjoints.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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
SAMPLE = 0.03
COLUMNS = ("step", "adjoints", "by hand", "torch")
Tensors = dict[str, torch.Tensor]
Timed = Callable[[], object]


def cpu_time(function: Timed, calls: int) -> float:
    """Processor time of a call in seconds."""
    start = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - start) / calls


def take_turns(functions: Sequence[Timed], rounds: int) -> list[list[float]]:
    """The times of a call of each in every round."""
    calls = []
    for function in functions:
        function(), function(), function()  # allocate, and remember
        calls.append(max(1, int(SAMPLE / max(cpu_time(function, 3), 1e-7))))
    pairs = list(zip(functions, calls, strict=True))
    samples = [[cpu_time(function, count) for function, count in pairs] for _ in range(rounds)]
    return [list(column) for column in zip(*samples, strict=True)]


class Nothing(torch.autograd.Function):  # type: ignore[misc]
    """apply(outputs, adjoints, *tensors): the outputs, and backward the adjoints."""

    @staticmethod
    def forward(ctx: Any, outputs: Any, adjoints: Any, *tensors: Any) -> Any:
        ctx.adjoints = adjoints
        return tuple([output.detach() for output in outputs])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, *[a if a is None else a.detach() for a in ctx.adjoints]


def contestants(
    module: Module, fixed: Tensors, weights: Tensors, wanted: set[str], trained: bool
) -> list[Timed]:
    """The functions whose names are in COLUMNS."""
    model: Any = module.model
    module.requires_grad_(trained)
    inputs = {key: value.clone().requires_grad_(key in wanted) for key, value in fixed.items()}
    leaves = (*inputs.values(), *module.parameters())
    cotangents = [*weights.values()]
    zeros = [torch.zeros_like(leaf) if leaf.requires_grad else None for leaf in leaves]

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        torch.autograd.backward([*module(inputs).values()], cotangents)

    def nothing() -> None:
        for leaf in leaves:
            leaf.grad = None
        torch.autograd.backward(Nothing.apply(cotangents, zeros, *leaves), cotangents)

    def adjoints() -> None:
        if wanted:
            model.vjp(fixed, weights)
        if trained:
            model.param_vjp(fixed, weights)

    def by_hand() -> None:
        model.forward(fixed)
        adjoints()

    return [step, adjoints, by_hand, nothing]


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
        "inputs, parameters": (set(fixed), True),
    }
    if history:
        cases["history, parameters"] = (history, True)
    for case, (wanted, trained) in cases.items():
        columns = take_turns(contestants(module, fixed, weights, wanted, trained), rounds)
        print(f"| {name} | {points} | {case} | {' | '.join(cells(columns))} |", flush=True)


def cells(columns: Sequence[Sequence[float]]) -> list[str]:
    """Times in microseconds, and ratios."""
    step, adjoints, by_hand, nothing = columns
    times = [f"{1e6 * statistics.median(column):.0f}" for column in columns]
    others = [adjoints, by_hand, [a + b for a, b in zip(adjoints, nothing, strict=True)]]
    least = [min(adjoints), min(by_hand), min(adjoints) + min(nothing)]
    for other, best in zip(others, least, strict=True):
        ratio = statistics.median(a / b for a, b in zip(step, other, strict=True))
        mark = "" if ratio <= TARGET else " !"
        times.append(f"{ratio:.2f} ({min(step) / best:.2f}){mark}")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--points", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("Times in microseconds; step over: the adjoints, by hand, the adjoints and torch.\n")
    heads = ["model", "points", "gradients of", *COLUMNS, "/ adjoints", "/ by hand", "/ both"]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for name in arguments.models:
        for points in arguments.points:
            measure(name, points, arguments.rounds)


if __name__ == "__main__":
    main()
