"""Load, evaluate and close a model again and again: what is mapped and resident must not grow.

python cycles.py ARTIFACTS
"""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path

import numpy as np

import neml2_capi

WARM_UP, CYCLES = 100, 500
# The interpreter maps and unmaps arenas of 1 MiB as it likes.
ARENAS = 2


def cycle(root: Path) -> None:
    with neml2_capi.Model(root) as model:
        model.named_parameters()["elasticity.E"][...] = 100e3
        model.forward({"strain": np.zeros((3, 6))})
        try:
            model.forward({"strain": np.zeros((3, 5))})
        except neml2_capi.FatalError:
            pass
        else:
            raise AssertionError("a wrong shape was accepted")
    neml2_capi.Model(root)  # not closed: its finalizer frees it


def footprint() -> tuple[int, int]:
    """Mappings, and resident bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    mappings = len(Path("/proc/self/maps").read_text().splitlines())
    return mappings, pages * resource.getpagesize()


def main() -> None:
    root = Path(sys.argv[1]) / "elasticity"
    for _ in range(WARM_UP):
        cycle(root)
    mappings, resident = footprint()
    for _ in range(WARM_UP, CYCLES):
        cycle(root)
    more_mappings, more_resident = footprint()
    assert more_mappings <= mappings + ARENAS, (mappings, more_mappings)
    assert more_resident <= resident + ARENAS * 2**20, (resident, more_resident)


if __name__ == "__main__":
    main()
