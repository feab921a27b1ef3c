"""Kernels of a block whose lanes hold one point: fewer instructions, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from neml2_capi.kernels.elimination import newton_step
from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import Scalars
from neml2_capi.kernels.simplify import simplified
from neml2_capi.kernels.superword import packed

pytestmark = pytest.mark.numbers


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_calls_of_one_point_share_vectors(built: Callable[..., dict[str, Any]], lanes: int) -> None:
    s = Scalars()
    x = [s.variable(0, k) for k in range(6)]
    powers = [s.pow(x[k], s.add(x[k + 1], s.constant(0.5))) for k in range(5)]
    after = [s.function("exp", s.sub(power, x[0])) for power in powers[:3]]
    last = [s.function("exp", value) for value in after[:2]]
    results = [*powers, *after, *last]
    program = program_of([Array("x", (6,))], [Array("z", (len(results),))], [results])
    (kernel,) = built({"several": program}, lanes=lanes).values()
    points = np.random.default_rng(3).uniform(0.2, 1.5, (9, 6))
    (exact,) = evaluate(program, [points.T])
    np.testing.assert_allclose(kernel(points)[0], exact.T, rtol=1e-14)
    points[3], points[4, 2], points[5, 3] = 0, np.inf, -1
    (together,) = kernel(points)
    alone = [kernel(point, one=True)[0][0] for point in points]
    np.testing.assert_array_equal(alone, together)


def dense_system(total: int) -> Program:
    """A matrix of inputs, and 1 and an input on the diagonal."""
    s = Scalars()
    entries = [s.variable(0, k) for k in range(total * total)]
    for k in range(0, total * total, total + 1):
        entries[k] = s.add(s.constant(1.0), entries[k])
    sides = [s.variable(1, i) for i in range(total)]
    outputs = [Array("matrix", (total, total)), Array("side", (total,))]
    inputs = [Array("x", (total * total,)), Array("r", (total,))]
    return program_of(inputs, outputs, [entries, sides])


def test_sums_of_one_point_share_vectors(built: Callable[..., dict[str, Any]]) -> None:
    total = 12
    step = newton_step(dense_system(total), [total])
    assert step is not None
    program = simplified(step)
    of_one = packed(program)
    assert of_one is not None
    assert of_one.operations < 0.8 * program.operations
    (kernel,) = built({"step": step}, lanes=4).values()
    random = np.random.default_rng(5)
    matrix = np.eye(total) + 0.2 * random.standard_normal((9, total, total))
    matrix[3], matrix[4, 2, 2], matrix[5, 6], matrix[6, 7, 1] = 0, np.inf, 1e-310, -0.0
    side = random.standard_normal((9, total))
    inputs = [matrix.reshape(9, -1), side]
    together = kernel(*inputs)
    for point in range(9):
        alone = kernel(*(values[point] for values in inputs), one=True)
        for found, expected in zip(alone, together, strict=True):
            np.testing.assert_array_equal(found[0], expected[point])
    solved = np.linalg.solve(matrix[:3], side[:3, :, None])[..., 0]
    np.testing.assert_allclose(together[0][:3], solved, rtol=1e-9)


def test_a_sum_of_constants_is_a_number_in_all_lanes(built: Callable[..., dict[str, Any]]) -> None:
    """Constants of which one is found late stand as a sum: as an output, and as an argument."""
    s = Scalars()
    total = s.node("add", s.constant(1.0), s.constant(0.25))
    other = s.node("mul", total, s.constant(2.0))
    results = [total, s.mul(other, s.variable(0, 0)), s.function("exp", s.node("neg", other))]
    program = program_of([Array("x", (1,))], [Array("z", (3,))], [results])
    (kernel,) = built({"constants": program}, lanes=4).values()
    found = kernel(np.array([[2.0], [3.0]]))[0]
    np.testing.assert_allclose(found, [[1.25, 5, np.exp(-2.5)], [1.25, 7.5, np.exp(-2.5)]])
