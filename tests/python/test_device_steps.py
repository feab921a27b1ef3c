"""Steps over arrays of a device: neml2_call_run_steps() in the caller's queue, as in lanes."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
from opencl_queue import Context, Queue
from states import Array, repeated, state_of
from test_device_arrays import Call, pointer
from test_opencl import cache_of_pocl, caches  # noqa: F401  (fixtures)
from test_opencl_models import QUICK, opened

from neml2_capi import FatalError, Model
from neml2_capi._ffi.errors import check, last_message
from neml2_capi._ffi.library import ffi, lib
from neml2_capi.header import face

pytestmark = pytest.mark.numbers

POINTS, STEPS = 60, 5
#: Points at once; 0: all of them.
CHUNKS = [pytest.param(7, id="chunks"), pytest.param(0, marks=pytest.mark.full("more of them"))]
OUTPUTS = ("stress", "equivalent_plastic_strain")


class Pair(NamedTuple):
    """A law with history in lanes, and on a device."""

    lanes: Model
    there: Model


@pytest.fixture(
    scope="module", params=[0, pytest.param(1, marks=pytest.mark.full("Intel's OpenCL"))]
)
def index(request: pytest.FixtureRequest) -> int:
    """Which of the loader's devices."""
    return int(request.param)


@pytest.fixture(
    scope="module",
    params=["each array", pytest.param("together", marks=pytest.mark.full("compiles a text"))],
)
def pair(
    request: pytest.FixtureRequest, index: int, tmp_path_factory: pytest.TempPathFactory
) -> Pair:
    """Its kernel takes each array, or all of a kind together, as of a law with many variables."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "together":
            patch.setattr(face, "MOST_ARRAYS", 0)
        return Pair(*opened(QUICK, tmp_path_factory.mktemp("steps"), f"opencl:{index}"))


@pytest.fixture(autouse=True)
def as_it_was(request: pytest.FixtureRequest) -> None:
    if "pair" in request.fixturenames:
        for model in request.getfixturevalue("pair"):
            model.options["chunk"] = 0


def path(model: Model) -> dict[str, Array]:
    """The inputs: those with steps are (step, point, component), the others (point, component)."""
    first = repeated(state_of(QUICK, model), POINTS)
    made = {}
    for name, value in first.items():
        rows = value.reshape(POINTS, -1)
        if "~" in name:
            made[name] = np.zeros_like(rows)
        else:
            made[name] = np.linspace(0.1, 1.5, STEPS)[:, None, None] * rows
    return made


class Evaluation:
    """Bound arrays of a call: on the host, or on a device in one of its layouts."""

    def __init__(
        self, model: Model, inputs: dict[str, Array], queue: Queue | None = None, **how: Any
    ):
        self.queue, self.held = queue, dict[str, Any]()
        self.columns, self.shared = how.get("columns", False), how.get("shared", False)
        across = POINTS if self.columns else 0
        if queue is None:
            self.owner = model._engine.new_call()
        else:
            self.call = Call(model, queue, across, addresses=self.shared)
            self.owner = self.call.owner
        self.results: dict[str, tuple[Any, Any]] = {}
        for name, value in inputs.items():
            self._bind(lib.NEML2_INPUT, name, value, value.ndim == 3)
        steps = how.get("steps", True)
        for name in OUTPUTS:
            size = model.outputs[model.outputs.index_of[name]].point_shape
            like = np.full((*([STEPS] if steps else []), POINTS, int(np.prod(size))), 7.0)
            self.results[name] = self._bind(lib.NEML2_OUTPUT, name, like, steps)
        status = np.full((STEPS, POINTS) if steps else POINTS, 9, np.int32)
        there = self._there(status)
        check(lib.neml2_call_bind_report(self.owner[0], 0, pointer(there), 1))
        if steps:
            check(lib.neml2_call_report_step_stride_set(self.owner[0], 0, POINTS))
        self.results["status"] = there, status
        if how.get("derivative", True):
            like = np.full((*([STEPS] if steps else []), POINTS, 36), 7.0)
            there = self._there(self._laid_out(like))
            names = b"stress", b"strain", pointer(there), lib.NEML2_FLOAT64
            stride = 1 if self.columns else 36
            check(lib.neml2_call_bind_derivative(self.owner[0], lib.NEML2_INPUT, *names, stride))
            if steps:
                check(
                    lib.neml2_call_derivative_step_stride_set(
                        self.owner[0], lib.NEML2_INPUT, *names[:2], 36 * POINTS
                    )
                )
            self.results["tangent"] = there, like

    def _laid_out(self, value: Array) -> Array:
        return np.ascontiguousarray(np.swapaxes(value, -1, -2)) if self.columns else value

    def _there(self, value: Any) -> Any:
        if self.queue is None:
            return value
        return self.queue.shared(value) if self.shared else self.queue.buffer(value)

    def _bind(self, role: int, name: str, value: Array, steps: bool) -> tuple[Any, Array]:
        there = self._there(self._laid_out(value))
        size = value.shape[-1]
        code, stride = lib.NEML2_FLOAT64, 1 if self.columns else size
        key = name.encode()
        check(lib.neml2_call_bind(self.owner[0], role, key, pointer(there), code, stride))
        if steps:
            check(lib.neml2_call_step_stride_set(self.owner[0], role, key, size * POINTS))
        self.held[name] = there
        return there, value

    def run(self, steps: int = STEPS) -> tuple[int, int]:
        """The status, and how many steps were made."""
        made = ffi.new("int64_t *")
        return check(lib.neml2_call_run_steps(made, self.owner[0], POINTS, steps)), made[0]

    def found(self) -> dict[str, Array]:
        """The results, (step, point, component) or without steps."""
        made = {}
        if self.queue is not None:
            self.queue.finish()
        for name, (there, like) in self.results.items():
            value = there
            if self.queue is not None and not self.shared:
                value = self.queue.values(there, like if name == "status" else self._laid_out(like))
            turned = self.columns and name != "status"
            made[name] = np.swapaxes(value, -1, -2) if turned else value
        return made


def assert_alike(found: dict[str, Array], expected: dict[str, Array], made: int = STEPS) -> None:
    """The same bits, of the failed step too, and nothing behind it."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        many = made + 1 if value.ndim == (2 if name == "status" else 3) else len(value)
        np.testing.assert_array_equal(found[name][:many], value[:many], err_msg=name)


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("steps", [True, False])
@pytest.mark.parametrize(
    "how", [{"columns": True}, {"shared": True}, pytest.param({}, marks=pytest.mark.full("more"))]
)
def test_steps_on_a_device_have_the_bits_of_lanes(
    pair: Pair, index: int, how: dict[str, bool], steps: bool, chunk: int
) -> None:
    """With room for each step, and for one, in which history then lies."""
    inputs = path(pair.lanes)
    expected = Evaluation(pair.lanes, inputs, steps=steps)
    assert expected.run() == (0, STEPS)
    pair.there.options["chunk"] = chunk
    there = Evaluation(pair.there, inputs, Context(index).queue(), steps=steps, **how)
    assert there.run() == (0, STEPS)
    assert_alike(there.found(), expected.found())
    assert (expected.found()["equivalent_plastic_strain"] > 0).any()


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("steps", [True, False])
@pytest.mark.parametrize("failed", [0, 3])
@pytest.mark.parametrize("value", [np.nan, 1e30])
def test_a_step_that_fails_ends_those_of_all_points(
    pair: Pair, index: int, value: float, failed: int, steps: bool, chunk: int
) -> None:
    """By a result that is not finite, or by a solve."""
    inputs = path(pair.lanes)
    inputs["strain"][failed, [13, 50]] = value
    inputs["strain"][failed + 1, 20] = np.nan  # which is not reached
    expected = Evaluation(pair.lanes, inputs, steps=steps)
    status, made = expected.run()
    told = last_message()
    assert (status == lib.NEML2_NON_FINITE) == np.isnan(value)
    assert made == failed
    pair.there.options["chunk"] = chunk
    there = Evaluation(pair.there, inputs, Context(index).queue(), steps=steps)
    assert there.run() == (status, made)
    assert told[: told.index("first")] in last_message()  # "2 of 60 points are not finite ("
    assert f"In the step {failed}" in last_message() and "first is point 13" in last_message()
    if made or steps:
        assert_alike(there.found(), expected.found(), made)
    if steps:
        assert (there.found()["stress"][failed + 1 :] == 7.0).all()


