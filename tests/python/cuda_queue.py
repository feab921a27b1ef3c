"""CUDA as a host has it: memory and the default stream of the first device, by ctypes."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_void_p
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Queue:
    """A stream, as opencl_queue.Queue: arrays go to memory of the device, and come back."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.handle, device, context = c_void_p(), c_int(), c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.cuda, name)(*arguments)
        assert status == 0, (name, status)

    def buffer(self, array: Array) -> c_void_p:
        """Memory with the values of an array; it stays until the process ends."""
        whole, memory = np.ascontiguousarray(array), c_void_p()
        size = c_size_t(whole.nbytes)
        self._call("cuMemAlloc_v2", byref(memory), size)
        self._call("cuMemcpyHtoD_v2", memory, c_void_p(whole.ctypes.data), size)
        return memory

    def values(self, memory: c_void_p, like: Array) -> Array:
        """The values of memory, in an array of this shape."""
        found = np.empty_like(like, order="C")
        self._call("cuMemcpyDtoH_v2", c_void_p(found.ctypes.data), memory, c_size_t(found.nbytes))
        return found

    def finish(self) -> None:
        self._call("cuCtxSynchronize")
