"""Tensors: arrays in from whatever holds them, and out, without copies."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError, check
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.library import ffi, lib

Array = NDArray[Any]

#: Element types by the codes of neml2_capi.h.
DTYPE_NAMES: dict[int, str] = {
    lib.NEML2_FLOAT64: "float64",
    lib.NEML2_FLOAT32: "float32",
    lib.NEML2_INT64: "int64",
    lib.NEML2_INT32: "int32",
    lib.NEML2_INT16: "int16",
    lib.NEML2_INT8: "int8",
    lib.NEML2_UINT8: "uint8",
    lib.NEML2_BOOL: "bool",
    lib.NEML2_FLOAT16: "float16",
    lib.NEML2_BFLOAT16: "bfloat16",
}

# numpy has no bfloat16. Types of the other byte order are not equal to these, and so not found.
_NUMPY = {code: np.dtype(name) for code, name in DTYPE_NAMES.items() if name != "bfloat16"}
#: The codes of numpy types.
CODES = {dtype: code for code, dtype in _NUMPY.items()}

# The devices of DLPack whose memory the processor reads: CPU, CUDA host, ROCm host, CUDA managed.
_HOST = (1, 3, 11, 13)

_INTPTR = ffi.typeof("intptr_t")
_INFO = ffi.typeof("neml2_tensor_info *")
_SIZE = {"size": ffi.sizeof("neml2_tensor_info")}
_BYTES = ffi.typeof("char *")
_VOID = ffi.typeof("void *")


@cache
def _bfloat16() -> np.dtype[Any] | None:
    """Return the type that ml_dtypes adds to numpy, if it is installed."""
    try:
        dtype: np.dtype[Any] = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError:
        return None
    return dtype


def _numpy_type(code: int) -> np.dtype[Any] | None:
    return _NUMPY.get(code) or _bfloat16()


class Label(NamedTuple):
    """Purpose of an array, to name it in an error."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}" if self.name else f"the {self.kind}"

    def refuse(self, reason: str, status: int) -> FatalError:
        return FatalError(f"{self} {reason}", status, self.name)

    def batch_of(self, shape: Sequence[int], point: tuple[int, ...]) -> tuple[int, ...]:
        """The batch axes of a shape; FatalError unless it ends with the shape of a point."""
        split = max(len(shape) - len(point), 0)
        if tuple(shape[split:]) != point:
            raise self.refuse(
                f"has the shape {tuple(shape)}; expected batch axes and then {point}",
                lib.NEML2_ERROR_SHAPE,
            )
        return tuple(shape[:split])