def test_steps_are_put_into_the_queue_and_wait_tells_of_them(pair: Pair, index: int) -> None:
    """Without a place for the number of steps, the host goes on."""
    inputs = path(pair.lanes)
    expected = Evaluation(pair.lanes, inputs)
    expected.run()
    queue = Context(index).queue()
    there = Evaluation(pair.there, inputs, queue)
    there.run()  # and now its parameters are there
    inputs["strain"][2, 1] = np.nan
    bad = Evaluation(pair.there, inputs, queue)
    bad.run()
    gate = queue.block()
    for each in (there, bad):
        assert check(lib.neml2_call_run_steps(ffi.NULL, each.owner[0], POINTS, STEPS)) == 0
    waiting = threading.Thread(target=lib.neml2_call_wait, args=(there.owner[0],))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    queue.release(gate)
    waiting.join()
    assert_alike(there.found(), expected.found())
    assert check(lib.neml2_call_wait(bad.owner[0])) == lib.NEML2_NON_FINITE
    assert "In the step 2" in last_message()
    statuses = bad.found()["status"]
    assert (statuses[:3] > 0).sum() == 1
    assert statuses[2, 1] == lib.NEML2_NON_FINITE
    assert check(lib.neml2_call_wait(bad.owner[0])) == 0


def test_no_steps_and_no_points_make_nothing(pair: Pair, index: int) -> None:
    there = Evaluation(pair.there, path(pair.lanes), Context(index).queue())
    assert there.run(0) == (0, 0)
    made = ffi.new("int64_t *")
    assert check(lib.neml2_call_run_steps(made, there.owner[0], 0, 3)) == 0
    assert made[0] == 3
    assert (there.found()["stress"] == 7.0).all()


