"""The straight line of operations that makes a Newton step of a Jacobian and a residual."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from neml2_capi.kernels.elimination import newton_step
from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import Node, Scalars
from neml2_capi.kernels.simplify import simplified

pytestmark = pytest.mark.numbers

Values = NDArray[np.float64]
Entry = Callable[[Scalars, Callable[[int], Node]], Node]


def jacobian_of(entries: Sequence[Sequence[Entry]], groups: Sequence[int]) -> Program:
    """A graph that returns a Jacobian in blocks and a residual, of one array of inputs."""
    s, total = Scalars(), len(entries)

    def x(component: int) -> Node:
        return s.variable(0, component)

    nodes = [[entry(s, x) for entry in row] for row in entries]
    starts = np.concatenate([[0], np.cumsum(groups)])
    spans = [range(a, b) for a, b in itertools.pairwise(starts)]
    blocks = [[nodes[i][j] for i in rows for j in columns] for rows in spans for columns in spans]
    sides = [[x(i) for i in rows] for rows in spans]
    results = [*blocks, *sides]
    outputs = [Array(f"output_{i}", (len(nodes),)) for i, nodes in enumerate(results)]
    return program_of([Array("x", (total * total,))], outputs, results)


def dense(total: int) -> list[list[Entry]]:
    """Entries that are an input each, and 1 and an input on the diagonal."""

    def entry(i: int, j: int) -> Entry:
        place = i * total + j
        return lambda s, x: s.add(s.constant(1.0), x(place)) if i == j else x(place)

    return [[entry(i, j) for j in range(total)] for i in range(total)]


def solved(jacobian: Program, groups: Sequence[int], x: Values) -> tuple[Values, Values, Values]:
    """The steps by the line and by numpy, and whether the line is trusted; points are columns."""
    step = newton_step(jacobian, groups)
    assert step is not None
    returned = evaluate(jacobian, [x])
    *parts, trusted = evaluate(simplified(step), returned)
    count, rows = len(groups), []
    for i, height in enumerate(groups):
        blocks = [returned[i * count + j].reshape(height, n, -1) for j, n in enumerate(groups)]
        rows.append(np.concatenate(blocks, axis=1))
    matrix = np.concatenate(rows).transpose(2, 0, 1)
    side = np.concatenate(returned[count * count :]).T
    expected = [
        np.linalg.lstsq(a, b, rcond=None)[0] if np.isfinite(a).all() else np.full(len(b), np.nan)
        for a, b in zip(matrix, side, strict=True)
    ]
    return np.concatenate(parts).T, np.array(expected), trusted[0]


def random(total: int, points: int = 20, size: float = 0.3) -> Values:
    return size * np.random.default_rng(total).standard_normal((total * total, points))


@pytest.mark.parametrize("groups", [[1], [2], [7], [3, 4], [2, 1, 5], [13]], ids=str)
def test_a_step_is_that_of_a_dense_solver(groups: list[int]) -> None:
    total = sum(groups)
    step, expected, trusted = solved(jacobian_of(dense(total), groups), groups, random(total))
    assert trusted.tolist() == [1.0] * 20
    np.testing.assert_allclose(step, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_structural_zeros_cost_nothing() -> None:
    def entry(i: int, j: int) -> Entry:
        filled = i == j or i == 0 or j == 0
        return lambda s, x: x(10 * i + j) if filled else s.constant(0.0)

    arrow = [[entry(i, j) for j in range(10)] for i in range(10)]
    x = 1.0 + random(10, size=0.1)
    jacobian = jacobian_of(arrow, [10])
    step, expected, trusted = solved(jacobian, [10], x)
    np.testing.assert_allclose(step[trusted == 1], expected[trusted == 1], rtol=1e-9)
    made = newton_step(jacobian, [10])
    assert made is not None
    assert made.operations < 200


@pytest.mark.parametrize("pivot", [0.0, 1e-300, 1e-12, np.nan])
def test_a_step_with_a_bad_pivot_is_not_trusted(pivot: float) -> None:
    x = random(4, 3)
    x[0, 1] = pivot if pivot == 1e-300 else pivot - 1.0
    entries: Any = dense(4)
    if pivot == 1e-300:
        entries[0][0] = lambda s, x: x(0)
    step, expected, trusted = solved(jacobian_of(entries, [4]), [4], x)
    assert trusted[[0, 2]].tolist() == [1.0, 1.0]
    assert trusted[1] != 1.0
    np.testing.assert_allclose(step[[0, 2]], expected[[0, 2]], rtol=1e-10)


@pytest.mark.parametrize("pivot", [0.0, 1e-20, 1e-12, 1.0])
def test_a_pivot_that_hides_an_equation_is_not_trusted(pivot: float) -> None:
    """[[0, a], [b, pivot]]: the second row is eliminated first, for its constant."""

    def entry(i: int, j: int) -> Entry:
        known = {(0, 0): 0.0, (1, 1): pivot}.get((i, j))
        return lambda s, x: x(2 * i + j) if known is None else s.constant(known)

    entries = [[entry(i, j) for j in range(2)] for i in range(2)]
    x = 1.0 + random(2, 3)
    step, expected, trusted = solved(jacobian_of(entries, [2]), [2], x)
    good = pivot in (0.0, 1.0)
    assert trusted.tolist() == [float(good)] * 3
    if good:
        np.testing.assert_allclose(step, expected, rtol=1e-10)


@pytest.mark.parametrize("total", [50, 200])
def test_a_band_of_any_size_takes_operations_in_proportion(total: int) -> None:
    """Cells in a row, each beside two others: twelve operations or so for each."""

    def entry(i: int, j: int) -> Entry:
        number = 4.0 if i == j else 1.0
        return lambda s, x: (
            s.add(s.constant(number), x(3 * i + j - i + 1)) if abs(i - j) < 2 else s.constant(0.0)
        )

    jacobian = jacobian_of([[entry(i, j) for j in range(total)] for i in range(total)], [total])
    step, expected, trusted = solved(jacobian, [total], random(total, 3, size=0.1))
    assert trusted.all()
    np.testing.assert_allclose(step, expected, rtol=1e-10)
    made = newton_step(jacobian, [total])
    assert made is not None
    assert made.operations < 20 * total


def test_a_full_matrix_of_many_unknowns_is_left_to_a_loop() -> None:
    assert newton_step(jacobian_of(dense(48), [48]), [48]) is None


def test_what_is_no_jacobian_has_no_step() -> None:
    jacobian = jacobian_of(dense(3), [3])
    assert newton_step(jacobian, [2]) is None
