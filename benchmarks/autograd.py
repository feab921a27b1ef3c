"""What a training step through neml2_capi.torch.Module costs, beside direct calls of the library.

    python benchmarks/autograd.py [--points 1 100 10000] [--rounds 15] [--models ...]

`train` is a training step: zero_grad, the module, the mean squared error of its first output,
backward, and a step of Adam. `direct` moves the same tensors to the same values without autograd:
the parameters are copied into the model's, Model.forward() gives the outputs, the derivative
of the error is written by hand, and Model.vjp() and Model.param_vjp() give what Adam takes. The
target is 1.5 times `direct`. `empty` is a training step through a function that computes nothing:
what torch takes of it.

Of that the module is, for given cotangents of all outputs and without an optimizer:

    step       the module, and backward
    adjoints   Model.vjp() for the inputs' adjoints, Model.param_vjp() for the parameters',
               and both calls for both
    by hand    Model.forward(), from whose outputs a loss has its cotangents, and then the adjoints
    torch      that function, of as many tensors, in and out, and backward through it

One thread; the time is processor time, so that what else runs on the machine matters less;
all take turns, and each number is the median of the rounds, with the ratio of the least
times in brackets.
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
from torch.nn.functional import mse_loss

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
COLUMNS = ("train", "direct", "empty", "step", "adjoints", "by hand", "torch")
# One column over the sum of others.
RATIOS = {
    "train / direct": ("train", ["direct"]),
    "empty / direct": ("empty", ["direct"]),
    "step / adjoints": ("step", ["adjoints"]),
    "/ by hand": ("step", ["by hand"]),
    "/ (adjoints + torch)": ("step", ["adjoints", "torch"]),
}
# By how much Adam moves inputs: so little that every step solves nearly the same.
INPUT_RATE = 1e-9
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


class Case:
    """At which inputs a model is evaluated, and what has gradients."""

    def __init__(self, model: Any, fixed: Tensors, wanted: set[str], trained: bool) -> None:
        self.model, self.fixed = model, fixed
        self.wanted, self.trained = wanted, trained
        self.outputs: Tensors = model.forward(fixed)

    def module(self) -> tuple[Module, Tensors]:
        """A module of its own with its inputs."""
        inputs = {k: v.clone().requires_grad_(k in self.wanted) for k, v in self.fixed.items()}
        return Module(self.model).requires_grad_(self.trained), inputs

    def training(self) -> dict[str, Timed]:
        """`train` and `direct`, which were found to move the tensors to the same values."""
        model, wanted, trained = self.model, self.wanted, self.trained
        output, before = next(iter(self.outputs.items()))
        measured = 0.99 * before
        module, inputs = self.module()
        parameters = {name: module[name] for name in model.parameters.names}
        optimizer = self._optimizer(inputs, parameters)

        def train() -> None:
            optimizer.zero_grad()
            mse_loss(module(inputs)[output], measured).backward()
            optimizer.step()

        own_inputs, own_parameters = _copies(inputs), _copies(parameters)
        own_optimizer = self._optimizer(own_inputs, own_parameters)
        stored = dict(model.named_parameters())

        def direct() -> None:
            if trained:
                for name, value in own_parameters.items():
                    stored[name].copy_(value)
            error = model.forward(own_inputs)[output] - measured
            cotangents = {output: (2 / error.numel()) * error}
            if wanted:
                _, adjoints = model.vjp(own_inputs, cotangents)
                for name in wanted:
                    own_inputs[name].grad = adjoints[name]
            if trained:
                for name, adjoint in model.param_vjp(own_inputs, cotangents).items():
                    own_parameters[name].grad = adjoint
            own_optimizer.step()

        for _ in range(3):
            train()
            direct()
        moved, own = {**inputs, **parameters}, {**own_inputs, **own_parameters}
        for name, value in moved.items():
            torch.testing.assert_close(value.detach(), own[name], rtol=1e-12, atol=1e-15)
        return {"train": train, "direct": direct}

    def _optimizer(self, inputs: Tensors, parameters: Tensors) -> torch.optim.Optimizer:
        groups: list[dict[str, Any]] = []
        if self.wanted:
            groups.append({"params": [inputs[name] for name in self.wanted], "lr": INPUT_RATE})
        if self.trained:
            groups.append({"params": [*parameters.values()]})
        return torch.optim.Adam(groups)

    def bare(self) -> dict[str, Timed]:
        """The other columns."""
        model, fixed = self.model, self.fixed
        module, inputs = self.module()
        leaves = (*inputs.values(), *module.parameters())
        weights = {name: torch.ones_like(value) for name, value in self.outputs.items()}
        cotangents = [*weights.values()]
        zeros = [torch.zeros_like(leaf) if leaf.requires_grad else None for leaf in leaves]
        optimizer = self._optimizer(inputs, dict(module.named_parameters()))

        def empty() -> None:
            optimizer.zero_grad()
            mse_loss(Nothing.apply(cotangents, zeros, *leaves)[0], cotangents[0]).backward()
            optimizer.step()

        def step() -> None:
            for leaf in leaves:
                leaf.grad = None
            torch.autograd.backward([*module(inputs).values()], cotangents)

        def nothing() -> None:
            for leaf in leaves:
                leaf.grad = None
            torch.autograd.backward(Nothing.apply(cotangents, zeros, *leaves), cotangents)

        def adjoints() -> None:
            if self.wanted:
                model.vjp(fixed, weights)
            if self.trained:
                model.param_vjp(fixed, weights)

        def by_hand() -> None:
            model.forward(fixed)
            adjoints()

        return {
            "empty": empty,
            "step": step,
            "adjoints": adjoints,
            "by hand": by_hand,
            "torch": nothing,
        }


class Nothing(torch.autograd.Function):  # type: ignore[misc]
    """apply(outputs, adjoints, *tensors): the outputs, and backward the adjoints."""

    @staticmethod
    def forward(ctx: Any, outputs: Any, adjoints: Any, *tensors: Any) -> Any:
        ctx.adjoints = adjoints
        return tuple([output.detach() for output in outputs])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, *[a if a is None else a.detach() for a in ctx.adjoints]


def _copies(tensors: Tensors) -> Tensors:
    return {name: value.detach().clone() for name, value in tensors.items()}


def measure(name: str, points: int, rounds: int) -> None:
    """Print the lines of a model."""
    model = Model(models.artifact(name))
    model.options["threads"] = 1
    given, _ = _last_step(model, MODELS[name])
    where = torch.arange(points) % len(next(iter(given.values())))
    fixed = {key: torch.as_tensor(value)[where].contiguous() for key, value in given.items()}
    history = {entry.input for entry in model.histories if entry.output}
    cases: dict[str, tuple[set[str], bool]] = {
        "parameters": (set(), True),
        "inputs": (set(fixed), False),
        "inputs, parameters": (set(fixed), True),
    }
    if history:
        cases["history, parameters"] = (history, True)
    for case, (wanted, trained) in cases.items():
        functions = Case(model, fixed, wanted, trained)
        timed = {**functions.training(), **functions.bare()}
        samples = take_turns([timed[column] for column in COLUMNS], rounds)
        times = dict(zip(COLUMNS, samples, strict=True))
        print(f"| {name} | {points} | {case} | {' | '.join(cells(times))} |", flush=True)


def cells(times: dict[str, list[float]]) -> list[str]:
    """Times in microseconds, and ratios."""
    texts = [f"{1e6 * statistics.median(times[column]):.0f}" for column in COLUMNS]
    for column, others in RATIOS.values():
        sums = [sum(parts) for parts in zip(*(times[other] for other in others), strict=True)]
        ratio = statistics.median(a / b for a, b in zip(times[column], sums, strict=True))
        least = min(times[column]) / sum(min(times[other]) for other in others)
        texts.append(f"{ratio:.2f} ({least:.2f}){'' if ratio <= TARGET else ' !'}")
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--points", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("Microseconds of processor time.\n")
    heads = ["model", "points", "gradients of", *COLUMNS, *RATIOS]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for name in arguments.models:
        for points in arguments.points:
            measure(name, points, arguments.rounds)


if __name__ == "__main__":
    main()
