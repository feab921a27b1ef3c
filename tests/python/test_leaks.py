"""Loading, running and freeing again and again leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys

import pytest
from native import PREBUILT, TESTS, c_program, run

CYCLES = 10_000

SCRIPT = """
import gc, sys
import numpy as np
import neml2_capi

def cycle():
    with neml2_capi.Model(sys.argv[1]) as model:
        model.named_parameters()["elasticity.E"][...] = 100e3
        model.forward({"strain": np.zeros((3, 6))})
        try:
            model.forward({"strain": np.zeros((3, 5))})
        except neml2_capi.FatalError:
            pass
    neml2_capi.Model(sys.argv[1])  # not closed: the finalizer has to

def footprint():
    gc.collect()
    with open("/proc/self/statm") as memory, open("/proc/self/maps") as maps:
        return len(maps.readlines()), int(memory.read().split()[1]) * 4

for _ in range(100):
    cycle()
mappings, resident = footprint()
for _ in range(400):
    cycle()
more_mappings, more_resident = footprint()
# The interpreter's arenas come and go as single mappings of up to 1 MiB.
assert more_mappings <= mappings + 2, (mappings, more_mappings)
assert more_resident <= resident + 2048, (resident, more_resident)
"""


@pytest.mark.parametrize("model", ["elasticity", "viscoplastic"])
def test_ten_thousand_cycles_leave_nothing_behind(model: str) -> None:
    program = c_program(TESTS / "c" / "test_cycles.c")
    print(run(program, PREBUILT / model, str(CYCLES)))


def test_python_leaves_nothing_behind() -> None:
    root = str(PREBUILT / "elasticity")
    done = subprocess.run([sys.executable, "-c", SCRIPT, root], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
