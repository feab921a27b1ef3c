"""Kernels of a block whose lanes hold one point: fewer instructions, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.program import Array, program_of
from neml2_capi.kernels.scalar import Scalars

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
