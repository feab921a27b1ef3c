"""Graphs of torch as scalar operations, and why some have no kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="graphs are read with torch")

from neml2_capi.kernels.evaluate import evaluate  # noqa: E402
from neml2_capi.kernels.program import NoKernel, Program  # noqa: E402
from neml2_capi.kernels.trace import read  # noqa: E402

pytestmark = pytest.mark.numbers


class _Module(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def exported(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    """A graph of many points; shapes are one point's."""
    batch = torch.export.Dim("batch", min=2, max=1 << 20)
    inputs = tuple(torch.rand(5, *shape, dtype=torch.float64) + 0.5 for shape in shapes)
    axes = tuple({0: batch} for _ in shapes)
    return torch.export.export(_Module(function), inputs, dynamic_shapes=(axes,), strict=False)


def require_same(program: Program, function: Callable[..., Any], *shapes: Any) -> None:
    random = np.random.default_rng(1)
    values = [random.uniform(-2, 2, (20, *shape)) for shape in shapes]
    made = evaluate(program, [v.reshape(20, -1).T for v in values])
    expected = function(*map(torch.from_numpy, values))
    for ours, theirs in zip(made, expected, strict=True):
        np.testing.assert_allclose(ours.T.reshape(theirs.shape), theirs, rtol=1e-12, atol=1e-12)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x, y: (torch.exp(x) * torch.tanh(y) - x / (1 + y * y), x.abs().sqrt()),
    "hyperbolic": lambda x, y: (torch.sinh(x), torch.cosh(y), torch.atan(x)),
    "trigonometric": lambda x, y: (torch.sin(x) + torch.cos(y), torch.tan(x)),
    "powers": lambda x, y: (x**3, x.abs() ** 2.5, y.abs() ** x, torch.pow(2.0, y)),
    "choices": lambda x, y: (
        torch.where((x > y) & (y > 0), x, y),
        torch.clamp(x, -0.5, 0.5),
        torch.maximum(x, y) - torch.minimum(x, y),
        torch.relu(x),
        (x <= y).to(torch.float64),
        torch.sign(x),
    ),
    "truth values": lambda x, y: (
        ((x > 0) + (y > 0)) * x,
        ((x > 0) * (y > 0)) * x,
        torch.add(x > 0, y > 0).sum(-1) * x[:, 0],
        (x > 0).any(-1) * y[:, 0],
        (x > -1).all(-1, keepdim=True) * y,
        torch.any(x > 1.9, 1) * x[:, 0] + torch.all(y > -1.9, 1) * y[:, 1],
        (~(x > 0) ^ (y > 0)) * x,
    ),
    "integers": lambda x, y: ((x * 3).long() // 2 * y, (x * 3).long() % 3 * y, (x * 3).int() * y),
    "borders": lambda x, y: (
        torch.constant_pad_nd(x, (1, 2)),
        torch.constant_pad_nd(x, (-1, 2), 3.0) * 2.0,
        torch.constant_pad_nd(torch.stack([x, y], 1), (1, 0, 0, 1), -1.0),
    ),
    "added at places": lambda x, y: (
        torch.scatter_add(x, 1, torch.tensor([[1, 1, 3]]).expand(x.shape[0], 3), y),
        torch.scatter_add(x, 1, (y[:, :2] + 2).long().clamp(0, 3), y),
    ),
    "scalars": lambda x, y: (torch.xlogy(2.0, x.abs()), torch.xlogy(x, 2.0)),
    "sums": lambda x, y: (x.sum(-1), x.mean(-1, keepdim=True), x.cumsum(-1), x.norm(dim=-1)),
    "products": lambda x, y: (
        torch.einsum("bi,bj->bij", x, y),
        torch.einsum("...i,...j->...j", x, y),
        torch.einsum("bii->bi", x[:, :, None] * y[:, None, :]),
        torch.addmm(torch.ones(2).double(), x[:, :2], torch.eye(2).double(), beta=2, alpha=3),
        (x[:, :, None] @ y[:, None, :]).sum((-1, -2)),
        torch.linalg.cross(x[:, :3], y[:, :3]),
        x.prod(-1),
    ),
    "shapes": lambda x, y: (
        torch.cat([x, y], -1).reshape(-1, 2, 4).transpose(1, 2),
        torch.stack([x, y], 1)[:, 1],
        x.flip(-1).roll(1, -1),
        torch.diag_embed(x),
        torch.diag_embed(x, 1, -1, -2),
        torch.diff(x, 2).narrow(1, 0, 1),
        torch.stack([x, y], 1).flatten(1).repeat(1, 2),
        torch.diagonal(x[:, :, None] * y[:, None, :], dim1=-2, dim2=-1),
        torch.diagonal_scatter(x[:, :, None] * y[:, None, :], x, dim1=-2, dim2=-1),
        torch.diagonal_scatter(x[:, :, None] * y[:, None, :], y[:, 1:], -1, -2, -1),
        x.unsqueeze(1).expand(-1, 3, -1).reshape(-1, 12),
    ),
    "table": lambda x, y: (
        torch.gather(
            torch.tensor([1.0, 4.0, 9.0, 16.0], dtype=torch.float64).expand(x.shape[0], 4),
            -1,
            torch.searchsorted(
                torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64), x, right=True
            ).clamp(0, 3),
        ),
    ),
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_operators_mean_what_torch_means(what: str) -> None:
    function = FUNCTIONS[what]
    program = exported(function, (4,), (4,))
    require_same(read(program), function, (4,), (4,))


