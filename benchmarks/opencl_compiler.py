"""How long the compiler of an OpenCL runtime takes for a law: PoCL, for example."""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from ctypes import byref, c_size_t, c_ulong, c_void_p

from device_compilers import NoCompilerError

_NOTHING_KNOWN = tempfile.TemporaryDirectory()


def opencl() -> tuple[str, Callable[[str], float]]:
    """The first device's name, and what compiles a text for it, in processor seconds.

    The text has the kernel neml2_update. Some runtimes compile when it is launched: it is, for no
    point.
    """
    os.environ["POCL_CACHE_DIR"] = _NOTHING_KNOWN.name
    try:
        cl = ctypes.CDLL("libOpenCL.so.1")
    except OSError as error:
        raise NoCompilerError(f"{error}: install ocl-icd and pocl-opencl-icd") from None
    platform, device, code = c_void_p(), c_void_p(), ctypes.c_int()
    cl.clGetPlatformIDs(1, byref(platform), None)
    if cl.clGetDeviceIDs(platform, c_ulong(0xFFFFFFFF), 1, byref(device), None):
        raise NoCompilerError("OpenCL has no device: install pocl-opencl-icd")
    name = ctypes.create_string_buffer(256)
    cl.clGetPlatformInfo(platform, 0x0902, c_size_t(256), name, None)

    def made(function: str, *arguments: object) -> c_void_p:
        of = getattr(cl, function)
        of.restype = c_void_p
        handle = c_void_p(of(*arguments, byref(code)))
        if code.value:
            raise RuntimeError(f"{function}: OpenCL error {code.value}")
        return handle

    context = made("clCreateContext", None, 1, byref(device), None, None)
    queue = made("clCreateCommandQueue", context, device, c_ulong(0))

    def seconds(text: str) -> float:
        began, source = time.process_time(), ctypes.c_char_p(text.encode())
        program = made("clCreateProgramWithSource", context, 1, byref(source), None)
        if cl.clBuildProgram(program, 1, byref(device), b"-cl-std=CL1.2", None, None):
            raise RuntimeError("OpenCL cannot compile the law")
        kernel = made("clCreateKernel", program, b"neml2_update")
        failed, items = 0, c_size_t(64)
        for place in range(12):
            failed |= cl.clSetKernelArg(kernel, place, c_size_t(8), byref(c_ulong(0)))
        launch = (queue, kernel, 1, None, byref(items), None, 0, None, None)
        if failed or cl.clEnqueueNDRangeKernel(*launch) or cl.clFinish(queue):
            raise RuntimeError("OpenCL cannot launch the law")
        for release, handle in (("clReleaseKernel", kernel), ("clReleaseProgram", program)):
            getattr(cl, release)(handle)
        return time.process_time() - began

    return name.value.decode(), seconds
