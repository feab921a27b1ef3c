"""Derivatives through steps over arrays of a device: total ones, as lanes carry them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_queue import Queue as CudaQueue
from opencl_queue import Context
from states import Array
from test_device_arrays import Call, pointer
from test_device_steps import (  # noqa: F401
    POINTS,
    STEPS,
    Evaluation,
    Pair,
    as_it_was,
    assert_alike,
    index,
    pair,
    path,
)
from test_opencl import cache_of_pocl, caches  # noqa: F401  (fixtures)
from test_opencl_models import QUICK, opened

from neml2_capi import FatalError, Model
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib

pytestmark = pytest.mark.numbers

#: Components of the state.
STATE = {"stress": 6, "equivalent_plastic_strain": 1}
#: What is derived by: a constant, a state before the first step, and a force. Kind, components.
BY = {
    "E": (lib.NEML2_PARAMETER, 1),
    "stress~1": (lib.NEML2_INPUT, 6),
    "strain": (lib.NEML2_INPUT, 6),
}


class Run:
    """Steps with derivatives, of the host without a queue; with room for all steps, or for one."""

    def __init__(
        self,
        model: Model,
        inputs: dict[str, Array],
        by: str,
        queue: Any = None,
        **how: Any,
    ) -> None:
        self.queue, self.held = queue, list[Any]()
        self.columns = queue is not None and how.get("columns", False)
        if queue is None:
            self.owner = model._engine.new_call()
        else:
            self.owner = Call(model, queue, POINTS if self.columns else 0).owner
        self.rows = STEPS if how.get("steps", True) else 1
        self.results: dict[str, tuple[Any, Array]] = {}
        kind, size = BY[by]
        for name, value in inputs.items():
            call = lib.neml2_call_bind, (lib.NEML2_INPUT, name.encode())
            self._bind(*call, value)
            if value.ndim == 3:
                self._step(lib.neml2_call_step_stride_set, call[1], value)
        for name, rows in STATE.items():
            self._result(lib.neml2_call_bind, (lib.NEML2_OUTPUT, name.encode()), name, rows)
            block = kind, name.encode(), by.encode()
            self._result(lib.neml2_call_bind_derivative, block, f"{name}:{by}", rows * size)
            slope = np.zeros((POINTS, rows * size))
            if f"{name}~1" == by:
                slope[:] = np.eye(size).ravel()
            if not how.get("fixed"):
                leading = f"{name}~1".encode(), kind, by.encode()
                self._bind(lib.neml2_call_bind_input_derivative, leading, slope)

    def _there(self, value: Array) -> Any:
        laid = np.ascontiguousarray(np.swapaxes(value, -1, -2)) if self.columns else value
        there = laid if self.queue is None else self.queue.buffer(laid)
        self.held.append(there)
        return there

    def _bind(self, function: Any, leading: Any, value: Array) -> Any:
        there, stride = self._there(value), 1 if self.columns else value.shape[-1]
        check(function(self.owner[0], *leading, pointer(there), lib.NEML2_FLOAT64, stride))
        return there

    def _step(self, function: Any, leading: Any, value: Array) -> None:
        check(function(self.owner[0], *leading, value[0].size))

    def _result(self, function: Any, leading: Any, name: str, size: int) -> None:
        like = np.full((self.rows, POINTS, size), 7.0)
        self.results[name] = self._bind(function, leading, like), like
        if self.rows > 1:
            derives = function == lib.neml2_call_bind_derivative
            step = (
                "neml2_call_derivative_step_stride_set" if derives else "neml2_call_step_stride_set"
            )
            self._step(getattr(lib, step), leading, like)

    def run(self) -> tuple[int, int]:
        made = ffi.new("int64_t *")
        return check(lib.neml2_call_run_steps(made, self.owner[0], POINTS, STEPS)), made[0]

    def found(self) -> dict[str, Array]:
        values = {}
        for name, (there, like) in self.results.items():
            if self.queue is None:
                values[name] = like
            elif self.columns:
                rows = np.ascontiguousarray(np.swapaxes(like, -1, -2))
                values[name] = np.swapaxes(self.queue.values(there, rows), -1, -2)
            else:
                values[name] = self.queue.values(there, like)
        return values


@pytest.mark.parametrize("steps", [True, False])
@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize(
    "by", ["stress~1", "strain", pytest.param("E", marks=pytest.mark.full("compiles a text"))]
)
def test_total_derivatives_of_steps_are_those_of_lanes(
    pair: Pair,  # noqa: F811
    index: int,  # noqa: F811
    by: str,
    columns: bool,
    steps: bool,
) -> None:
    for chunk in (0, 7):
        pair.there.options["chunk"] = chunk
        require_alike(pair, by, Context(index).queue(), columns=columns, steps=steps)


def require_alike(pair: Pair, by: str, queue: Any, **how: Any) -> None:  # noqa: F811
    """Values to the bit, derivatives to round-off: the device multiplies with tangents."""
    inputs = path(pair.lanes)
    expected, there = Run(pair.lanes, inputs, by, **how), Run(pair.there, inputs, by, queue, **how)
    assert there.run() == expected.run() == (0, STEPS)
    found = there.found()
    for name, value in expected.found().items():
        if name in STATE:
            np.testing.assert_array_equal(found[name], value, err_msg=name)
        scale = np.abs(value).max()
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-12 * scale, err_msg=name)
    fixed = Run(pair.lanes, inputs, by, fixed=True, **how)
    fixed.run()
    name = f"stress:{by}"
    assert not np.allclose(fixed.found()[name][-1], expected.found()[name][-1], rtol=1e-3)


@pytest.mark.gpu
def test_steps_on_a_gpu_have_the_bits_and_the_derivatives_of_lanes(tmp_path: Path) -> None:
    pair = Pair(*opened(QUICK, tmp_path, "cuda:0"))  # noqa: F811
    inputs, queue = path(pair.lanes), CudaQueue()
    for columns in (False, True):
        for steps in (False, True):
            expected = Evaluation(pair.lanes, inputs, steps=steps)
            there = Evaluation(pair.there, inputs, queue, columns=columns, steps=steps)  # type: ignore[arg-type]
            assert there.run() == expected.run() == (0, STEPS)
            assert_alike(there.found(), expected.found())
            for by in BY:
                require_alike(pair, by, queue, columns=columns, steps=steps)


def test_derivatives_behind_a_step_that_fails_are_left(
    pair: Pair,  # noqa: F811
    index: int,  # noqa: F811
) -> None:
    inputs = path(pair.lanes)
    inputs["strain"][3, 13] = 1e30
    expected = Run(pair.lanes, inputs, "stress~1")
    there = Run(pair.there, inputs, "stress~1", Context(index).queue())
    assert there.run() == expected.run() == (lib.NEML2_NOT_CONVERGED, 3)
    for name, value in expected.found().items():
        np.testing.assert_allclose(there.found()[name][:3], value[:3], rtol=0, atol=1e-7)
        assert (there.found()[name][4:] == 7.0).all()
        assert (there.found()[name][3, 13] == 7.0).all()


def test_what_slopes_cannot_have_is_refused(
    pair: Pair,  # noqa: F811
    index: int,  # noqa: F811
) -> None:
    queue = Context(index).queue()
    there = Run(pair.there, path(pair.lanes), "strain", queue)
    call, weights = there.owner[0], queue.buffer(np.zeros((POINTS, 6)))
    for role, name in ((lib.NEML2_TANGENT, b"strain"), (lib.NEML2_JVP, b"stress")):
        check(lib.neml2_call_bind(call, role, name, pointer(weights), lib.NEML2_FLOAT64, 6))
    with pytest.raises(FatalError, match="not taken beside products with tangents or cotangents"):
        check(lib.neml2_call_run(call, POINTS))
    there = Run(pair.there, path(pair.lanes), "strain", queue)
    call, memory = there.owner[0], pointer(there.results["stress:strain"][0])
    leading = b"stress~1", lib.NEML2_INPUT, b"strain", memory, lib.NEML2_FLOAT64
    check(lib.neml2_call_bind_input_derivative(call, *leading, 36))
    with pytest.raises(FatalError, match="'stress:strain' overlaps the array of the derivative"):
        there.run()
    check(lib.neml2_call_bind_input_derivative(call, *leading, 35))
    with pytest.raises(FatalError, match="must be 36 or more; got 35"):
        there.run()


@pytest.mark.parametrize("on_device", [False, True])
def test_blocks_by_inputs_first_are_not_carried(
    pair: Pair,  # noqa: F811
    index: int,  # noqa: F811
    on_device: bool,
) -> None:
    """A derivative of an input has the input first, and is what a block was a step before."""
    model = pair.there if on_device else pair.lanes
    queue = Context(index).queue() if on_device else None
    run = Run(model, path(pair.lanes), "stress~1", queue)
    check(lib.neml2_call_block_order_set(run.owner[0], lib.NEML2_INPUT_FIRST))
    with pytest.raises(FatalError, match="NEML2_OUTPUT_FIRST"):
        run.run()
