"""Kernels compute each point alone: graphs that mix points have none, all others keep theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="graphs are read with torch")

from test_trace import exported, require_same  # noqa: E402

from neml2_capi.export._compile import traced  # noqa: E402
from neml2_capi.export._points import batched  # noqa: E402
from neml2_capi.kernels.evaluate import evaluate  # noqa: E402
from neml2_capi.kernels.program import NoKernel  # noqa: E402
from neml2_capi.kernels.trace import read  # noqa: E402

pytestmark = pytest.mark.numbers

_F = torch.nn.functional

#: Operators along the first axis: a graph's points, or the components of a law's vector.
ALONG: dict[str, Callable[[Any], Any]] = {
    "amax": lambda x: x - x.amax(0),
    "argmax": lambda x: x * x.argmax(0),
    "argsort": lambda x: x.argsort(0) * x,
    "batch_norm": lambda x: _F.batch_norm(x, None, None, training=True),
    "count_nonzero": lambda x: x * torch.count_nonzero(x, 0),
    "cummax": lambda x: x.cummax(0).values,
    "cumprod": lambda x: x.cumprod(0),
    "cumsum": lambda x: x.cumsum(0),
    "cumulative_trapezoid": lambda x: (
        x + _F.pad(torch.cumulative_trapezoid(x, dim=0), (0, 0, 1, 0))
    ),
    "diff": lambda x: torch.diff(x, dim=0, prepend=x[:1]),
    "fft": lambda x: torch.fft.fft(x, dim=0).real,
    "first": lambda x: x * x[0],
    "first by index": lambda x: x * x[torch.tensor([0])],
    "first by index_select": lambda x: x - x.index_select(0, torch.tensor([1])),
    "first by gather": lambda x: x - x.gather(0, torch.zeros(1, 4, dtype=torch.int64)),
    "flip": lambda x: x.flip(0),
    "flip twice by parts": lambda x: torch.cat([x.flip(0)[:1], x[1:]]),
    "last": lambda x: x + x[-1],
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "logsumexp": lambda x: x - x.logsumexp(0),
    "mask of places": lambda x: torch.where(torch.arange(x.shape[0])[:, None] > 0, x, 0.0),
    "matmul": lambda x: x @ (x.T @ x),
    "max": lambda x: x - x.max(0).values,
    "mean": lambda x: x - x.mean(0),
    "mean of all": lambda x: x / x.mean(),
    "median": lambda x: x - x.median(0).values,
    "norm": lambda x: x / x.norm(dim=0),
    "normalize": lambda x: _F.normalize(x, dim=0),
    "number of points": lambda x: x * x.shape[0],
    "one over the number": lambda x: x / x.shape[0],
    "places": lambda x: x + torch.arange(x.shape[0], dtype=x.dtype)[:, None],
    "places only": lambda x: torch.arange(x.shape[0], dtype=x.dtype)[:, None].expand(-1, 4),
    "ramp": lambda x: x * torch.linspace(0, 1, x.shape[0], dtype=x.dtype)[:, None],
    "renorm": lambda x: torch.renorm(x.T, 2, 0, 1.0).T,
    "repeat_interleave": lambda x: x.repeat_interleave(2, 0)[: x.shape[0]],
    "reshaped": lambda x: x.T.reshape(-1, 4),
    "roll": lambda x: x.roll(1, 0),
    "roll by five": lambda x: x.roll(5, 0),
    "roll by seven": lambda x: x.roll(7, 0),
    "roll of all": lambda x: x.roll(1),
    "second less first": lambda x: torch.cat([x[:1], x[1:] - x[:-1]]),
    "set first": lambda x: torch.cat([torch.zeros(1, 4, dtype=x.dtype), x[1:]]),
    "softmax": lambda x: x.softmax(0),
    "sort": lambda x: x.sort(0).values,
    "std": lambda x: x / x.std(0),
    "sum hidden by a choice": lambda x: torch.where(x > 1e300, x.sum(0), x),
    "sum hidden by zero": lambda x: x + 0.0 * x.cumsum(0),
    "topk": lambda x: x * x.topk(1, 0).values,
    "triangle": lambda x: torch.tril(x),
    "var": lambda x: x - x.var(0, keepdim=True),
    "written into": lambda x: _with_first_written(x),
}


def _with_first_written(x: Any) -> Any:
    made = torch.ones_like(x)
    made[0].fill_(2.0)
    return made * x


@pytest.mark.parametrize("what", ALONG)
def test_an_operator_over_points_has_no_kernel(what: str) -> None:
    function = ALONG[what]
    try:
        program = exported(lambda x: (function(x),), (4,))
    except Exception as reason:  # torch's, which takes no such graph with a batch of any size
        assert "batch" in str(reason), reason
        return
    with pytest.raises(NoKernel, match=r"points|is unknown|open axes|kernels cannot|complex"):
        read(program)


@pytest.mark.parametrize("what", ALONG)
def test_a_law_with_it_is_computed_point_by_point(what: str) -> None:
    """A law sees one point: the same operator works on its components, or is refused."""
    function = ALONG[what]

    def law(x: Any) -> tuple[Any]:
        return (function(x),)

    try:
        graph = batched(law, [(4, 4)], torch.float64)
    except Exception as reason:
        assert "torch" in str(reason), reason
        return
    examples = (torch.zeros(2, 4, 4, dtype=torch.float64),)
    try:
        program = read(traced(graph, examples, [0]))
    except NoKernel as reason:
        assert "points" not in str(reason)
        return
    x = torch.from_numpy(np.random.default_rng(1).uniform(0.5, 2, (9, 4, 4)))
    (made,) = evaluate(program, [x.numpy().reshape(9, 16).T])
    expected = torch.stack([function(point) for point in x])
    np.testing.assert_allclose(made.T.reshape(9, 4, 4), expected, rtol=1e-12, atol=1e-14)


#: What works on each point alone, however it is written.
ALONE: dict[str, Callable[[Any], Any]] = {
    "along sites": lambda x: x.flip(1).cumsum(1).softmax(1).roll(1, 1) - x.mean(1, keepdim=True),
    "at its own place": lambda x: x * x[torch.arange(x.shape[0]), 1][:, None],
    "by gather": lambda x: x.gather(1, (x[:, :1] > 0).long().expand(-1, 4)),
    "flattened": lambda x: (x.reshape(-1) * 2.0).reshape(-1, 4),
    "halves": lambda x: x.reshape(-1, 2).sum(1).reshape(-1, 2).repeat(1, 2),
    "points last": lambda x: (x.T.reshape(2, 2, -1) * 3.0).sum(0).repeat(2, 1).T,
    "products": lambda x: (
        torch.bmm(x[:, :, None], x[:, None, :]).sum(1) @ torch.ones(4, 4).double()
    ),
    "truth values of zeros": lambda x: torch.where(torch.zeros_like(x) > 0, x.sum(1)[:, None], x),
    "written into": lambda x: _with_a_column_written(x),
}


def _with_a_column_written(x: Any) -> Any:
    made = torch.ones_like(x)
    made[:, 0].fill_(2.0)
    made[:, 1:3] += x[:, :2]
    return made * x


@pytest.mark.parametrize("what", ALONE)
def test_what_works_on_each_point_alone_has_a_kernel(what: str) -> None:
    def function(x: Any) -> tuple[Any]:
        return (ALONE[what](x),)

    require_same(read(exported(function, (4,))), function, (4,))


def test_a_value_of_all_points_is_no_output() -> None:
    with pytest.raises(NoKernel, match=r"sum_1.* adds up points"):
        read(exported(lambda x: (x * 2, x.sum(0)), (4,)))


def test_points_that_are_not_on_the_first_axis_of_an_output_have_no_kernel() -> None:
    with pytest.raises(NoKernel, match="point's place"):
        read(exported(lambda x: ((x * 2).T,), (4,)))


def test_one_value_for_all_points_is_no_point() -> None:
    """A parameter without points, of as many components as there are points in the check."""
    batch = torch.export.Dim("batch", min=2, max=1 << 20)
    inputs = (torch.rand(3, 7, dtype=torch.float64), torch.rand(7, dtype=torch.float64))
    module = _Sum()
    program = torch.export.export(module, inputs, dynamic_shapes=({0: batch}, None), strict=False)
    assert [array.per_point for array in read(program).inputs] == [True, False]


class _Sum(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any, y: Any) -> Any:
        return ((x + y) * y.cumsum(0),)
