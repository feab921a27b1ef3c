"""Gradients through a package: its vjp package agrees with autograd."""

from __future__ import annotations

import copy
from pathlib import Path
from pickle import dumps, loads
from typing import Any

import pytest

import neml2_capi

torch = pytest.importorskip("torch")

import exports as laws  # noqa: E402  (of tests/models, which conftest.py has on the path)
from torch.autograd import forward_ad  # noqa: E402

from neml2_capi.export._adjoint import export_adjoint  # noqa: E402
from neml2_capi.torch import Graph  # noqa: E402


@pytest.fixture(scope="module")
def network(exported: Path) -> Graph:
    return Graph(exported / "network.pt2")


def some_strains(points: int) -> Any:
    torch.manual_seed(3)
    return torch.randn(points, 6, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("points", [1, 2, 7])
def test_the_gradient_is_that_of_autograd(network: Graph, points: int) -> None:
    strain = some_strains(points)
    gradients = []
    for module in (lambda x: network(x)[0], laws.network()):
        (module(strain).square().sum() / 3).backward()
        gradients.append(strain.grad.clone())
        strain.grad = None
    assert torch.allclose(*gradients, rtol=1e-13, atol=1e-15)


def test_gradcheck(network: Graph) -> None:
    assert torch.autograd.gradcheck(lambda x: network(x)[0], some_strains(3))


def test_a_package_is_a_link_of_a_chain(network: Graph) -> None:
    first = torch.nn.Linear(6, 6).double()
    (network(first(some_strains(4)))[0]).sum().backward()
    made = first.weight.grad.clone()
    first.zero_grad()
    laws.network()(first(some_strains(4))).sum().backward()
    assert torch.allclose(made, first.weight.grad, rtol=1e-13)


def test_without_a_gradient_nothing_is_recorded(network: Graph) -> None:
    with torch.no_grad():
        (made,) = network(some_strains(2))
    assert not made.requires_grad
    (made,) = network(some_strains(2).detach())
    assert not made.requires_grad


def test_a_second_derivative_is_told(network: Graph) -> None:
    strain = some_strains(2)
    with pytest.raises(neml2_capi.FatalError, match="second derivative"):
        torch.autograd.grad(network(strain)[0].sum(), strain, create_graph=True)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_tangent_of_forward_mode_is_told(network: Graph, requires_grad: bool) -> None:
    strain = some_strains(2).detach().requires_grad_(requires_grad)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(strain, torch.ones_like(strain))
        with pytest.raises(neml2_capi.FatalError, match="forward mode"):
            network(dual)
        assert network(dual.detach())[0].shape == (2, 6)


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.vmap])
def test_transforms_of_torch_func_are_told(network: Graph, transform: Any) -> None:
    with pytest.raises(neml2_capi.FatalError, match=r"torch\.func"):
        transform(lambda x: network(x.reshape(-1, 6))[0].sum())(some_strains(2).detach())
    strain = some_strains(2)
    with pytest.raises(neml2_capi.FatalError, match=r"torch\.func"):  # of another tensor
        transform(lambda x: (network(strain)[0] * x).sum())(torch.ones(2, dtype=torch.float64))


def test_batches_of_cotangents_are_told(network: Graph) -> None:
    strain = some_strains(2)
    stress, cotangents = network(strain)[0], torch.ones(5, 2, 6, dtype=torch.float64)
    with pytest.raises(neml2_capi.FatalError, match="is_grads_batched=True"):
        torch.autograd.grad(stress, strain, cotangents, is_grads_batched=True)


@pytest.mark.parametrize("again", [lambda g: g, copy.deepcopy, lambda g: loads(dumps(g))])
def test_replaced_constants_have_values_and_no_gradient(exported: Path, again: Any) -> None:
    """The vjp package has the constants of the export, under names of its own."""
    network, strain = Graph(exported / "network.pt2"), some_strains(2)
    weight = "function.0.weight"
    network.graph.set_constants({weight: 2 * network.graph.constants()[weight]})
    changed = laws.network()
    with torch.no_grad():
        changed[0].weight.mul_(2)
        assert torch.allclose(again(network)(strain)[0], changed(strain), rtol=1e-13)
    with pytest.raises(neml2_capi.FatalError, match=r"set_constants\(\).*function\.0\.weight"):
        again(network)(strain)


def test_a_package_without_a_vjp_package_says_so(exported: Path) -> None:
    phase, count, value = laws.some_table_inputs(4)
    table = Graph(exported / "table.pt2")
    assert len(table(phase, count, value)) == 4
    with pytest.raises(neml2_capi.FatalError, match="backward=True"):
        table(phase, count, value.requires_grad_())


def test_what_has_no_derivative_is_told_at_export(tmp_path: Path) -> None:
    with pytest.raises(neml2_capi.FatalError, match="floating-point"):
        export_adjoint(lambda x: x // 2, (torch.arange(4),), [0])


def test_a_gradient_that_depends_on_the_number_of_points_is_refused() -> None:
    """Its size is in the formula, not only in the shapes."""
    with pytest.raises(neml2_capi.FatalError, match="number of points"):
        export_adjoint(lambda x: x - x.std(), (torch.rand(2, 3),), [0])


def test_integers_get_no_gradient() -> None:
    """The adjoint of a function of integers and reals: before it is compiled."""
    phase, count, value = laws.some_table_inputs(2)
    adjoint = export_adjoint(laws.Table(), (phase, count, value), [0, 0, 0]).module()
    phase, count, value = laws.some_table_inputs(5)
    (made,) = adjoint(phase, count, value, torch.ones(5, 3))
    assert torch.equal(made, laws.Table().rows[phase].sum(1))
