"""Custom calls of XLA by frames of a host that is not jax: buffers, streams, refusals."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
    cast,
    pointer,
    sizeof,
)
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Artifacts
from opencl_queue import Context
from states import load, repeated, state_of
from test_opencl import cache_of_pocl  # noqa: F401  (a fixture)
from test_opencl_models import DEVICES, QUICK, opened

from neml2_capi import Model
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib

pytestmark = pytest.mark.numbers

Array = np.ndarray[Any, Any]
_F64, _S64, _U32 = 12, 5, 8
_SCALAR, _STRING = 3, 4


def structure(**fields: Any) -> type[Structure]:
    sized = {"size": c_size_t, "extensions": c_void_p, **fields}
    return type("Structure", (Structure,), {"_fields_": list(sized.items())})


Version = structure(major=c_int32, minor=c_int32)
FailureRequest = structure(message=c_char_p, code=c_int32)
StreamRequest = structure(context=c_void_p, stream=c_void_p)
CreateError = CFUNCTYPE(c_void_p, POINTER(FailureRequest))
GetStream = CFUNCTYPE(c_void_p, POINTER(StreamRequest))
Api = structure(
    version=Version,
    internal=c_void_p,
    create_error=CreateError,
    others=c_void_p * 3,
    get_stream=GetStream,
)
Buffer = structure(dtype=c_int32, data=c_void_p, rank=c_int64, sizes=c_void_p)
Buffers = structure(count=c_int64, types=c_void_p, buffers=c_void_p)
Attributes = structure(count=c_int64, types=c_void_p, names=c_void_p, values=c_void_p)
Frame = structure(
    api=c_void_p,
    context=c_void_p,
    stage=c_int32,
    operands=Buffers,
    results=Buffers,
    attributes=Attributes,
)


class Extension(Structure):
    _fields_ = [("size", c_size_t), ("type", c_int32), ("next", c_void_p), ("metadata", c_void_p)]


class Metadata(Structure):
    _fields_ = [("size", c_size_t), ("version", Version), ("traits", c_uint32)]


class Text(Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t)]


class Scalar(Structure):
    _fields_ = [("dtype", c_int32), ("value", c_void_p)]


def handler() -> Callable[[Any], int | None]:
    found = ffi.new("void **")
    check(lib.neml2_xla_handler_get(found))
    return CFUNCTYPE(c_void_p, c_void_p)(int(ffi.cast("intptr_t", found[0])))


class Host:
    """What XLA is to the handler."""

    def __init__(self, stream: int | None = None) -> None:
        self.told: list[tuple[int, str]] = []
        self._held: list[Any] = []
        self._handler = handler()

        def create_error(asked: Any) -> int:
            self.told.append((asked.contents.code, asked.contents.message.decode()))
            return 1

        def get_stream(asked: Any) -> int | None:
            asked.contents.stream = stream
            return None if stream else 1

        version = Version(sizeof(Version), None, 0, 1)
        functions = CreateError(create_error), (c_void_p * 3)(), GetStream(get_stream)
        self.api = Api(sizeof(Api), None, version, None, *functions)

    def _array(self, items: Any, kind: Any = c_void_p) -> int:
        made = (kind * len(items))(*items)
        self._held += [made, *items]
        return cast(made, c_void_p).value or 0

    def _pointers(self, items: list[Any]) -> int:
        self._held += items
        return self._array([cast(pointer(item), c_void_p) for item in items])

    def buffers(self, arrays: list[Array], dtype: int = _F64) -> Any:
        made = []
        for array in arrays:
            sizes = self._array(array.shape, c_int64)
            made.append(Buffer(sizeof(Buffer), None, dtype, array.ctypes.data, array.ndim, sizes))
        types = self._array([1] * len(made), c_int32)
        return Buffers(sizeof(Buffers), None, len(made), types, self._pointers(made))

    def attributes(self, **given: Any) -> Any:
        names, values, types = list[Any](), list[Any](), list[int]()
        for name, value in sorted(given.items()):
            text = value.encode() if isinstance(value, str) else None
            names.append(Text(name.encode(), len(name)))
            if text is not None:
                values.append(Text(text, len(text)))
            else:
                number = c_int64(value)
                self._held.append(number)
                values.append(Scalar(_S64, cast(pointer(number), c_void_p)))
            types.append(_STRING if text is not None else _SCALAR)
        of = self._array(types, c_int32), self._pointers(names), self._pointers(values)
        return Attributes(sizeof(Attributes), None, len(names), *of)

    def frame(self, operands: list[Array], results: list[Array], **given: Any) -> Any:
        return Frame(
            sizeof(Frame), None, cast(pointer(self.api), c_void_p), None, 3,
            self.buffers(operands), self.buffers(results), self.attributes(**given),
        )  # fmt: skip

    def call(self, frame: Any) -> bool:
        """Whether all went well."""
        return self._handler(byref(frame)) is None


def request(model: Model, inputs: dict[str, Array], points: int, blocks: bool = True) -> Any:
    """Operands, results, and the attributes of a call that gives all outputs, and a block."""
    results = {v.name: np.full((points, *v.point_shape), np.nan) for v in model.outputs}
    lines = [f"{lib.NEML2_INPUT}\t{v.name}\t\t{prod(v.point_shape)}" for v in model.inputs]
    lines += [f"{lib.NEML2_OUTPUT}\t{v.name}\t\t{prod(v.point_shape)}" for v in model.outputs]
    if blocks:
        results["tangent"] = np.full((points, 6, 6), np.nan)
        lines.append(f"{lib.NEML2_INPUT}\tstress\tstrain\t36")
    operands = [np.array(inputs[v.name]) for v in model.inputs]
    handle = int(ffi.cast("intptr_t", model._engine._open()[0]))
    return operands, results, {"model": handle, "arrays": "\n".join(lines)}


def require_equal(results: dict[str, Array], model: Model, inputs: dict[str, Array]) -> None:
    expected, blocks = model.jacobian(inputs)
    for name, value in {**expected, "tangent": blocks["stress"]["strain"]}.items():
        np.testing.assert_array_equal(results[name], value, err_msg=name)


@pytest.mark.parametrize("points", [1, 7])
def test_buffers_of_the_host_are_read_and_written_where_they_are(
    artifacts: Artifacts, points: int
) -> None:
    model, host = load(artifacts, QUICK), Host()
    inputs = repeated(state_of(QUICK, model), points)
    for repeats in (False, True):
        if repeats:
            inputs["t"] = np.asarray(inputs["t"][0])  # one value for all points
        operands, results, given = request(model, inputs, points)
        for _ in range(2):
            assert host.call(host.frame(operands, list(results.values()), **given)), host.told
            require_equal(results, model, inputs)


@pytest.mark.parametrize("device", DEVICES[:2])
def test_work_goes_to_the_stream_of_the_host(device: str, tmp_path: Path) -> None:
    """The processor's devices of OpenCL share memory, and a queue stands for XLA's stream."""
    lanes, model = opened(QUICK, tmp_path, device)
    context = Context(int(device[-1]))
    inputs = repeated(state_of(QUICK, model), 30)
    for queue in (context.queue(), context.queue()):
        host = Host(queue.handle.value)
        operands, results, given = request(model, inputs, 30)
        frame = host.frame(operands, list(results.values()), **given, on_device=1)
        assert host.call(frame), host.told
        require_equal(results, lanes, inputs)
    operands[list(model.inputs.names).index("strain")][3] = 1e200
    assert not host.call(frame)
    code, message = host.told[-1]
    assert (code, message[:14]) == (10, "1 of 30 points")
    other = Host()
    assert not other.call(other.frame(operands, list(results.values()), **given, on_device=1))
    assert "XLA has no stream here" in other.told[0][1]


@pytest.mark.parametrize(("major", "told"), [(0, (0, 7)), (1, (0, 1))])
def test_the_version_of_xla_is_met_or_refused(major: int, told: tuple[int, int]) -> None:
    host, metadata = Host(), Metadata(size=sizeof(Metadata))
    host.api.version.major, host.api.version.minor = major, 7
    asked = Extension(24, 1, None, cast(pointer(metadata), c_void_p))
    frame = Frame(size=sizeof(Frame), api=cast(pointer(host.api), c_void_p))
    frame.extensions = cast(pointer(asked), c_void_p)
    assert host.call(frame)
    assert (metadata.version.major, metadata.version.minor) == told


@pytest.mark.parametrize("grown", ["operands", "results", "attributes"])
def test_a_frame_of_another_layout_is_refused(artifacts: Artifacts, grown: str) -> None:
    host = Host()
    frame = host.frame([], [np.zeros((1, 6))], model=1, arrays="")
    getattr(frame, grown).size += 8
    assert not host.call(frame)
    assert "XLA calls in a way that this release of neml2_capi does not know" in host.told[0][1]


def test_what_does_not_fit_is_refused_and_the_model_stays(artifacts: Artifacts) -> None:
    model = load(artifacts, "elasticity")
    strain, stress = np.full((3, 6), 1e-3), np.zeros((3, 6))
    handle = int(ffi.cast("intptr_t", model._engine._open()[0]))
    good = "0\tstrain\t\t6\n1\tstress\t\t6"

    def told(
        arrays: str = good, dtype: int = _F64, operand: Array = strain, of: int = handle
    ) -> str:
        host = Host()
        frame = host.frame([operand], [stress], model=of, arrays=arrays)
        frame.operands = host.buffers([operand], dtype)
        assert not host.call(frame)
        assert host.told[0][0] == 9
        return host.told[0][1]

    assert "has 1 lines; expected one for each of 1 operands and 1 results" in told(
        "0\tstrain\t\t6"
    )
    assert "has 'six' where a number of 1 or more" in told("0\tstrain\t\tsix\n1\tstress\t\t6")
    assert "did you mean 'strain'" in told(good.replace("strain", "strian"))
    assert "'strain' has 12 values; expected 6 for each of 3" in told(operand=np.zeros((2, 6)))
    assert "No model has elements of XLA's type 8" in told(dtype=_U32)
    assert "'strain' must be float64; got int64" in told(dtype=_S64)
    assert "the attributes 'model', of 64 bits, and 'arrays'" in told(of=0)
    assert "model" in told(of=12345)
    host = Host()
    assert host.call(host.frame([strain], [stress], model=handle, arrays=good)), host.told
    np.testing.assert_array_equal(stress, model.forward({"strain": strain})["stress"])
    assert "'strain' must be float64; got int64" in told(dtype=_S64)  # where it was bound before
    model["E"] = np.full(3, 70e3)
    assert "'elasticity.E' was set to values for 3 points" in told()
    model.close()
    assert "model" in told()
