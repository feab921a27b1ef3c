"""What is measured: data only."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

# The contestants; README.md says what each is.
C, PYTHON, BOUND = "C", "Python", "Python, bound"
LIMIT, HAND, MFRONT = "packages alone", "hand-written", "MFront"
NEML2, NEML2_PYTHON = "NEML2", "NEML2, Python"
# C on point kernels, by the processor that they were built for.
LANES = {"C, lanes v3": "x86-64-v3", "C, lanes v4": "x86-64-v4"}
CONTESTANTS = (C, *LANES, PYTHON, BOUND, LIMIT, HAND, MFRONT, NEML2, NEML2_PYTHON)
EVERYBODY = (C, *LANES, PYTHON, BOUND, LIMIT, NEML2, NEML2_PYTHON)

ALL = 0  # threads: as many as there are cores


class Key(NamedTuple):
    """One contestant at one task."""

    model: str
    operation: str
    points: int
    threads: int
    contestant: str


class Line(NamedTuple):
    """What is measured side by side, in turns: everything with everything."""

    model: str
    operations: tuple[str, ...]
    points: tuple[int, ...]
    threads: tuple[int, ...]
    contestants: tuple[str, ...]

    def tasks(self) -> list[Key]:
        """The contestants at each task; the packages alone run on one thread."""
        everything = product(self.operations, self.points, self.threads, self.contestants)
        keys = [Key(self.model, *task) for task in everything]
        return [key for key in keys if key.threads == 1 or key.contestant != LIMIT]

    @property
    def title(self) -> str:
        points = " and ".join(f"{n:,}" for n in self.points)
        many = "point" if self.points == (1,) else "points"
        return f"{self.model}, {' and '.join(self.operations)}, {points} {many}"


FORWARD, JACOBIAN, JVP, TRANSIENT = ("forward",), ("jacobian",), ("jvp",), ("transient",)
TANGENT = ("tangent",)
DERIVATIVES = JACOBIAN + JVP
# Of one process: from its start to its first result, loading and the first call alone, and the most
# memory that was resident.
START, LOAD, MEMORY = "start", "load", "memory"

HARDENING, PARALLEL, CHABOCHE = "isotropic_hardening", "isotropic_hardening_parallel", "chaboche"

LINES = [
    Line("elasticity", (START, LOAD, MEMORY), (1,), (1,), (C, PYTHON, NEML2, NEML2_PYTHON)),
    Line("elasticity", FORWARD, (1,), (1,), EVERYBODY),
    Line("elasticity", DERIVATIVES, (1,), (1,), EVERYBODY),
    Line("elasticity", FORWARD, (100,), (1,), EVERYBODY),
    Line("elasticity", FORWARD, (10_000, 1_000_000), (1, ALL), (C, *LANES, LIMIT, NEML2)),
    Line("elasticity", FORWARD, (100_000,), (ALL,), (C, PYTHON, BOUND, NEML2, NEML2_PYTHON)),
    Line("elasticity", DERIVATIVES, (100_000,), (1, ALL), (C, *LANES, LIMIT, NEML2)),
    *(
        line
        for model in (HARDENING, CHABOCHE)
        for line in (
            Line(model, FORWARD, (1,), (1,), (*EVERYBODY, HAND)),
            Line(model, DERIVATIVES, (1,), (1,), EVERYBODY),
            Line(model, FORWARD, (100,), (1,), (*EVERYBODY, HAND)),
            Line(model, FORWARD, (10_000,), (1, ALL), (C, *LANES, LIMIT, HAND, NEML2)),
            Line(model, FORWARD, (100_000,), (1, ALL), (C, *LANES, LIMIT, HAND)),
            Line(model, FORWARD, (100_000,), (ALL,), (C, *LANES, NEML2)),
            Line(model, DERIVATIVES, (10_000,), (1,), (C, *LANES, LIMIT)),
            Line(model, JACOBIAN, (100_000,), (ALL,), (C, *LANES, NEML2)),
            Line(model, TRANSIENT, (1,), (1,), (C, PYTHON, NEML2, NEML2_PYTHON)),
            Line(model, TRANSIENT, (1_000,), (1,), (C, *LANES, NEML2)),
        )
    ),
    Line(HARDENING, FORWARD + TANGENT, (1, 10_000), (1,), (*LANES, MFRONT)),
    Line(HARDENING, FORWARD, (10_000, 1_000_000), (ALL,), (C,)),
    Line(PARALLEL, FORWARD, (1,), (1, ALL), (C, LIMIT, NEML2)),
    Line(PARALLEL, FORWARD, (100_000,), (1, ALL), (C, LIMIT, NEML2)),
    *(
        line
        for model, many in (("radial_return", 10_000), ("crystal", 1_000))
        for line in (
            Line(model, FORWARD, (1, 100), (1,), EVERYBODY),
            Line(model, DERIVATIVES, (1,), (1,), (C, *LANES, LIMIT, NEML2)),
            Line(model, FORWARD, (many,), (1, ALL), (C, *LANES, LIMIT, NEML2)),
            Line(model, JACOBIAN, (many,), (ALL,), (C, *LANES, NEML2)),
        )
    ),
]
