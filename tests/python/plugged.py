"""A plug-in of combined hardening, and the programs of tests/hosts that load it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from native import CC, HOSTS, PREBUILT, kept
from numpy.typing import NDArray

from neml2_capi import Model

HARDENING = PREBUILT / "combined_hardening"
# One point of tests/hosts/plugin.c: direct components, then 12, 13, 23, shear doubled.
STRAIN = np.array([4e-3, -1e-3, -2e-3, 3e-3, -5e-3, 2e-3])
ORDER, SHEAR = [0, 1, 2, 5, 4, 3], np.array([1, 1, 1, *[np.sqrt(2)] * 3])


def program(name: str = "plugin") -> Path:
    """A program in C, which is linked with nothing of ours."""
    return kept("program", (CC,), HOSTS / f"{name}.c", "-ldl") / "program"


def expected() -> dict[str, NDArray[np.float64]]:
    """Results of the model at that point, in the form of UMAT."""
    model = Model(HARDENING)
    inputs = {v.name: np.zeros(v.base_shape) for v in model.inputs}
    inputs |= {
        "t": np.array(1.0),
        "strain": (STRAIN / np.array([1, 1, 1, *[2] * 3]) * SHEAR)[ORDER],
    }
    outputs, tangents = model.jacobian(inputs)
    stress = outputs["stress"][ORDER] / SHEAR
    tangent = tangents["stress"]["strain"][np.ix_(ORDER, ORDER)] / SHEAR[:, None] / SHEAR
    states = [outputs[name][ORDER] / SHEAR for name in ("X1", "X2")]
    plastic = outputs["equivalent_plastic_strain"]
    return {
        "stress": stress,
        "ddsdde": tangent.T.ravel(),
        "statev": np.concatenate([[plastic], *states]),
    }


def called(library: Path, *wrappers: str, folder: Path) -> dict[str, NDArray[np.float64]]:
    """Run the program in C on a library, in a folder without anything else."""
    done = subprocess.run(
        [*wrappers, program(), library], cwd=folder, capture_output=True, text=True, check=True
    )
    lines = (line.split() for line in done.stdout.splitlines())
    return {word: np.array([float(n) for n in numbers]) for word, *numbers in lines}


def assert_is_expected(found: Mapping[str, NDArray[np.float64]]) -> None:
    for name, values in expected().items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-12 * abs(values).max())