@pytest.mark.parametrize("what", FUNCTIONS)
def test_decomposed_graphs_are_read_too(what: str) -> None:
    function = FUNCTIONS[what]
    program = exported(function, (4,), (4,)).run_decompositions()
    require_same(read(program), function, (4,), (4,))


def test_what_is_written_in_place_is_seen_through_views() -> None:
    def function(x: Any) -> Any:
        made = torch.zeros_like(x)
        made[:, 1].fill_(2.0)
        made[:, 2:4] += x[:, :2]
        return (made,)

    require_same(read(exported(function, (4,))), function, (4,))


def test_a_law_of_the_exporter_is_read() -> None:
    export = pytest.importorskip("neml2_capi.export._compile", reason="it needs torch")
    points = pytest.importorskip("neml2_capi.export._points", reason="it needs torch")

    def law(strain: Any, modulus: Any) -> Any:
        return (modulus * torch.tanh(strain) + strain.pow(3),)

    module = points.batched(law, [(6,), ()], torch.float64)
    examples = (torch.zeros(2, 6, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    program = read(export.export(module, examples, [0, 0]))
    assert program.operations > 0
    require_same(program, lambda s, m: law(s, m[:, None]), (6,), ())


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: (torch.special.erfcx(x),), "is unknown .*aten.special_erfcx.default"),
        (lambda x: (x.sort().values,), "its operator aten.sort.default is unknown"),
        (lambda x: (x - x.sum(0),), r"aten.sum.dim_IntList \(sum_1\) picks or adds up points"),
        (lambda x: (x * x[0],), r"aten.select.int \(select\) picks or adds up points"),
        (lambda x: (x.to(torch.int64),), "the output 0 is of type int64"),
        (lambda x: (torch.linalg.solve(x[:, :, None] * x[:, None, :], x),), "linear systems"),
        (lambda x: (~x.long() * x,), r"aten.bitwise_not.default .* takes the bits of integers"),
        (lambda x: ((x.long() & x.long()) * x,), "takes the bits of integers"),
        (lambda x: ((x.long() ^ x.long()) * x,), "takes the bits of integers"),
    ],
)
def test_a_graph_without_a_kernel_says_why(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(NoKernel, match=reason):
        read(exported(function, (4,)))


def test_a_fixed_number_of_points_has_no_kernel() -> None:
    inputs = (torch.rand(2, 6, dtype=torch.float64),)
    program = torch.export.export(_Module(lambda x: (x * 2,)), inputs)
    with pytest.raises(NoKernel, match="number of points is fixed"):
        read(program)


def test_a_second_open_axis_has_no_kernel() -> None:
    batch, grains = (torch.export.Dim(name, min=2, max=1000) for name in ("batch", "grains"))
    inputs = (torch.rand(5, 3, 6, dtype=torch.float64),)
    axes = (({0: batch, 1: grains},),)
    program = torch.export.export(
        _Module(lambda x: (x * 2,)), inputs, dynamic_shapes=axes, strict=False
    )
    with pytest.raises(NoKernel, match=r"the shape of its input .* is open"):
        read(program)


def test_too_many_operations_have_no_kernel() -> None:
    with pytest.raises(NoKernel, match="entries; at most 2000000 are a kernel"):
        read(exported(lambda x: ((x[:, :, None] - x[:, None, :]).sin(),), (1200,)))
