"""OpenCL as a host has it: a context, queues, buffers and shared memory of its own, by ctypes."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_int, c_size_t, c_uint, c_ulong, c_void_p
from typing import Any

import numpy as np
from states import Array

_DONE = 0  # CL_COMPLETE


def library() -> ctypes.CDLL:
    found = ctypes.CDLL(os.environ.get("NEML2_CAPI_OPENCL") or "libOpenCL.so.1")
    for name in (
        *("clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clSVMAlloc"),
        "clCreateUserEvent",
    ):
        getattr(found, name).restype = c_void_p
    return found


def checked(status: int) -> None:
    assert status == _DONE, status


def devices() -> list[int]:
    """The handles of all devices, in the order of the loader."""
    cl, count, found = library(), c_uint(), list[int]()
    checked(cl.clGetPlatformIDs(0, None, byref(count)))
    platforms = (c_void_p * count.value)()
    checked(cl.clGetPlatformIDs(count, platforms, None))
    for platform in map(c_void_p, platforms):
        many, every = c_uint(), c_ulong(0xFFFFFFFF)
        if cl.clGetDeviceIDs(platform, every, 0, None, byref(many)) == _DONE:
            here = (c_void_p * many.value)()
            checked(cl.clGetDeviceIDs(platform, every, many, here, None))
            found += [handle for handle in here if handle]
    return found


class Context:
    """A context on a device of the loader, which is not the library's."""

    def __init__(self, index: int = 0) -> None:
        self.cl, self.device = library(), c_void_p(devices()[index])
        status = c_int()
        self.handle = c_void_p(
            self.cl.clCreateContext(None, 1, byref(self.device), None, None, byref(status))
        )
        checked(status.value)

    def queue(self, properties: int = 0) -> Queue:
        return Queue(self, properties)


class Queue:
    """A queue; arrays go to buffers or shared memory, and come back."""

    def __init__(self, context: Context, properties: int) -> None:
        self.context, self.cl, status = context, context.cl, c_int()
        self.handle = c_void_p(
            self.cl.clCreateCommandQueue(
                context.handle, context.device, c_ulong(properties), byref(status)
            )
        )
        checked(status.value)

    def buffer(self, array: np.ndarray[Any, Any]) -> c_void_p:
        """A cl_mem with the values of an array."""
        status, whole = c_int(), np.ascontiguousarray(array)
        made = c_void_p(
            self.cl.clCreateBuffer(
                self.context.handle, c_ulong(1), c_size_t(whole.nbytes), None, byref(status)
            )
        )
        checked(status.value)
        checked(
            self.cl.clEnqueueWriteBuffer(
                *(self.handle, made, c_uint(1), c_size_t(0), c_size_t(whole.nbytes)),
                *(c_void_p(whole.ctypes.data), 0, None, None),
            )
        )
        return made

    def values(self, buffer: c_void_p, like: Any) -> Any:
        """Return the content of a buffer when the queue has come there."""
        made = np.empty_like(np.ascontiguousarray(like))
        checked(
            self.cl.clEnqueueReadBuffer(
                *(self.handle, buffer, c_uint(1), c_size_t(0), c_size_t(made.nbytes)),
                *(c_void_p(made.ctypes.data), 0, None, None),
            )
        )
        return made

    def shared(self, array: Array) -> Array:
        """A copy in shared memory, which the processor's devices read where it is."""
        place = self.cl.clSVMAlloc(
            self.context.handle, c_ulong(1), c_size_t(array.nbytes), c_uint(64)
        )
        assert place
        block = (ctypes.c_char * array.nbytes).from_address(place)
        made: Array = np.ndarray(array.shape, array.dtype, memoryview(block).cast("B"))
        made[...] = array
        return made

    def block(self) -> c_void_p:
        """Let what is put in from now on wait for release()."""
        status = c_int()
        event = c_void_p(self.cl.clCreateUserEvent(self.context.handle, byref(status)))
        checked(status.value)
        checked(self.cl.clEnqueueBarrierWithWaitList(self.handle, 1, byref(event), None))
        return event

    def release(self, event: c_void_p, status: int = _DONE) -> None:
        checked(self.cl.clSetUserEventStatus(event, c_int(status)))

    def finish(self) -> None:
        checked(self.cl.clFinish(self.handle))
