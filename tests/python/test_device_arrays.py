"""Arrays that stay on a device: calls of C over memory of OpenCL, on queues of the caller."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opencl_queue import Context, Queue
from states import repeated, state_of
from test_opencl import HOOKE, cache_of_pocl, caches, hooke, resident, strains, with_text  # noqa: F401
from test_opencl_models import on_device, opened, written

from neml2_capi import FatalError, Model
from neml2_capi._ffi.errors import check, last_message
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.logs import drain

pytestmark = pytest.mark.numbers

POINTS = 100
E = 2.5


@pytest.fixture(
    scope="module", params=[0, pytest.param(1, marks=pytest.mark.full("Intel's OpenCL"))]
)
def index(request: pytest.FixtureRequest) -> int:
    """Which of the loader's devices."""
    return int(request.param)


@pytest.fixture
def model(tmp_path: Path, index: int) -> Model:
    model = on_device(with_text(tmp_path / "artifact"), "float64", f"opencl:{index}")
    model["E"] = E
    return model


@pytest.fixture
def context(model: Model, index: int) -> Context:
    return Context(index)


class Call:
    """A call over memory of a device, by the functions of C."""

    def __init__(
        self, model: Model, queue: Queue, across: int = 0, addresses: bool = False
    ) -> None:
        self.owner, self.held = model._engine.new_call(), list[Any]()
        self.kind = lib.NEML2_MEMORY_ADDRESSES if addresses else lib.NEML2_MEMORY_BUFFERS
        self.set(queue.handle.value, across)

    def set(self, queue: Any, across: int = 0) -> None:
        memory = ffi.new("neml2_call_memory *")
        memory.size, memory.kind = ffi.sizeof("neml2_call_memory"), self.kind
        memory.queue, memory.component_stride = ffi.cast("void *", queue or 0), across
        check(lib.neml2_call_memory_set(self.owner[0], memory))

    def bind(self, role: int, name: str, memory: Any, stride: int) -> None:
        self.held.append(memory)
        code = lib.NEML2_FLOAT64
        check(
            lib.neml2_call_bind(self.owner[0], role, name.encode(), pointer(memory), code, stride)
        )

    def derivative(self, memory: Any, stride: int) -> None:
        names = b"stress", b"strain", pointer(memory), lib.NEML2_FLOAT64, stride
        check(lib.neml2_call_bind_derivative(self.owner[0], lib.NEML2_INPUT, *names))

    def report(self, kind: int, memory: Any) -> None:
        check(lib.neml2_call_bind_report(self.owner[0], kind, pointer(memory), 1))

    def run(self, points: int) -> int:
        return check(lib.neml2_call_run(self.owner[0], points))

    def wait(self) -> int:
        return check(lib.neml2_call_wait(self.owner[0]))


