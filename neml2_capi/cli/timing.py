"""How long the operations of a model take on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import ConvergenceError, FatalError, Model
from neml2_capi._ffi.library import lib

Arrays = Mapping[str, NDArray[Any]]
_SAMPLES = 5


@dataclass(frozen=True)
class Timing:
    """The fastest of some runs of one operation."""

    operation: str
    points: int
    threads: int
    microseconds_per_point: float
    #: How many of the points did not converge.
    failed: int


def operations(model: Model) -> dict[str, Callable[[Arrays], Any]]:
    """Those that the artifact was compiled for, by name."""
    found: dict[str, Callable[[Arrays], Any]] = {"forward": model.forward}
    if model.derivatives:
        varied = {derivative.variable for derivative in model.derivatives}
        found["jvp"] = lambda inputs: model.jvp(
            inputs, {name: np.ones_like(inputs[name]) for name in varied}
        )
        found["vjp"] = lambda inputs: model.vjp(inputs, _cotangents(model, inputs))
        found["jacobian"] = model.jacobian
    if model.parameter_derivatives:
        found["param_vjp"] = lambda inputs: model.param_vjp(inputs, _cotangents(model, inputs))
        found["param_jacobian"] = model.param_jacobian
    return found


def available(model: Model, state: Arrays) -> list[str]:
    """Return the operations that this artifact can do: a lumped derivative has no adjoint."""
    return [name for name, call in operations(model).items() if _can(call, state)]


def _can(call: Callable[[Arrays], Any], state: Arrays) -> bool:
    try:
        call(state)
    except ConvergenceError:
        return True
    except FatalError as error:
        if error.status != lib.NEML2_ERROR_UNSUPPORTED:
            raise
        return False
    return True


def measure(
    model: Model,
    state: Arrays,
    wanted: Sequence[str],
    batches: Sequence[int],
    threads: Sequence[int],
    seconds: float,
) -> Iterator[Timing]:
    """Time each operation for each number of points and of threads.

    `state` is repeated to as many points. Each time is the least of five samples, which take
    `seconds` together, or longer if one run does.
    """
    known = operations(model)
    for points in batches:
        inputs = {name: _repeated(value, points) for name, value in state.items()}
        for count in threads:
            model.options["threads"] = count
            for operation in wanted:
                least, failed = _least(known[operation], inputs, seconds)
                yield Timing(operation, points, count, 1e6 * least / points, failed)


def _least(call: Callable[[Arrays], Any], inputs: Arrays, seconds: float) -> tuple[float, int]:
    once, failed = _timed(call, inputs, 1)
    runs = max(1, int(seconds / _SAMPLES / max(once, 1e-7)))
    samples = _SAMPLES if once < seconds else 1
    return min(_timed(call, inputs, runs)[0] for _ in range(samples)), failed


def _timed(call: Callable[[Arrays], Any], inputs: Arrays, runs: int) -> tuple[float, int]:
    """Seconds per run, and how many points failed."""
    failed = 0
    start = time.perf_counter()
    for _ in range(runs):
        try:
            call(inputs)
        except ConvergenceError as error:
            failed = int(np.count_nonzero(~np.asarray(error.converged_mask)))
    return (time.perf_counter() - start) / runs, failed


def _repeated(value: NDArray[Any], points: int) -> NDArray[Any]:
    return np.ascontiguousarray(np.resize(value, (points, *value.shape[1:])))


def _cotangents(model: Model, inputs: Arrays) -> dict[str, NDArray[Any]]:
    points = len(next(iter(inputs.values())))
    return {
        variable.name: np.ones((points, *variable.point_shape), variable.dtype)
        for variable in model.outputs
    }