def common_batch(
    batches: Iterable[tuple[Label, tuple[int, ...]]], batch: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Broadcast `batch` and these; FatalError names the first that does not."""
    for label, own in batches:
        try:
            batch = np.broadcast_shapes(batch, own)
        except ValueError:
            raise label.refuse(
                f"has the batch {own}, which does not broadcast with the batch {batch} of those "
                "before it",
                lib.NEML2_ERROR_SHAPE,
            ) from None
    return batch


class Tensor(Handle):
    """An n-dimensional array, shared with where it came from.

    The memory of an array is used as it is, with its strides, and kept alive; a write through one
    is seen through the other. Only an array with negative strides is copied.

    Numpy, torch and every other DLPack consumer can take it: `numpy.asarray(tensor)`,
    `torch.from_dlpack(tensor)`; neither copies. One on CUDA is for consumers that have it there.

    Parameters
    ----------
    value : array
        A numpy array, a torch tensor (detached), any object with `__dlpack__`, a number or nested
        lists of numbers (float64).
    """

    _instead = "take its values, tensor.numpy()"
    # Owner of the memory, if that is not the library.
    _source: Any = None

    def __init__(self, value: Any) -> None:
        owner = owned("tensor")
        self._source = wrap(owner, value, Label("tensor"), "float64")
        super().__init__(owner)

    @classmethod
    def zeros(cls, shape: Iterable[int], dtype: str = "float64") -> Tensor:
        """Create a row-major tensor of zeros, in memory of the library.

        Parameters
        ----------
        shape
            The sizes of the axes.
        dtype
            The name of the element type.

        Returns
        -------
        Tensor
            The tensor, which alone refers to its memory.
        """
        sizes = tuple(shape)
        owner = owned("tensor")
        check(lib.neml2_tensor_create(owner, dtype_code(dtype), len(sizes), sizes))
        return cls._adopt(owner, None)

    @classmethod
    def _adopt(cls, owner: Any, source: Any) -> Tensor:
        tensor = cls.__new__(cls)
        Handle.__init__(tensor, owner)
        tensor._source = source
        return tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return layout(self._open()).shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the axes, in elements."""
        return layout(self._open()).strides

    @property
    def dtype(self) -> str:
        """The name of the element type, "float64" for example."""
        return DTYPE_NAMES[layout(self._open()).code]

    def share(self) -> Tensor:
        """Create another handle to the same memory.

        Returns
        -------
        Tensor
            A tensor that lives on when this one is closed.
        """
        owner, other = self._open(), owned("tensor")
        check(lib.neml2_tensor_share(other, owner[0]))
        return self._adopt(other, self._source)

    def numpy(self) -> Array:
        """Return a numpy array over the same memory.

        Returns
        -------
        array
            The array, which stays valid when the tensor is closed.

        Raises
        ------
        FatalError
            The tensor is on CUDA, or of a type that numpy lacks.
        """
        return as_numpy(self._open(), self._source)

    def torch(self) -> Any:
        """Return a torch tensor over the same memory.

        Returns
        -------
        torch.Tensor
            The tensor, which stays valid when this one is closed. Torch cannot protect memory from
            writes: the memory of a read-only numpy array is copied.
        """
        tensor = as_torch(self._open(), self._source)
        return tensor.clone() if _is_read_only(self._source) else tensor

    def close(self) -> None:
        """Free the handle. Arrays over its memory stay valid."""
        super().close()
        self._source = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"a {array.dtype} tensor cannot become {dtype} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    @property
    def device(self) -> str:
        """Where the memory is: "cpu", or "cuda:0"."""
        return device_text(device_of(self._open()))

    def __dlpack__(self, **request: Any) -> Any:
        if is_on_host(owner := self._open()):
            return self.numpy().__dlpack__(**request)
        from neml2_capi._ffi import dlpack

        return dlpack.capsule(owner)

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_of(self._open())

    def __repr__(self) -> str:
        if self.closed:
            return "<Tensor, closed>"
        return f"<Tensor {self.shape}, {self.dtype}>"


def is_torch(value: Any) -> bool:
    """Tell whether `value` is a torch tensor; there is none if torch was never imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def carries_gradient(value: Any) -> bool:
    """Tell whether torch would follow what becomes of `value`."""
    if not is_torch(value) or not value.requires_grad:
        return False
    return bool(sys.modules["torch"].is_grad_enabled())


def dtype_code(name: str) -> int:
    """The code of an element type."""
    for code, known in DTYPE_NAMES.items():
        if known == name:
            return code
    raise FatalError(
        f"unknown element type {name!r}; there are: {', '.join(DTYPE_NAMES.values())}",
        lib.NEML2_ERROR_DTYPE,
        str(name),
    )


# ------------------------------------------------------------------------------------------------
# In
# ------------------------------------------------------------------------------------------------


def lossless(value: Any, dtype: str) -> Any:
    """Integers, or one number of numpy, in the element type `dtype` if that keeps values."""
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype == dtype:
        return value
    if value.dtype.kind not in ("iuf" if value.ndim == 0 else "iu"):
        return value
    converted = np.asarray(value).astype(dtype)
    back = converted.astype(value.dtype)
    same = np.array_equal(back, value, equal_nan=value.dtype.kind == "f")
    return converted if same else value


def wrap(out: Any, value: Any, label: Label, dtype: str) -> Any:
    """Fill `out` with a handle over the memory of `value`, and return what must outlive the handle.

    Arrays keep their element type; Python numbers and lists, which have none, become `dtype`.
    """
    if isinstance(value, np.ndarray):
        return _wrap_numpy(out, value, label)
    if isinstance(value, Tensor):
        owner = value._open()
        check(lib.neml2_tensor_share(out, owner[0]))
        return value._source
    if is_torch(value):
        return _wrap_torch(out, value, label) if value.is_cpu else _wrap_device(out, value, label)
    if (
        hasattr(value, "__dlpack_device__")
        and value.__dlpack_device__()[0] == lib.NEML2_DEVICE_CUDA
        and _torch_has_cuda()
    ):
        return _wrap_device(out, value, label)
    return _wrap_numpy(out, _as_array(value, label, dtype), label)


def _as_array(value: Any, label: Label, dtype: str) -> Array:
    try:
        if isinstance(value, (int, float, list, tuple)):
            return np.asarray(value).astype(dtype, casting="same_kind")
        if hasattr(value, "toarray") and hasattr(value, "nnz"):  # scipy's
            raise TypeError("it is sparse: pass it dense, array.toarray()")
        if hasattr(value, "__dlpack__"):
            if (device := value.__dlpack_device__())[0] not in _HOST:
                raise BufferError(f"it is on the device {device} of DLPack: pass it on the cpu")
            return np.from_dlpack(value)
        return np.asarray(value)
    except (AttributeError, TypeError, ValueError, BufferError, RuntimeError) as error:
        raise label.refuse(  # of an attribute, if jax traces: it has no memory
            f"cannot be made an array, from a {type(value).__name__}: {error}",
            lib.NEML2_ERROR_DTYPE,
        ) from error


def _wrap_numpy(out: Any, array: Array, label: Label) -> Array:
    code = CODES.get(array.dtype)
    if code is None and array.dtype.name == "bfloat16":  # of ml_dtypes, which exports no buffer
        code, array = lib.NEML2_BFLOAT16, array.view(np.int16)
    if code is None:
        known = ", ".join(map(str, CODES))
        real = "; pass its real part, array.real" if array.dtype.kind == "c" else ""
        raise label.refuse(
            f"has the element type {array.dtype.str!r}; possible are {known}, in native byte order"
            f"{real}",
            lib.NEML2_ERROR_DTYPE,
        )
    # The library would compute with what is behind a mask.
    if type(array) is not np.ndarray and np.ma.is_masked(array):
        raise label.refuse("is masked: fill it first, array.filled(value)", lib.NEML2_ERROR_DTYPE)
    if array.flags.c_contiguous and array.flags.aligned:
        data, strides = ffi.from_buffer(array), ffi.NULL
    else:
        if not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
            raise label.refuse(
                f"is not aligned to its element type {array.dtype}: pass a copy, array.copy()",
                lib.NEML2_ERROR_ARGUMENT,
            )
        if any(stride < 0 for stride in array.strides):  # the library has none
            return _wrap_numpy(out, array.copy(), label)
        data = ffi.cast(_VOID, array.__array_interface__["data"][0])
        strides = [stride // array.itemsize for stride in array.strides]
    status = lib.neml2_tensor_wrap(
        out, data, code, array.ndim, array.shape, strides, ffi.NULL, ffi.NULL
    )
    check(status)
    return array


def _wrap_device(out: Any, array: Any, label: Label) -> Any:
    """A tensor of CUDA, by DLPack."""
    from neml2_capi._ffi import dlpack

    own = is_torch(array)
    if own and not array.is_cuda:
        raise label.refuse(
            f"is on the device {array.device}: pass it on the cpu, tensor.cpu(), or on cuda",
            lib.NEML2_ERROR_UNSUPPORTED,
        )
    try:
        # Work that torch has put on its current stream comes before what is put there now.
        dlpack.take(out, array.detach() if own else array, -1 if own else _current_stream())
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise label.refuse(f"cannot be shared: {error}", lib.NEML2_ERROR_UNSUPPORTED) from error
    return array


def _torch_has_cuda() -> bool:
    """Tell whether torch can use CUDA: else its arrays are refused as on any other device."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def _current_stream() -> int:
    """Return torch's stream, on which the library computes, for DLPack: 1 is the default."""
    import torch

    return int(torch.cuda.current_stream().cuda_stream) or 1


def require_dense(tensor: Any, label: Label) -> None:
    """Refuse a tensor of torch whose memory is no array of its shape."""
    if tensor.layout is not sys.modules["torch"].strided:
        raise label.refuse(
            f"is sparse or packed, {tensor.layout}: pass it dense, tensor.to_dense()",
            lib.NEML2_ERROR_UNSUPPORTED,
        )
    if tensor.is_nested:
        raise label.refuse(
            "is a nested tensor: pass one array for all points", lib.NEML2_ERROR_UNSUPPORTED
        )


def _wrap_torch(out: Any, tensor: Any, label: Label) -> Any:
    torch = sys.modules["torch"]
    require_dense(tensor, label)
    code = _torch_codes(torch).get(tensor.dtype)
    if code is None:
        real = "; pass its real part, tensor.real" if tensor.is_complex() else ""
        raise label.refuse(
            f"has the element type {tensor.dtype}; possible are {', '.join(DTYPE_NAMES.values())}"
            f"{real}",
            lib.NEML2_ERROR_DTYPE,
        )
    try:
        if tensor.is_neg():  # negated lazily: the memory holds the other sign
            tensor = tensor.resolve_neg()
        data, strides = ffi.cast(_VOID, tensor.data_ptr()), tensor.stride()
    except RuntimeError as error:
        raise label.refuse(f"has no plain memory: {error}", lib.NEML2_ERROR_UNSUPPORTED) from error
    status = lib.neml2_tensor_wrap(
        out, data, code, tensor.dim(), tensor.shape, strides, ffi.NULL, ffi.NULL
    )
    check(status)
    return tensor


@cache
def _torch_codes(torch: Any) -> Mapping[Any, int]:
    return {getattr(torch, name): code for code, name in DTYPE_NAMES.items()}


# ------------------------------------------------------------------------------------------------
# Out
# ------------------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """Place of the elements of a tensor."""

    code: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements; never negative
    address: int

    @property
    def itemsize(self) -> int:
        dtype = _NUMPY.get(self.code)  # all but bfloat16
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
    dtype = _numpy_type(where.code)
    if dtype is None:
        raise FatalError(
            f"numpy has no element type {DTYPE_NAMES[where.code]}: ask for a torch tensor (results "
            "are, where the inputs are), or install ml_dtypes, which adds it to numpy",
            lib.NEML2_ERROR_DTYPE,
        )
    array = _view(where, dtype, (owner, source))
    if _is_read_only(source):
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
    dtype = _NUMPY.get(where.code)
    if dtype is None:  # bfloat16 travels as the integers that have its bits
        bits = _view(where, np.dtype("int16"), (owner, source))
        return torch.from_numpy(bits).view(torch.bfloat16)
    return torch.from_numpy(_view(where, dtype, (owner, source)))


def _is_read_only(source: Any) -> bool:
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
