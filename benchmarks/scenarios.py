"""What is measured, and what it must show: data only."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

# The contestants; README.md says what each is.
C, PYTHON, BOUND = "C", "Python", "Python, bound"
LIMIT, HAND = "packages alone", "hand-written"
NEML2, NEML2_PYTHON = "NEML2", "NEML2, Python"
CONTESTANTS = (C, PYTHON, BOUND, LIMIT, HAND, NEML2, NEML2_PYTHON)
EVERYBODY = (C, PYTHON, BOUND, LIMIT, NEML2, NEML2_PYTHON)

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
    Line("elasticity", FORWARD, (10_000, 1_000_000), (1, ALL), (C, LIMIT, NEML2)),
    Line("elasticity", FORWARD, (100_000,), (ALL,), (C, PYTHON, BOUND, NEML2, NEML2_PYTHON)),
    Line("elasticity", DERIVATIVES, (100_000,), (1, ALL), (C, LIMIT, NEML2)),
    *(
        line
        for model in (HARDENING, CHABOCHE)
        for line in (
            Line(model, FORWARD, (1,), (1,), (*EVERYBODY, HAND)),
            Line(model, DERIVATIVES, (1,), (1,), EVERYBODY),
            Line(model, FORWARD, (100,), (1,), (*EVERYBODY, HAND)),
            Line(model, FORWARD, (10_000,), (1, ALL), (C, LIMIT, HAND, NEML2)),
            Line(model, FORWARD, (100_000,), (1, ALL), (C, LIMIT, HAND)),
            Line(model, FORWARD, (100_000,), (ALL,), (C, NEML2)),
            Line(model, DERIVATIVES, (10_000,), (1,), (C, LIMIT)),
            Line(model, JACOBIAN, (100_000,), (ALL,), (C, NEML2)),
            Line(model, TRANSIENT, (1, 1_000), (1,), (C, PYTHON, NEML2, NEML2_PYTHON)),
        )
    ),
    Line(HARDENING, FORWARD, (10_000, 1_000_000), (ALL,), (C,)),
    Line(PARALLEL, FORWARD, (1,), (1, ALL), (C, LIMIT, NEML2)),
    Line(PARALLEL, FORWARD, (100_000,), (1, ALL), (C, LIMIT, NEML2)),
    *(
        line
        for model in ("radial_return", "crystal")
        for line in (
            Line(model, FORWARD, (1, 100), (1,), EVERYBODY),
            Line(model, DERIVATIVES, (1,), (1,), (C, LIMIT, NEML2)),
            Line(model, FORWARD, (10_000,), (1, ALL), (C, LIMIT, NEML2)),
            Line(model, JACOBIAN, (10_000,), (ALL,), (C, NEML2)),
        )
    ),
]


class Target(NamedTuple):
    """A quantity, or the ratio of two, that must be at least or at most some number."""

    text: str
    upper: Key
    lower: Key | None
    number: float
    at_least: bool
    per_point: bool = False


def _faster(text: str, task: tuple[str, str, int, int], number: float, than: str = NEML2) -> Target:
    ours = {NEML2: C, NEML2_PYTHON: PYTHON}[than]
    return Target(f"{text}: faster than NEML2", Key(*task, than), Key(*task, ours), number, True)


def _at_most(text: str, upper: Key, lower: Key | None, number: float, **more: bool) -> Target:
    return Target(text, upper, lower, number, at_least=False, **more)


def _one_elasticity(operation: str, contestant: str) -> Key:
    return Key("elasticity", operation, 1, 1, contestant)


TARGETS = [
    _at_most(
        "elasticity, 1 point, from C: over the bare package run",
        _one_elasticity("forward", C),
        _one_elasticity("forward", LIMIT),
        2,
    ),
    *(
        _faster(
            f"elasticity, {operation}, 1 point, from C", ("elasticity", operation, 1, 1), number
        )
        for operation, number in (("forward", 6), ("jacobian", 6), ("jvp", 20))
    ),
    _faster(
        "elasticity, forward, 1 point, from Python",
        ("elasticity", "forward", 1, 1),
        1,
        NEML2_PYTHON,
    ),
    Target(
        "elasticity, forward, 1 point, from Python, bound: faster than NEML2",
        _one_elasticity("forward", NEML2_PYTHON),
        _one_elasticity("forward", BOUND),
        3,
        at_least=True,
    ),
    _faster("isotropic hardening, 1 point", (HARDENING, "forward", 1, 1), 30),
    _faster("Chaboche, 1 point", (CHABOCHE, "forward", 1, 1), 15),
    _faster("isotropic hardening, 100,000 points", (HARDENING, "forward", 100_000, ALL), 8),
    _faster("Chaboche, 100,000 points", (CHABOCHE, "forward", 100_000, ALL), 12),
    _at_most(
        "isotropic hardening, 10,000 points, one thread: over the hand-written routine",
        Key(HARDENING, "forward", 10_000, 1, C),
        Key(HARDENING, "forward", 10_000, 1, HAND),
        1.5,
    ),
    *(
        _faster(
            f"{model}, jacobian, {points:,} points", (model, "jacobian", points, threads), number
        )
        for model in (HARDENING, CHABOCHE)
        for points, threads, number in ((1, 1, 10), (100_000, ALL, 5))
    ),
    *(
        _at_most(
            f"{model}, {points:,} points: jvp over jacobian",
            Key(model, "jvp", points, 1, C),
            Key(model, "jacobian", points, 1, C),
            1,
        )
        for model in (HARDENING, CHABOCHE)
        for points in (1, 10_000)
    ),
    *(
        _at_most(
            f"{model}: cost per point at 1,000,000 over that at 10,000",
            Key(model, "forward", 1_000_000, ALL, C),
            Key(model, "forward", 10_000, ALL, C),
            1.2,
            per_point=True,
        )
        for model in ("elasticity", HARDENING)
    ),
    *(
        Target(
            f"{model}, {points:,} points: one thread over two",
            Key(model, "forward", points, 1, C),
            Key(model, "forward", points, ALL, C),
            1.8,
            at_least=True,
        )
        for model, points in (("elasticity", 1_000_000), (HARDENING, 100_000), (CHABOCHE, 100_000))
    ),
    _at_most("Python to first stress, s", _one_elasticity(START, PYTHON), None, 0.3),
    Target(
        "Python to first stress: faster than NEML2",
        _one_elasticity(START, NEML2_PYTHON),
        _one_elasticity(START, PYTHON),
        1.9 / 0.3,
        at_least=True,
    ),
    _at_most("Python to first stress: memory, MB", _one_elasticity(MEMORY, PYTHON), None, 60),
    _at_most("from C: load and first call, s", _one_elasticity(LOAD, C), None, 0.010),
]
