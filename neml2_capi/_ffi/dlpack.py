"""Tensors of a device as capsules of DLPack: in and out without a copy."""

from __future__ import annotations

import ctypes
from typing import Any

from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib

_NEW, _TAKEN = b"dltensor_versioned", b"used_dltensor_versioned"
#: Offset of the deleter in a DLManagedTensorVersioned, behind the version and a pointer.
_DELETER = 16


# Keeps declarations from ctypes.pythonapi, where they would hold for everybody.
_python = ctypes.PyDLL(None)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(_python, name)
    function.restype, function.argtypes = result, arguments
    return function


_destructor_type = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_make = _function(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _destructor_type
)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# Takes an address, since a capsule is no object any more in its destructor.
_PointerOfDying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_pointer_of_dying = _PointerOfDying(("PyCapsule_GetPointer", _python))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)


def _let_go(capsule: int) -> None:
    """Let go of a tensor that nobody has taken out of its capsule."""
    if not _is_valid(capsule, _NEW):
        return
    managed = _pointer_of_dying(capsule, _NEW)
    deleter = ctypes.c_void_p.from_address(managed + _DELETER).value
    if deleter:
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(deleter)(managed)


_destructor = _destructor_type(_let_go)


def take(out: Any, producer: Any, stream: int | None) -> None:
    """Fill `out` with a handle over the memory of a DLPack producer.

    The producer puts what it still has to do before the work of `stream`, a cudaStream_t; -1: it
    need not, and None for the CPU. FatalError for a tensor that the library cannot take; others,
    BufferError for example, are the producer's.
    """
    capsule = producer.__dlpack__(stream=stream, max_version=(1, 0))
    address = _pointer(capsule, _NEW)
    managed = ffi.cast("struct DLManagedTensorVersioned *", address)
    check(lib.neml2_tensor_from_dlpack(out, managed))
    _rename(capsule, _TAKEN)


def capsule(owner: Any) -> Any:
    """A capsule over the tensor of `owner`, for a consumer; it keeps the memory alive."""
    managed = ffi.new("struct DLManagedTensorVersioned **")
    check(lib.neml2_tensor_to_dlpack(managed, owner[0]))
    return _make(int(ffi.cast("intptr_t", managed[0])), _NEW, _destructor)
