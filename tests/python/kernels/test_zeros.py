"""Products with zero are left out only if an output tells of what is not finite."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from neml2_capi.kernels.arrays import Arrays, Nodes
from neml2_capi.kernels.dropped import settled_output
from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.signs import sees
from neml2_capi.kernels.simplify import simplified

pytestmark = pytest.mark.numbers

Law = Callable[[Arrays, Nodes], Nodes]
INFINITE, NAN = math.inf, math.nan


def program_for(law: Law, components: int = 3) -> Program:
    for every_sign in (False, True):
        a = Arrays(every_sign)
        nodes = settled_output(a.scalars, list(np.ravel(law(a, a.variables(0, (components,))))))
        if not sees(a.scalars.nodes, a.scalars.shared):
            break
    inputs, outputs = [Array("x", (components,))], [Array("y", (len(nodes),))]
    return simplified(program_of(inputs, outputs, [nodes]))


def values(law: Law, *points: list[float]) -> NDArray[np.float64]:
    """The output, (points, components)."""
    inputs = np.array(points, dtype=float)
    (result,) = evaluate(program_for(law, inputs.shape[1]), [inputs.T])
    transposed: NDArray[np.float64] = result.T
    return transposed


@pytest.mark.parametrize("x", [INFINITE, -INFINITE, NAN])
@pytest.mark.parametrize(
    "law",
    [
        lambda a, x: a.mul(x, 0.0),
        lambda a, x: a.sub(x, x),
        lambda a, x: a.mul(x, a.array([0.0])),
        lambda a, x: a.matmul(a.array([[0.0]]), x),
        lambda a, x: a.sum(a.mul(x, a.full((1,), 0.0))),
        lambda a, x: a.add(a.mul(a.array([0.0]), x), 1.0),
        lambda a, x: a.div(a.mul(a.array([0.0]), x), 2.0),
        lambda a, x: a.function("tanh", a.mul(a.array([0.0]), x)),
        lambda a, x: a.mul(a.mul(x, 0.5), a.array([0.0])),
        lambda a, x: a.greatest(a.mul(a.array([0.0]), x), -1.0),
        lambda a, x: a.pow(a.mul(a.array([0.0]), x), 2.0),
    ],
)
def test_zero_times_what_is_not_finite_is_nan(law: Law, x: float) -> None:
    assert np.isnan(values(law, [x])).all()
    assert np.isfinite(values(law, [3.0])).all()


@pytest.mark.parametrize("x", [0.0, -0.0, NAN])
def test_zero_over_zero_is_nan(x: float) -> None:
    for law in (lambda a, x: a.div(0.0, x), lambda a, x: a.div(a.array([0.0]), x)):
        assert np.isnan(values(law, [x])).all()
        assert values(law, [INFINITE])[0, 0] == 0
        assert values(law, [-2.0])[0, 0] == 0


def test_what_a_branch_leaves_out_counts_where_it_is_chosen() -> None:
    def law(a: Arrays, x: Nodes) -> Nodes:
        return a.where(a.gt(x[:1], 0.0), a.mul(a.array([0.0]), x[1:2]), a.array([5.0]))

    found = values(law, [1, INFINITE], [-1, INFINITE], [1, 2], [-1, 2])[:, 0]
    np.testing.assert_array_equal(found, [NAN, 5, 0, 5])


def test_a_comparison_sees_what_was_left_out() -> None:
    def law(a: Arrays, x: Nodes) -> Nodes:
        inside = a.add(a.mul(a.array([0.0]), x[1:2]), x[:1])
        return a.where(a.gt(inside, 0.0), a.array([1.0]), a.array([2.0]))

    found = values(law, [1, 1], [1, NAN], [1, INFINITE], [-1, 1])[:, 0]
    np.testing.assert_array_equal(found, [1, 2, 2, 2])


def test_a_matrix_keeps_its_zeros_and_tells_by_another_entry() -> None:
    def law(a: Arrays, x: Nodes) -> Nodes:
        return a.matmul(a.array(np.diag([2.0, 1.0, 0.0])), x)

    program = program_for(law)
    assert program.operations <= 3
    found = values(law, [1, 2, 3], [1, 2, INFINITE], [1, NAN, 3])
    assert np.isfinite(found[0]).all()
    assert not np.isfinite(found[1]).all()
    assert not np.isfinite(found[2]).all()


def test_no_operation_is_added_for_what_an_output_tells_anyway() -> None:
    identity = np.eye(3)

    def law(a: Arrays, x: Nodes) -> Nodes:
        return a.matmul(a.array(identity), x)

    assert program_for(law).operations == 0


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.0])
def test_the_sign_of_a_zero_that_a_law_writes_counts(x: float) -> None:
    laws: list[tuple[Law, float]] = [
        (lambda a, x: a.add(x, 0.0), x + 0.0),
        (lambda a, x: a.sub(x, 0.0), x - 0.0),
        (lambda a, x: a.sub(0.0, x), 0.0 - x),
        (lambda a, x: a.add(x, -0.0), x + -0.0),
        (lambda a, x: a.sub(-0.0, x), -0.0 - x),
        (lambda a, x: a.mul(x, -0.0), x * -0.0),
        (lambda a, x: a.neg(x), -x),
        (lambda a, x: a.sub(x, x), x - x),
    ]
    for law, expected in laws:
        found = values(law, [x])[0, 0]
        assert (found, math.copysign(1, found)) == (expected, math.copysign(1, expected))


@pytest.mark.parametrize("x", [1.0, -1.0, 0.5, INFINITE])
def test_a_difference_that_vanishes_is_zero_without_a_sign(x: float) -> None:
    """So that a quotient is infinite of the sign that IEEE has: exp(1 / (1 - D)) is no 0."""
    n = np.float64(x)
    with np.errstate(all="ignore"):
        laws: list[tuple[Law, float]] = [
            (lambda a, x: a.div(1.0, a.sub(1.0, x)), 1 / (1 - n)),
            (lambda a, x: a.div(x, a.mul(a.sub(1.0, x), 3.0)), n / ((1 - n) * 3)),
            (lambda a, x: a.div(1.0, a.pow(a.sub(1.0, x), 3)), 1 / (1 - n) ** 3),
            (lambda a, x: a.div(1.0, a.sub(-1.0, x)), 1 / (-1 - n)),
            (lambda a, x: a.div(1.0, a.sub(a.neg(x), 1.0)), 1 / (-n - 1)),
            (lambda a, x: a.div(1.0, a.neg(a.sub(1.0, x))), 1 / -(1 - n)),
            (lambda a, x: a.div(a.sub(x, 1.5), a.sub(1.0, x)), (n - 1.5) / (1 - n)),
            (lambda a, x: a.binary("copysign", 1.0, a.sub(1.0, x)), np.copysign(1, 1 - n)),
            (lambda a, x: a.function("exp", a.div(1.0, a.sub(1.0, x))), np.exp(1 / (1 - n))),
        ]
        both: Law = lambda a, x: np.concatenate(  # noqa: E731
            [a.div(2.0, a.sub(1.0, x)), a.div(2.0, a.sub(x, 1.0))]
        )
        found = values(both, [x])[0]
        np.testing.assert_array_equal(found, [2 / (1 - n), 2 / (n - 1)])
        for law, expected in laws:
            assert values(law, [x])[0, 0] == pytest.approx(expected, nan_ok=True)


def test_constants_gather_only_where_no_digit_is_lost() -> None:
    def large(a: Arrays, x: Nodes) -> Nodes:
        return a.mul(a.mul(x, 1e200), 1e200)

    def small(a: Arrays, x: Nodes) -> Nodes:
        return a.mul(a.mul(x, 1e-200), 1e-200)

    assert values(large, [0.0])[0, 0] == 0
    assert values(small, [1e300])[0, 0] == pytest.approx(1e-100)
    assert values(lambda a, x: a.div(x, 1.7e308), [1.7e308])[0, 0] == 1
