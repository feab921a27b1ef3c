"""Arrays on a device, of pyopencl, torch or cupy: their memory and queue, and new ones."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import check
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.tensor import is_torch, require_dense, require_no_tangent

Shape = tuple[int, ...]


class Memory(NamedTuple):
    """Memory of a device, and the queue on which work for it goes."""

    #: The library of the arrays: "torch".
    library: str
    #: The device by its name, "cuda:0"; "" if the queue tells.
    device: str
    #: NEML2_MEMORY_*.
    kind: int
    #: Address of a cl_command_queue or a cudaStream_t.
    queue: int
    #: (shape, dtype, value): a new array, filled.
    filled: Callable[[Shape, np.dtype[Any], float], Any]
    #: (value, axes): the array with its axes in another order, over the same memory.
    transposed: Callable[[Any, Shape], Any]

    #: (value, rank): the sum over so many first axes.
    summed: Callable[[Any, int], Any]

    def new(self, shape: Shape, dtype: np.dtype[Any]) -> Any:
        """A new array of NaN, or of 0 if that is no number of the type."""
        return self.filled(shape, dtype, math.nan if dtype.kind == "f" else 0)


def memory_of(value: Any) -> Memory | None:
    """The memory of an array on a device; None for everything else."""
    library = type(value).__module__.partition(".")[0]
    if library == "torch" and is_torch(value) and is_there(value):
        return _of_torch(value)
    if library == "cupy" and hasattr(value, "__cuda_array_interface__"):
        return _of_cupy(value)
    if library == "pyopencl" and hasattr(value, "base_data"):
        return _of_pyopencl(value)
    return None


def is_on_device(value: Any) -> bool:
    """Tell whether memory_of() would find it."""
    library = type(value).__module__.partition(".")[0]
    if library == "torch":
        return is_torch(value) and is_there(value)
    return library in ("cupy", "pyopencl")


def is_there(tensor: Any) -> bool:
    """Tell whether a tensor of torch is on a device."""
    return bool(tensor.is_cuda)


def place_of(tensor: Any) -> tuple[str, int]:
    """The name of a tensor's device, and the stream on which torch works there now."""
    stream = sys.modules["torch"].cuda.current_stream(tensor.device)
    return str(tensor.device), int(stream.cuda_stream)


def require_device(own: str, label: Label, device: str) -> None:
    """FatalError unless the device of an array, if it has a name, is the one of a model."""
    if own and own != device:
        raise label.refuse(
            f"is on {own}, and the model computes on {device}: move it there, or open the model "
            f"with device={own!r}",
            lib.NEML2_ERROR_UNSUPPORTED,
        )


def view(value: Any, label: Label) -> Array:
    """Shape, strides, type and address of an array, as numpy has them: its values are elsewhere."""
    if is_torch(value):
        require_dense(value, label)
        require_no_tangent(value, label)
        if value.is_neg():
            raise label.refuse(
                "is negated lazily: bind tensor.resolve_neg()", lib.NEML2_ERROR_UNSUPPORTED
            )
    address, memory = _address(value, label)
    if is_torch(value):
        strides = tuple(stride * value.element_size() for stride in value.stride())
        dtype = np.dtype(str(value.dtype).removeprefix("torch."))
    else:
        strides, dtype = value.strides, np.dtype(value.dtype)
    interface = {
        "shape": tuple(value.shape),
        "strides": tuple(strides),
        "typestr": dtype.str,
        "data": (address, False),
        "version": 3,
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface, memory=memory))


def set_memory(call: Any, memory: Memory, across: int) -> None:
    """Let the arrays of a neml2_call be on the device, with values of a point so far apart."""
    given = ffi.new("neml2_call_memory *")
    given.size, given.kind = ffi.sizeof("neml2_call_memory"), memory.kind
    given.queue, given.component_stride = ffi.cast("void *", memory.queue), across
    check(lib.neml2_call_memory_set(call, given))


def on_host(value: Any) -> Array:
    """A copy of the values."""
    if is_torch(value):
        return np.asarray(value.detach().cpu().numpy())
    return np.asarray(value.get())


def _address(value: Any, label: Label) -> tuple[int, Any]:
    """The address of an array, and the object that must live as long as it is used."""
    if is_torch(value):
        return int(value.data_ptr()), value
    if hasattr(value, "__cuda_array_interface__"):
        return int(value.__cuda_array_interface__["data"][0]), value
    memory, first = value.base_data, value.offset
    if memory is None:  # of no values
        return 0, value
    if hasattr(memory, "svm_ptr"):
        return int(memory.svm_ptr) + first, memory
    if first:
        try:
            memory = memory.get_sub_region(first, memory.size - first)
        except sys.modules["pyopencl"].Error as error:
            bits = max(device.mem_base_addr_align for device in value.context.devices)
            raise label.refuse(
                f"begins {first} bytes behind the beginning of its buffer, and the device takes a "
                f"multiple of {bits // 8}: bind array.copy() ({error})",
                lib.NEML2_ERROR_UNSUPPORTED,
            ) from error
    return int(memory.int_ptr), memory


def _permute(value: Any, axes: Shape) -> Any:
    return value.permute(axes)


def _transpose(value: Any, axes: Shape) -> Any:
    return value.transpose(axes)


def _sum(value: Any, rank: int) -> Any:
    return value.sum(tuple(range(rank)))


def _of_torch(value: Any) -> Memory:
    torch = sys.modules["torch"]

    def filled(shape: Shape, dtype: np.dtype[Any], number: float) -> Any:
        kind = getattr(torch, dtype.name)
        return torch.full(shape, number, dtype=kind, device=value.device)

    where, stream = place_of(value)
    return Memory("torch", where, lib.NEML2_MEMORY_ADDRESSES, stream, filled, _permute, _sum)


def _of_cupy(value: Any) -> Memory:
    cupy = sys.modules["cupy"]

    def filled(shape: Shape, dtype: np.dtype[Any], number: float) -> Any:
        return cupy.full(shape, number, dtype)

    stream = cupy.cuda.get_current_stream().ptr
    where = f"cuda:{value.device.id}"
    kind = lib.NEML2_MEMORY_ADDRESSES
    return Memory("cupy", where, kind, stream, filled, _transpose, _sum)


def _of_pyopencl(value: Any) -> Memory:
    arrays = sys.modules["pyopencl.array"]
    queue = value.queue
    shared = hasattr(value.base_data, "svm_ptr")

    def filled(shape: Shape, dtype: np.dtype[Any], number: float) -> Any:
        made = arrays.empty(queue, shape, dtype, allocator=value.allocator)
        return made.fill(number)

    kind = lib.NEML2_MEMORY_ADDRESSES if shared else lib.NEML2_MEMORY_BUFFERS
    address = queue.int_ptr if queue is not None else 0

    def summed(of: Any, rank: int) -> Any:  # pyopencl sums whole arrays only
        total = np.asarray(of.get().sum(axis=tuple(range(rank))))
        return arrays.to_device(queue, total, value.allocator)

    return Memory("pyopencl", "", kind, address, filled, _transpose, summed)
