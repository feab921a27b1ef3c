"""A file of `neml2-capi run`, which tests write, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from neml2_capi import Results

#: Writes such a file: of a body, the name of an artifact, and another head than HEAD.
Write = Callable[..., Path]

DIRECTION = np.array([1.0, -0.3, -0.3, 0.0, 0.0, 0.0])
TIMES = np.linspace(0.0, 10.0, 21)
HEAD = """
artifact = "{artifact}"
[times]
end = 10.0
steps = 20
"""
RAMP = "[forces.strain]\nramp = 0.01\ndirection = { xx = 1.0, yy = -0.3, zz = -0.3 }\n"


def results_of(file: Path, *arguments: str) -> Results:
    from command_line import answer  # which skips a test without click

    output = file.parent / "results.npz"
    answer("run", file, "--output", output, *arguments)
    return Results.load(output)