def test_steps_that_cannot_be_are_refused(pair: Pair, index: int) -> None:
    queue, inputs = Context(index).queue(), path(pair.lanes)
    there = Evaluation(pair.there, inputs, queue)
    call = there.owner[0]
    with pytest.raises(FatalError, match="number of steps must be 0 or more"):
        there.run(-1)
    check(lib.neml2_call_step_stride_set(call, lib.NEML2_OUTPUT, b"stress", 6 * POINTS - 1))
    with pytest.raises(FatalError, match=r"'stress' has steps that overlap: .* steps 359"):
        there.run()
    there = Evaluation(pair.there, inputs, queue)
    call = there.owner[0]
    there.call.bind(lib.NEML2_OUTPUT, "stress", there.held["strain"], 6)
    with pytest.raises(FatalError, match="'stress' overlaps the array of the input 'strain'"):
        there.run()
    null = ffi.NULL
    check(lib.neml2_call_bind(call, lib.NEML2_OUTPUT, b"stress", null, lib.NEML2_FLOAT64, 6))
    with pytest.raises(FatalError, match="'stress' is not bound, and is the input 'stress~1'"):
        there.run()
    there = Evaluation(pair.there, inputs, queue, derivative=False)
    weights = queue.buffer(np.zeros((POINTS, 6)))
    there.call.bind(lib.NEML2_TANGENT, "strain", weights, 6)
    there.call.bind(lib.NEML2_JVP, "stress", queue.buffer(np.zeros((POINTS, 6))), 6)
    with pytest.raises(FatalError, match="are not made through steps"):
        there.run()
