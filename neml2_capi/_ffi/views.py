"""Arrays over the memory of tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.dtypes import DTYPE_NAMES, NUMPY_TYPES, numpy_type
from neml2_capi._ffi.errors import FatalError, check
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import ffi, lib

_INTPTR = ffi.typeof("intptr_t")
_INFO = ffi.typeof("neml2_tensor_info *")
_SIZE = {"size": ffi.sizeof("neml2_tensor_info")}
_BYTES = ffi.typeof("char *")


class Layout(NamedTuple):
    """Place of the elements of a tensor."""

    code: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements; never negative
    address: int

    @property
    def itemsize(self) -> int:
        dtype = NUMPY_TYPES.get(self.code)  # all but bfloat16
        return 2 if dtype is None else dtype.itemsize

    @property
    def memory(self) -> range:
        """The addresses that the elements cover."""
        if 0 in self.shape:
            return range(0)
        last = sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))
        return range(self.address, self.address + (last + 1) * self.itemsize)


def layout(owner: Any) -> Layout:
    """The layout of the tensor of `owner`."""
    info = _inspected(owner)
    shape, strides = ffi.unpack(info.shape, info.ndim), ffi.unpack(info.strides, info.ndim)
    return Layout(info.dtype, tuple(shape), tuple(strides), int(ffi.cast(_INTPTR, info.data)))


def device_of(owner: Any) -> tuple[int, int]:
    """The device of the tensor of `owner`, by the numbers of DLPack."""
    info = _inspected(owner)
    return info.device, info.device_index


def _inspected(owner: Any) -> Any:
    info = ffi.new(_INFO, _SIZE)
    check(lib.neml2_tensor_inspect(info, owner[0]))
    return info


def is_on_host(owner: Any) -> bool:
    """Tell whether the processor reads the memory of the tensor of `owner`."""
    return bool(device_of(owner)[0] == lib.NEML2_DEVICE_CPU)


def device_text(device: tuple[int, int]) -> str:
    """ "cpu", "cuda:0", "opencl:0" """
    family = {lib.NEML2_DEVICE_CUDA: "cuda", lib.NEML2_DEVICE_OPENCL: "opencl"}.get(device[0])
    return f"{family}:{device[1]}" if family else "cpu"


def on_host(owner: Any) -> Array:
    """The values of the tensor of `owner`, which come to the processor if they are elsewhere."""
    if is_on_host(owner):
        return as_numpy(owner)
    array: Array = as_torch(owner).cpu().numpy()
    return array


def as_numpy(owner: Any, source: Any = None) -> Array:
    """A numpy array over the tensor of `owner`; it keeps `owner` and `source` alive."""
    if not is_on_host(owner):
        raise FatalError(
            f"numpy has no arrays on {device_text(device_of(owner))}: ask for a torch tensor",
            lib.NEML2_ERROR_UNSUPPORTED,
        )
    where = layout(owner)
    dtype = numpy_type(where.code)
    if dtype is None:
        raise FatalError(
            f"numpy has no element type {DTYPE_NAMES[where.code]}: ask for a torch tensor (results "
            "are, if the inputs are), or install ml_dtypes, which adds it to numpy",
            lib.NEML2_ERROR_DTYPE,
        )
    array = _view(where, dtype, (owner, source))
    if is_read_only(source):
        array.flags.writeable = False
    return array


def taken(owner: Any, source: Any, label: Label, dtype: str) -> Array:
    """A numpy array over an argument that must be of `dtype`, or can become it."""
    if layout(owner).code == lib.NEML2_BFLOAT16 and dtype != "bfloat16":
        raise label.refuse(
            f"must be {dtype}; got bfloat16. Convert it first", lib.NEML2_ERROR_DTYPE
        )
    return as_numpy(owner, source)


def as_torch(owner: Any, source: Any = None) -> Any:
    """A torch tensor over the tensor of `owner`; it keeps `owner` and `source` alive."""
    import torch

    if not is_on_host(owner):
        from neml2_capi._ffi import dlpack

        return torch.from_dlpack(dlpack.capsule(owner))
    where = layout(owner)
    dtype = NUMPY_TYPES.get(where.code)
    if dtype is None:  # bfloat16 travels as the integers that have its bits
        bits = _view(where, np.dtype("int16"), (owner, source))
        return torch.from_numpy(bits).view(torch.bfloat16)
    return torch.from_numpy(_view(where, dtype, (owner, source)))


def is_read_only(source: Any) -> bool:
    """Tell whether a numpy array may not be written."""
    return isinstance(source, np.ndarray) and not source.flags.writeable


def _view(where: Layout, dtype: np.dtype[Any], held: Any) -> Array:
    memory = where.memory
    if not memory:
        return np.empty(where.shape, dtype)
    # The array keeps the buffer, the buffer its pointer, and the pointer's destructor what is held.
    start = ffi.gc(ffi.cast(_BYTES, memory.start), lambda _, held=held: None)
    strides = [stride * dtype.itemsize for stride in where.strides]
    array: Array = np.ndarray(where.shape, dtype, ffi.buffer(start, len(memory)), strides=strides)
    return array
