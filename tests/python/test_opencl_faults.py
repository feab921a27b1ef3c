"""Faults of a device of OpenCL: each is an error of ours, and the next call is as before."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from native import CC, HOSTS, command, run
from slow import later
from test_opencl import cache_of_pocl, caches, with_text  # noqa: F401  (fixtures)

pytestmark = pytest.mark.numbers

#: The function that fails, its error, and what is told of it.
FAULTS = [
    ("clCreateBuffer", -4, "no memory left for clCreateBuffer (error -4)"),
    ("clEnqueueWriteBuffer", -14, "clEnqueueWriteBuffer gave error -14"),
    ("clSetKernelArg", -38, "clSetKernelArg gave error -38"),
    ("clEnqueueNDRangeKernel", -6, "no memory left for clEnqueueNDRangeKernel (error -6)"),
    ("clEnqueueReadBuffer", -38, "clEnqueueReadBuffer gave error -38"),
    ("clEnqueueMarkerWithWaitList", -36, "clEnqueueMarkerWithWaitList gave error -36"),
    ("clFlush", -36, "clFlush gave error -36"),
    ("clWaitForEvents", -14, "a kernel or a copy ended with error -14"),
    ("clWaitForEvents", -5, "a kernel or a copy ended with error -5"),
    ("clGetEventInfo", -5, "a kernel or a copy ended with error -5"),
]
PROGRAM = """
import ctypes, sys
import numpy as np
from neml2_capi import FatalError, Model
opencl = ctypes.CDLL(sys.argv[1])
model = Model(sys.argv[2], device="opencl")
strain = np.random.default_rng(0).normal(size=(100, 6))
model.options["chunk"] = 30  # two batches are under way
expected = model.bind({"strain": strain})()["stress"].copy()
for more, (name, status) in enumerate(eval(sys.argv[3])):
    model.options["chunk"] = 31 + more  # takes new memory
    call, function = model.bind({"strain": strain}, derivatives=True), name.encode()
    opencl.fail(function, status)
    try:
        call()
        print(name, status, "nothing")
    except FatalError as error:
        print(name, status, error.status, error)
    np.testing.assert_array_equal(call()["stress"], expected)
"""

#: The same of a call over memory of the device, whose parameter is another one each time.
CALL = """
import ctypes, sys
import numpy as np
sys.path[:0] = [sys.argv[4], sys.argv[5]]
from opencl_queue import Context
from test_device_arrays import Call
from test_opencl import hooke
from neml2_capi import FatalError, Model
from neml2_capi._ffi.library import lib
opencl = ctypes.CDLL(sys.argv[1])
model = Model(sys.argv[2], device="opencl")
model.options["chunk"] = 40
strain, queue = np.random.default_rng(0).normal(size=(100, 6)), Context().queue()
call, stress = Call(model, queue), queue.buffer(strain)
call.bind(lib.NEML2_INPUT, "strain", queue.buffer(strain), 6)
call.bind(lib.NEML2_OUTPUT, "stress", stress, 6)
for number, (name, status) in enumerate(eval(sys.argv[3])):
    model["E"] = modulus = 1.0 + number
    model.options["chunk"] = 40 + number  # takes new memory
    function = name.encode()  # which stays
    opencl.fail(function, status)
    try:
        call.run(100)
        call.wait()
        print(name, status, "nothing")
    except FatalError as error:
        print(name, status, error.status, error)
    assert (call.run(100), call.wait()) == (0, 0)
    expected = hooke(strain, np.full(100, modulus))
    np.testing.assert_allclose(queue.values(stress, strain), expected, rtol=1e-14)
"""


@pytest.mark.parametrize(
    "program", later([PROGRAM, CALL], [PROGRAM]), ids=["arrays of the host", "of the device"]
)
def test_a_fault_is_an_error_and_the_next_call_is_as_before(program: str, tmp_path: Path) -> None:
    opencl = tmp_path / "libfailing.so"
    source = HOSTS / "failing_opencl.c"
    if not shutil.which(CC) or sys.platform != "linux":
        pytest.skip("needs a compiler of C on Linux")
    command(CC, "-shared", "-fPIC", source, "-o", opencl, "-Wl,--no-as-needed", "-l:libOpenCL.so.1")
    root = with_text(tmp_path / "artifact")
    asked = [(name, status) for name, status, _ in FAULTS]
    here = Path(__file__).parent
    told = run(
        *(sys.executable, "-c", program, opencl, root, repr(asked), here, here / "kernels"),
        NEML2_CAPI_OPENCL=str(opencl),
    )
    for line, (name, status, words) in zip(told.splitlines(), FAULTS, strict=True):
        assert line.startswith(f"{name} {status} "), line
        assert words in line
