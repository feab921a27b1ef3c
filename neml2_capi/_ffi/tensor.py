"""Tensors: arrays in from whatever holds them, and out, without copies."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from neml2_capi._ffi.dtypes import CODES, DTYPE_NAMES, dtype_code, torch_codes
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.views import (
    as_numpy,
    as_torch,
    device_of,
    device_text,
    is_on_host,
    is_read_only,
    layout,
    taken,
)

# The devices of DLPack whose memory the processor reads: CPU, CUDA host, ROCm host, CUDA managed.
_HOST = (1, 3, 11, 13)

#: What becomes of a compiled law if torch looks for what is computed, without values.
NO_TRACE = (
    "torch.export and other traces cannot look into a compiled law. Export the rest of the "
    "network, and take the law's artifact itself, which runs without torch; torch.compile ends its "
    "graphs at the law"
)

#: What a transform of torch, which gives tensors without memory, is told.
NO_TRANSFORM = (
    "torch.func, vmap and is_grads_batched=True cannot look in here: take backward() or "
    "torch.autograd.grad(), one cotangent at a time; neml2_capi.torch.Module takes them all"
)

_VOID = ffi.typeof("void *")


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
        return tensor.clone() if is_read_only(self._source) else tensor

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


def carries_tangent(tensor: Any) -> bool:
    """Tell whether a tensor of torch has a tangent of forward mode."""
    forward_ad = sys.modules["torch"].autograd.forward_ad
    if getattr(forward_ad, "_current_level", 0) < 0:
        return False
    return forward_ad.unpack_dual(tensor).tangent is not None


def is_transformed(tensor: Any) -> bool:
    """Tell whether a tensor of torch stands for others, in a transform of torch."""
    kinds = sys.modules["torch"]._C._functorch
    return bool(kinds.is_functorch_wrapped_tensor(tensor) or kinds.is_legacy_batchedtensor(tensor))


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
        require_no_tangent(value, label)
        return _wrap_torch(out, value, label) if value.is_cpu else _wrap_device(out, value, label)
    if (
        hasattr(value, "__dlpack_device__")
        and value.__dlpack_device__()[0] == lib.NEML2_DEVICE_CUDA
        and _torch_has_cuda()
    ):
        return _wrap_device(out, value, label)
    return _wrap_numpy(out, _as_array(value, label, dtype), label)


def host_array(value: Any, label: Label, dtype: str) -> Array:
    """A numpy array over an argument, as of wrap(); FatalError if it is in memory of a device."""
    require_host(value, label)
    owner = owned("tensor")
    return taken(owner, wrap(owner, value, label, dtype), label, dtype)


def require_host(value: Any, label: Label) -> None:
    """FatalError if an array is in memory of a device."""
    if is_torch(value):
        elsewhere, instead = not value.is_cpu, "tensor.cpu()"
    else:
        asked = getattr(value, "__dlpack_device__", None)
        elsewhere, instead = asked is not None and asked()[0] not in _HOST, "it on the cpu"
    if elsewhere:
        raise label.refuse(
            f"is on a device, and is read on the host: pass {instead}", lib.NEML2_ERROR_UNSUPPORTED
        )


def _as_array(value: Any, label: Label, dtype: str) -> Array:
    if value is None:
        raise label.refuse("is None; expected numbers", lib.NEML2_ERROR_DTYPE)
    try:
        if isinstance(value, (int, float, list, tuple)):
            array = np.asarray(value)
            if array.dtype.kind == "b":  # which is not the number 1
                return array
            return array.astype(dtype, casting="same_kind")
        if hasattr(value, "toarray") and hasattr(value, "nnz"):  # scipy's
            raise TypeError("it is sparse: pass it dense, array.toarray()")
        if hasattr(value, "base_data"):  # pyopencl's
            raise BufferError("it is on a device of OpenCL: pass its values, array.get()")
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
        remedies = {"c": "; pass its real part, array.real", "f": "; pass array.astype('float64')"}
        raise label.refuse(
            f"has the element type {array.dtype.str!r}; possible are {known}, in native byte order"
            f"{remedies.get(array.dtype.kind, '')}",
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


def require_no_tangent(tensor: Any, label: Label) -> None:
    """Refuse a tensor of torch whose tangent would be lost: no tangent is one of zero to torch."""
    if carries_tangent(tensor):
        raise label.refuse(
            "has a tangent of torch's forward mode, which is lost here: give tensor.detach(), and "
            "take derivatives in reverse mode, by jvp() of a model, or through "
            "neml2_capi.torch.Module, which has both modes",
            lib.NEML2_ERROR_UNSUPPORTED,
        )


def _wrap_torch(out: Any, tensor: Any, label: Label) -> Any:
    torch = sys.modules["torch"]
    require_dense(tensor, label)
    code = torch_codes(torch).get(tensor.dtype)
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
        why = NO_TRANSFORM if is_transformed(tensor) else error
        raise label.refuse(f"has no plain memory: {why}", lib.NEML2_ERROR_UNSUPPORTED) from error
    if not data and tensor.numel():
        raise label.refuse(f"has no memory: {NO_TRACE}", lib.NEML2_ERROR_UNSUPPORTED)
    status = lib.neml2_tensor_wrap(
        out, data, code, tensor.dim(), tensor.shape, strides, ffi.NULL, ffi.NULL
    )
    check(status)
    return tensor
