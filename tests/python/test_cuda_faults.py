"""Faults of a GPU: they are errors, and models on the processor go on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from native import run
from test_opencl_models import QUICK, opened

pytestmark = [pytest.mark.numbers, pytest.mark.gpu]

#: What evaluates on both sides, in a process of its own.
HEAD = """
import ctypes, sys
import numpy as np
sys.path[:0] = [sys.argv[2], sys.argv[2] + "/kernels"]
from states import repeated, state_of
from neml2_capi import FatalError, Model
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib
from test_device_arrays import Call
lanes, there = Model(sys.argv[1]), Model(sys.argv[1], device="cuda:0")
inputs = repeated(state_of(sys.argv[3], lanes), 1000)
expected = lanes.forward(inputs)["stress"]
np.testing.assert_array_equal(there.forward(inputs)["stress"], expected)
cuda = ctypes.CDLL("libcuda.so.1")

def fails(function):
    try:
        function()
    except FatalError as error:
        return str(error)
    raise AssertionError("nothing failed")
"""
#: A null page is no array.
ILLEGAL = """
owner = there._engine.new_call()
memory = ffi.new("neml2_call_memory *")
memory.size = ffi.sizeof("neml2_call_memory")
check(lib.neml2_call_memory_set(owner[0], memory))
for role, of in ((lib.NEML2_INPUT, there.inputs), (lib.NEML2_OUTPUT, there.outputs)):
    for v in of:
        at, name = ffi.cast("void *", 4096), v.name.encode()
        size = int(np.prod(v.point_shape))
        check(lib.neml2_call_bind(owner[0], role, name, at, lib.NEML2_FLOAT64, size))

def evaluate():
    check(lib.neml2_call_run(owner[0], 1000))
    check(lib.neml2_call_wait(owner[0]))

assert "start another process" in fails(evaluate)
assert "start another process" in fails(lambda: there.forward(inputs))
assert "start another process" in fails(lambda: Model(sys.argv[1], device="cuda:0").forward(inputs))
del owner, there
np.testing.assert_array_equal(lanes.forward(inputs)["stress"], expected)
print("told")
"""
#: As by cudaDeviceReset().
RESET = """
assert cuda.cuDevicePrimaryCtxReset_v2(0) == 0
assert "CUDA failed" in fails(lambda: there.forward(inputs))
again = Model(sys.argv[1], device="cuda:0")
np.testing.assert_array_equal(again.forward(inputs)["stress"], expected)
print("told")
"""
#: All memory that torch can have, to the last megabyte.
FULL = """
import torch
held, size = [], 1 << 34
while size >= 1 << 20:
    try:
        held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        size //= 2
assert "no memory left" in fails(lambda: there.jacobian(inputs))
del held
torch.cuda.empty_cache()
there.jacobian(inputs)
np.testing.assert_array_equal(there.forward(inputs)["stress"], expected)
print("told")
"""


@pytest.mark.parametrize(
    ("program", "name"),
    [(ILLEGAL, QUICK), (RESET, QUICK), (FULL, "chaboche")],
    ids=["illegal address", "reset", "full memory"],
)
def test_a_fault_of_a_gpu_is_told_and_the_processor_goes_on(
    program: str, name: str, tmp_path: Path
) -> None:
    opened(name, tmp_path, "cuda:0")
    here = Path(__file__).parent
    assert run(sys.executable, "-c", HEAD + program, tmp_path, here, name) == "told\n"
