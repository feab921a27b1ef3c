"""Evaluate both example models and print the results exactly, then what of interest is mapped.

python history.py ARTIFACTS [--before MODULE] [--after MODULE] [--global LIBRARY]

`--before` and `--after` import a module before and after neml2_capi. `--global` opens a library in
the global scope first, where its symbols come before the symbols of all that is loaded later.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
from collections.abc import Iterator
from pathlib import Path

POINTS = 5


def mappings() -> Iterator[str]:
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6:
            yield fields[5]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("artifacts", type=Path)
    parser.add_argument("--before")
    parser.add_argument("--after")
    parser.add_argument("--global", dest="library")
    options = parser.parse_args()

    if options.before:
        importlib.import_module(options.before)
    if options.library:
        ctypes.CDLL(options.library, mode=ctypes.RTLD_GLOBAL)

    import numpy as np
    from numpy.typing import NDArray

    import neml2_capi

    if options.after:
        importlib.import_module(options.after)

    elasticity = neml2_capi.Model(options.artifacts / "elasticity")
    viscoplastic = neml2_capi.Model(options.artifacts / "viscoplastic")

    def show(name: str, values: object) -> None:
        print("result", name, np.asarray(values, dtype="<f8").tobytes().hex())

    strain = np.linspace(-1e-3, 2e-3, 6 * POINTS).reshape(POINTS, 6)
    show("elasticity", elasticity.forward({"strain": strain})["stress"])
    show("elasticity, one point", elasticity.forward({"strain": strain[:1]})["stress"])
    show("elasticity, no batch", elasticity.forward({"strain": strain[0]})["stress"])

    for points in (1, POINTS):
        state: dict[str, NDArray[np.float64]]
        state = {name: np.zeros((points, 6)) for name in ("strain", "stress", "X1", "X2")}
        state["equivalent_plastic_strain"] = np.zeros(points)
        for k in range(1, 9):
            strain = np.linspace(0.5, 1, points)[:, None] * np.array([1, -0.3, -0.3, 0.1, 0.2, 0.3])
            strain = strain * 0.01 * (k % 5 - 1.5) / 3
            old = {f"{name}~1": value for name, value in state.items()}
            outputs = viscoplastic.forward({"strain": strain, "t": float(k), "t~1": k - 1.0, **old})
            state = {**outputs, "strain": strain}
            for name, value in outputs.items():
                show(f"{name}, step {k} of {points} points", value)

    for name in sorted({Path(path).name for path in mappings()}):
        if any(part in name for part in ("torch", "memfd", "neml2_capi")):
            print("mapped", name)


if __name__ == "__main__":
    main()