def pointer(memory: Any) -> Any:
    address = memory.ctypes.data if isinstance(memory, np.ndarray) else memory.value
    return ffi.cast("void *", address)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_buffers_are_read_and_written_where_they_are(
    model: Model, context: Context, layout: str
) -> None:
    queue, strain = context.queue(), strains(POINTS)
    rows = layout == "rows"
    given, made = (strain, np.zeros_like(strain)) if rows else (strain.T, np.zeros((6, POINTS)))
    blocks = np.zeros((POINTS, 36) if rows else (36, POINTS))
    call = Call(model, queue, 0 if rows else POINTS)
    buffers = [queue.buffer(array) for array in (given, made, blocks)]
    call.bind(lib.NEML2_INPUT, "strain", buffers[0], 6 if rows else 1)
    call.bind(lib.NEML2_OUTPUT, "stress", buffers[1], 6 if rows else 1)
    call.derivative(buffers[2], 36 if rows else 1)
    assert call.run(POINTS) == 0
    stress, tangent = queue.values(buffers[1], made), queue.values(buffers[2], blocks)
    assert call.wait() == 0
    expected = model.jacobian({"strain": strain})
    np.testing.assert_array_equal(stress if rows else stress.T, expected[0]["stress"])
    block = (tangent if rows else tangent.T).reshape(POINTS, 6, 6)
    np.testing.assert_array_equal(block, expected[1]["stress"]["strain"])


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_no_kernel_but_that_of_the_law_touches_values(
    model: Model, context: Context, layout: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Beside it the queue gets one that counts failed points, and one for each block and report."""
    queue, rows = context.queue(), layout == "rows"
    call = Call(model, queue, 0 if rows else POINTS)
    for role, name in ((lib.NEML2_INPUT, "strain"), (lib.NEML2_OUTPUT, "stress")):
        call.bind(role, name, queue.buffer(strains(POINTS)), 6 if rows else 1)
    with caplog.at_level(logging.DEBUG, "neml2_capi.model"):
        call.run(POINTS)
        call.derivative(queue.buffer(np.zeros(36 * POINTS)), 36 if rows else 1)
        call.report(0, queue.buffer(np.zeros(POINTS, np.int32)))
        call.run(POINTS)
        call.wait()
        drain()
    told = [record.getMessage() for record in caplog.records if "into the queue" in record.message]
    assert [text.partition(": ")[2] for text in told] == [
        f"{POINTS} points put {count} kernels into the queue" for count in (2, 4)
    ]


def test_the_law_is_told_by_which_inputs_to_derive(
    tmp_path: Path, context: Context, index: int
) -> None:
    """Set the first bit for a block by the first input, and all for a product with tangents."""
    begin = HOOKE.index("(i == j ?")
    text = HOOKE[:begin] + "derivatives;" + HOOKE[HOOKE.index("\n", begin) :]
    root = with_text(tmp_path / "told", text)
    model, queue = on_device(root, "float64", f"opencl:{index}"), context.queue()
    call, strain = Call(model, queue), strains(POINTS)
    call.bind(lib.NEML2_INPUT, "strain", queue.buffer(strain), 6)
    block, product = (queue.buffer(np.zeros((POINTS, size))) for size in (36, 6))
    call.derivative(block, 36)
    call.run(POINTS)
    np.testing.assert_array_equal(queue.values(block, np.zeros((POINTS, 36))), 1.0)
    call.bind(lib.NEML2_TANGENT, "strain", queue.buffer(np.ones((POINTS, 6))), 6)
    call.bind(lib.NEML2_JVP, "stress", product, 6)
    call.run(POINTS)
    np.testing.assert_array_equal(queue.values(product, np.zeros((POINTS, 6))), -6.0)
    assert call.wait() == 0


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_points_that_fail_keep_what_was_there(model: Model, context: Context, layout: str) -> None:
    """In arrays that are read and written at once, too."""
    queue, rows = context.queue(), layout == "rows"
    strain = strains(POINTS)
    strain[[3, 70], 0] = np.nan
    given = strain if rows else np.ascontiguousarray(strain.T)
    expected = np.where(np.isnan(strain[:, :1]), strain, hooke(strain, np.full(POINTS, E)))
    call = Call(model, queue, 0 if rows else POINTS)
    both = queue.buffer(given)
    for role, name in ((lib.NEML2_INPUT, "strain"), (lib.NEML2_OUTPUT, "stress")):
        call.bind(role, name, both, 6 if rows else 1)
    call.run(POINTS)
    assert call.wait() == lib.NEML2_NOT_CONVERGED
    found = queue.values(both, given)
    np.testing.assert_allclose(found if rows else found.T, expected, rtol=1e-14)


@pytest.mark.parametrize("chunk", [0, 1, 7, 64])
def test_shared_memory_is_read_and_written_where_it_is(
    model: Model, context: Context, chunk: int
) -> None:
    """Beside wider rows of the caller's, one value for all points, and products."""
    model.options["chunk"] = chunk
    queue = context.queue()
    rows = queue.shared(np.random.default_rng(1).normal(size=(POINTS, 10)))
    direction = queue.shared(np.arange(6.0))
    stress, along, back = (queue.shared(np.zeros((POINTS, 6))) for _ in range(3))
    moduli = queue.shared(np.linspace(1, 2, POINTS))
    call = Call(model, queue, addresses=True)
    call.bind(lib.NEML2_INPUT, "strain", rows, 10)
    call.bind(lib.NEML2_PARAMETER, "E", moduli, 1)
    call.bind(lib.NEML2_TANGENT, "strain", direction, 0)
    call.bind(lib.NEML2_COTANGENT, "stress", rows, 10)
    for role, name, to in (
        (lib.NEML2_OUTPUT, "stress", stress),
        (lib.NEML2_JVP, "stress", along),
        (lib.NEML2_ADJOINT, "strain", back),
    ):
        call.bind(role, name, to, 6)
    call.run(POINTS)
    assert call.wait() == 0
    strain = np.ascontiguousarray(rows[:, :6])
    np.testing.assert_allclose(stress, hooke(strain, moduli), rtol=1e-14)
    np.testing.assert_allclose(back, stress, rtol=1e-13)  # the law is linear and symmetric
    expected = hooke(np.tile(direction, (POINTS, 1)), moduli)
    np.testing.assert_allclose(along, expected, rtol=1e-13)


def test_each_point_reports_and_one_that_failed_is_left_as_it_was(
    model: Model, context: Context
) -> None:
    queue, strain = context.queue(), strains(5)
    strain[3, 0] = np.nan  # which this law says it did not converge for
    stress, status, iterations = np.full((5, 6), 7.0), np.zeros(5, np.int32), np.zeros(5, np.int32)
    norm, cut = np.zeros(5), np.zeros(5)
    arrays = (stress, status, iterations, norm, cut)
    call, buffers = Call(model, queue), [queue.buffer(array) for array in arrays]
    call.bind(lib.NEML2_INPUT, "strain", queue.buffer(strain), 6)
    call.bind(lib.NEML2_OUTPUT, "stress", buffers[0], 6)
    for kind, buffer in enumerate(buffers[1:]):
        names = ("STATUS", "ITERATIONS", "RESIDUAL_NORM", "SUGGESTED_CUT")
        call.report(getattr(lib, f"NEML2_REPORT_{names[kind]}"), buffer)
    assert call.run(5) == 0
    assert call.run(5) == 0
    assert call.wait() == lib.NEML2_NOT_CONVERGED
    assert "2 of 10 points did not converge (the first is point 3)" in last_message()
    assert call.wait() == 0  # nothing since
    found = [queue.values(*pair) for pair in zip(buffers, arrays, strict=True)]
    assert found[0][3].tolist() == [7.0] * 6
    np.testing.assert_allclose(found[0][:3], hooke(strain[:3], np.full(3, E)), rtol=1e-14)
    assert found[1].tolist() == [0, 0, 0, 2, 0]
    assert found[2].tolist() == [3] * 5
    assert found[3].tolist() == [0.5] * 5
    assert found[4].tolist() == [0.125] * 5


def test_stored_parameters_are_those_of_the_run(model: Model, context: Context) -> None:
    queue, strain = context.queue(), strains(POINTS)
    call, stress = Call(model, queue), queue.buffer(strain)
    call.bind(lib.NEML2_INPUT, "strain", queue.buffer(strain), 6)
    call.bind(lib.NEML2_OUTPUT, "stress", stress, 6)
    for modulus in (1.0, np.linspace(1, 3, POINTS), 2.0):
        model["E"] = modulus
        call.run(POINTS)
        expected = hooke(strain, np.broadcast_to(modulus, POINTS))
        np.testing.assert_allclose(queue.values(stress, strain), expected, rtol=1e-14)


def test_a_run_returns_while_the_device_has_its_work_before_it(
    model: Model, context: Context
) -> None:
    """Two queues: one waits for the host, which goes on, while the other one is done."""
    strain, stress = strains(POINTS), np.zeros((POINTS, 6))
    queues = [context.queue(), context.queue()]
    calls = [Call(model, queue) for queue in queues]
    made = [queue.buffer(stress) for queue in queues]
    for call, queue, to in zip(calls, queues, made, strict=True):
        call.bind(lib.NEML2_INPUT, "strain", queue.buffer(strain), 6)
        call.bind(lib.NEML2_OUTPUT, "stress", to, 6)
        call.run(POINTS)  # and now its parameters are there
        assert call.wait() == 0
    event = queues[0].block()
    for _ in range(10):
        assert calls[0].run(POINTS) == 0  # the device cannot have begun
    waiting = threading.Thread(target=calls[0].wait)
    waiting.start()
    assert calls[1].run(POINTS) == 0
    assert calls[1].wait() == 0
    assert waiting.is_alive()
    expected = hooke(strain, np.full(POINTS, E))
    np.testing.assert_allclose(queues[1].values(made[1], stress), expected, rtol=1e-14)
    queues[0].release(event)
    waiting.join()
    np.testing.assert_allclose(queues[0].values(made[0], stress), expected, rtol=1e-14)


def test_the_host_may_be_ended_by_none_of_its_mistakes(model: Model, context: Context) -> None:
    queue = context.queue()
    call = Call(model, queue)
    with pytest.raises(FatalError, match="queue is NULL"):
        call.set(None)
    with pytest.raises(FatalError, match="out of order"):
        call.set(context.queue(1).handle.value)
    with pytest.raises(FatalError, match="component stride must be 1 or more"):
        call.set(queue.handle.value, -1)
    call.kind = 9
    with pytest.raises(FatalError, match="no kind of memory 9"):
        call.set(queue.handle.value)
    with pytest.raises(FatalError, match="'strain' is not bound"):
        call.run(3)
    call.bind(lib.NEML2_INPUT, "strain", queue.buffer(strains(3)), 6)
    call.bind(lib.NEML2_COTANGENT, "stress", queue.buffer(strains(3)), 6)
    call.bind(lib.NEML2_ADJOINT, "strain", queue.buffer(strains(1)), 0)
    with pytest.raises(FatalError, match="get no sums over the points"):
        call.run(3)


def test_one_point_may_be_a_column(model: Model, context: Context) -> None:
    """Its values are as far apart as there are points: as in a row."""
    queue, strain = context.queue(), strains(2)
    call, stress = Call(model, queue, 1), queue.buffer(strain)
    call.bind(lib.NEML2_INPUT, "strain", queue.buffer(strain), 1)
    call.bind(lib.NEML2_OUTPUT, "stress", stress, 1)
    assert (call.run(1), call.wait()) == (0, 0)
    expected = hooke(strain[:1], np.full(1, E))
    np.testing.assert_allclose(queue.values(stress, strain)[:1], expected, rtol=1e-14)
    with pytest.raises(FatalError, match="the point stride must be 6 or more; got 1"):
        call.run(2)


def test_a_model_of_the_processor_has_no_memory_elsewhere(tmp_path: Path) -> None:
    model = Model(with_text(tmp_path / "artifact"))
    with pytest.raises(FatalError, match="build-kernels --target opencl or cuda"):
        Call(model, Context().queue())


@pytest.mark.full("compiles a text")
def test_derivatives_by_parameters_are_written_where_they_are(
    context: Context, index: int, tmp_path: Path
) -> None:
    """Blocks and adjoints, in runs that take turns with ones without them."""
    root = written("isotropic_hardening", tmp_path)
    with Model(root, device=f"opencl:{index}") as law:
        inputs = repeated(state_of("isotropic_hardening", law), POINTS)
        weights = np.random.default_rng(4).normal(size=(POINTS, 6))
        blocks, adjoints = law.param_jacobian(inputs)[1], law.param_vjp(inputs, {"stress": weights})
        modulus = law.parameters.names[law.parameters.resolve("E")]
        queue = context.queue()
        call = Call(law, queue)
        for name, value in inputs.items():
            call.bind(lib.NEML2_INPUT, name, queue.buffer(value), value[0].size)
        stress, by_e, back = (np.zeros((POINTS, size)) for size in (6, 6, 1))
        made = [queue.buffer(array) for array in (stress, by_e, back)]
        call.bind(lib.NEML2_OUTPUT, "stress", made[0], 6)
        assert call.run(POINTS) == 0
        names = b"stress", b"E", pointer(made[1]), lib.NEML2_FLOAT64, 6
        check(lib.neml2_call_bind_derivative(call.owner[0], lib.NEML2_PARAMETER, *names))
        call.bind(lib.NEML2_COTANGENT, "stress", queue.buffer(weights), 6)
        call.bind(lib.NEML2_PARAMETER_ADJOINT, "E", made[2], 1)
        assert call.run(POINTS) == 0
        assert call.wait() == 0
        expected = law.forward(inputs)["stress"]
        np.testing.assert_array_equal(queue.values(made[0], stress), expected)
        of_points = np.asarray(blocks["stress"][modulus]).reshape(POINTS, 6)
        np.testing.assert_array_equal(queue.values(made[1], by_e), of_points)
        found = queue.values(made[2], back)
        np.testing.assert_allclose(found[:, 0], (weights * of_points).sum(axis=1), rtol=1e-12)
        assert found.sum() == pytest.approx(float(adjoints[modulus]), rel=1e-10)


def test_calls_give_all_memory_back(model: Model, context: Context) -> None:
    queue, strain = context.queue(), strains(16)
    buffers = [queue.buffer(strain) for _ in range(2)]
    before = 0
    for cycle in range(300):
        call = Call(model, queue)
        call.bind(lib.NEML2_INPUT, "strain", buffers[0], 6)
        call.bind(lib.NEML2_OUTPUT, "stress", buffers[1], 6)
        for _ in range(10):
            call.run(16)
        if cycle % 2:
            call.wait()
        del call
        if cycle == 100:
            queue.finish()
            before = resident()
    queue.finish()
    assert resident() - before < 2 << 20


@pytest.mark.gpu
def test_tensors_of_a_gpu_get_the_bits_of_arrays_of_the_host(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    name = "isotropic_hardening"
    _, model = opened(name, tmp_path, "cuda:0")
    inputs = repeated(state_of(name, model), 10_000)
    there = {name: torch.as_tensor(value, device="cuda:0") for name, value in inputs.items()}
    outputs, blocks = model.jacobian(there)
    expected, of_host = model.jacobian(inputs)
    for output, value in outputs.items():
        assert value.is_cuda
        np.testing.assert_array_equal(value.cpu().numpy(), expected[output])
        for by, block in blocks[output].items():
            np.testing.assert_array_equal(block.cpu().numpy(), of_host[output][by])
    with torch.cuda.stream(torch.cuda.Stream()):
        call = model.bind(there)
        for _ in range(3):
            assert call.run() == 0
        assert call.wait() == 0
