"""What the measurements must show: data only."""

from __future__ import annotations

from typing import NamedTuple

from scenarios import (
    ALL,
    BOUND,
    CHABOCHE,
    HAND,
    HARDENING,
    LANES,
    LIMIT,
    LOAD,
    MEMORY,
    MFRONT,
    NEML2,
    NEML2_PYTHON,
    PYTHON,
    START,
    C,
    Key,
)


class Target(NamedTuple):
    """A quantity, or the ratio of two, that must be at least or at most some number."""

    text: str
    upper: Key
    lower: Key | None
    number: float
    at_least: bool
    per_point: bool = False


def _faster(task: Key, number: float, than: str = NEML2) -> Target:
    """How many times faster than another contestant."""
    points = f"{task.points:,} point" + "s" * (task.points > 1)
    text = f"{task.model}, {task.operation}, {points}, {task.contestant}: faster than {than}"
    return Target(text, task._replace(contestant=than), task, number, at_least=True)


def _at_most(
    text: str, upper: Key, lower: Key | None, number: float, per_point: bool = False
) -> Target:
    return Target(text, upper, lower, number, False, per_point)


def _kernels() -> list[Target]:
    """Targets of point kernels: over the hand-written routine, and against NEML2."""
    v3, v4 = LANES
    found = []
    for model, single in ((HARDENING, 1.0), (CHABOCHE, 0.65)):
        for contestant, points, number in ((v3, 1, single), (v3, 10_000, 0.25), (v4, 10_000, 0.18)):
            lanes = Key(model, "forward", points, 1, contestant)
            text = f"{model}, forward, {points:,} points, {contestant}: over {HAND}"
            found.append(_at_most(text, lanes, lanes._replace(contestant=HAND), number))
    for points, number in ((1, 1.5), (10_000, 0.6)):
        many = f"{points:,} point" + "s" * (points > 1)
        lanes = Key(HARDENING, "tangent", points, 1, v3)
        text = f"{HARDENING}, tangent, {many}, {v3}: over {MFRONT}"
        found.append(_at_most(text, lanes, lanes._replace(contestant=MFRONT), number))
    faster = [
        (Key(HARDENING, "forward", 1, 1, v3), 300),
        (Key(CHABOCHE, "forward", 1, 1, v3), 150),
        (Key(HARDENING, "forward", 100_000, ALL, v3), 60),
        (Key(CHABOCHE, "forward", 100_000, ALL, v3), 80),
        (Key(HARDENING, "jacobian", 100_000, ALL, v3), 30),
        (Key(CHABOCHE, "jacobian", 100_000, ALL, v3), 30),
        (Key("elasticity", "forward", 10_000, 1, v3), 1.8),
        (Key("crystal", "forward", 1_000, 1, v3), 15),
        (Key("crystal", "forward", 1, 1, v3), 100),
        (Key("radial_return", "forward", 10_000, 1, v3), 10),
    ]
    return found + [_faster(key, number) for key, number in faster]


def _elasticity(operation: str, contestant: str = C) -> Key:
    return Key("elasticity", operation, 1, 1, contestant)


TARGETS = [
    _at_most(
        "elasticity, forward, 1 point, C: over the bare package run",
        _elasticity("forward"),
        _elasticity("forward", LIMIT),
        2,
    ),
    _faster(_elasticity("forward"), 6),
    _faster(_elasticity("jacobian"), 6),
    _faster(_elasticity("jvp"), 20),
    _faster(_elasticity("forward", PYTHON), 1, NEML2_PYTHON),
    _faster(_elasticity("forward", BOUND), 3, NEML2_PYTHON),
    *(
        target
        for model, single, many in ((HARDENING, 30, 8), (CHABOCHE, 15, 12))
        for target in (
            _faster(Key(model, "forward", 1, 1, C), single),
            _faster(Key(model, "forward", 1, 1, BOUND), single, NEML2_PYTHON),
            _faster(Key(model, "forward", 100_000, ALL, C), many),
            _faster(Key(model, "jacobian", 1, 1, C), 10),
            _faster(Key(model, "jacobian", 100_000, ALL, C), 5),
        )
    ),
    _at_most(
        f"{HARDENING}, forward, 10,000 points, C, one thread: over the hand-written routine",
        Key(HARDENING, "forward", 10_000, 1, C),
        Key(HARDENING, "forward", 10_000, 1, HAND),
        1.5,
    ),
    *(
        _at_most(
            f"{model}, batch of {points:,}, C: jvp over jacobian",
            Key(model, "jvp", points, 1, C),
            Key(model, "jacobian", points, 1, C),
            1,
        )
        for model in (HARDENING, CHABOCHE)
        for points in (1, 10_000)
    ),
    *(
        _at_most(
            f"{model}, forward, C: cost per point at 1,000,000 over that at 10,000",
            Key(model, "forward", 1_000_000, ALL, C),
            Key(model, "forward", 10_000, ALL, C),
            1.2,
            per_point=True,
        )
        for model in ("elasticity", HARDENING)
    ),
    *(
        Target(
            f"{model}, forward, {points:,} points, C: one thread over all",
            Key(model, "forward", points, 1, C),
            Key(model, "forward", points, ALL, C),
            1.8,
            at_least=True,
        )
        for model, points in (("elasticity", 1_000_000), (HARDENING, 100_000), (CHABOCHE, 100_000))
    ),
    *_kernels(),
    _at_most("elasticity, Python to first stress, s", _elasticity(START, PYTHON), None, 0.3),
    _at_most("elasticity, Python to first stress, MB", _elasticity(MEMORY, PYTHON), None, 60),
    _at_most("elasticity, C, load and first call, s", _elasticity(LOAD), None, 0.010),
]
