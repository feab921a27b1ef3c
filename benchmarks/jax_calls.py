"""Times of a model among jax's operations, beside a callback of jax to Python.

    python benchmarks/jax_calls.py [ARTIFACT ...] [--points 1 1000 100000] [--rounds 7]

`operation` is neml2_capi.jax.Function under jit, `callback` the same model in jax.pure_callback,
and `forward` Model.forward() with numpy's arrays. All take turns in one process; each number is the
median of the rounds, in microseconds, and the ratio is callback by operation.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import neml2_capi
from neml2_capi.jax import Function

# The least time of a sample in seconds.
SAMPLE = 0.05


def ways(model: neml2_capi.Model, points: int) -> dict[str, Callable[[], object]]:
    """The evaluations to compare, of strains that differ from point to point."""
    strain = np.random.default_rng(0).normal(0, 1e-3, (points, 6))
    given = {"strain": strain} | ({"t": 1.0} if "t" in model.inputs.names else {})
    inputs = model.state(points).inputs(given)
    arrays = {name: jax.numpy.asarray(value) for name, value in inputs.items()}
    like = {
        name: jax.ShapeDtypeStruct(value.shape, value.dtype)
        for name, value in model.forward(inputs).items()
    }

    def called(given: Any) -> Any:
        return model.forward({name: np.asarray(value) for name, value in given.items()})

    operation = jax.jit(Function(model))
    callback = jax.jit(lambda given: jax.pure_callback(called, like, given))
    return {
        "operation": lambda: jax.block_until_ready(operation(arrays)),
        "callback": lambda: jax.block_until_ready(callback(arrays)),
        "forward": lambda: model.forward(inputs),
    }


def seconds(evaluate: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        evaluate()
    return (time.perf_counter() - start) / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    examples = [neml2_capi.examples.path(name) for name in ("isotropic_hardening", "chaboche")]
    parser.add_argument("artifacts", nargs="*", default=examples)
    parser.add_argument("--points", nargs="+", type=int, default=[1, 1000, 100000])
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"{'points':>40} {'operation':>12} {'callback':>12} {'forward':>12} {'ratio':>7}")
    for path in chosen.artifacts:
        for points in chosen.points:
            compared = ways(neml2_capi.Model(path), points)
            for evaluate in compared.values():
                evaluate()
            calls = {name: max(1, int(SAMPLE / seconds(e, 1))) for name, e in compared.items()}
            times: dict[str, list[float]] = {name: [] for name in compared}
            for _ in range(chosen.rounds):
                for name, evaluate in compared.items():
                    times[name].append(seconds(evaluate, calls[name]))
            middle = {name: 1e6 * statistics.median(each) for name, each in times.items()}
            numbers = " ".join(f"{value:12.1f}" for value in middle.values())
            ratio = middle["callback"] / middle["operation"]
            print(f"{Path(path).name:>32} {points:7} {numbers} {ratio:7.2f}")


if __name__ == "__main__":
    main()
