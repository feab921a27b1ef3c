"""How laws are called, what they may return, and tensors that they write into."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Model

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402
from neml2_capi.export._compile import traced  # noqa: E402
from neml2_capi.export._law import Law  # noqa: E402
from neml2_capi.export._points import batched, jacobian  # noqa: E402
from neml2_capi.export._variables import declared, promoted  # noqa: E402
from neml2_capi.kernels.evaluate import evaluate  # noqa: E402
from neml2_capi.kernels.trace import read  # noqa: E402

pytestmark = pytest.mark.full("it exports graphs with torch")

STRAIN = np.random.default_rng(1).standard_normal((5, 6))


def of_strain(law: Any, parameters: Any = None) -> Law:
    groups = declared("inputs", {"strain": "SR2"}), promoted(parameters, "float64")
    return Law(law, groups, declared("outputs", {"stress": "SR2"}))


class Plain(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Its argument is called as arguments of modules are."""

    def forward(self, x: Any) -> Any:
        return 2.0 * x


class WithDefault(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any, factor: float = 2.0, *, shift: float = 0.0) -> Any:
        return factor * x + shift


def twice(x: Any) -> Any:
    return 2.0 * x


@pytest.mark.parametrize(
    "law",
    [
        twice,
        Plain(),
        WithDefault(),
        torch.nn.Sequential(Plain()),
        lambda *values: 2.0 * values[0],
        lambda strain, factor=2.0: factor * strain,
        functools.partial(torch.mul, 2.0),
        functools.partial(lambda factor, x: factor * x, 2.0),
        lambda strain: {"stress": 2.0 * strain},
    ],
)
def test_a_law_of_one_tensor_may_call_it_anything(law: Any) -> None:
    strain = torch.from_numpy(STRAIN[0])
    (stress,) = of_strain(law)(strain)
    assert torch.equal(stress, 2.0 * strain)


def test_a_function_in_c_is_a_law() -> None:
    strain = torch.from_numpy(STRAIN[0])
    assert torch.equal(of_strain(torch.sin)(strain)[0], torch.sin(strain))


@pytest.mark.parametrize(
    ("law", "unknown"),
    [
        (lambda x, E: E * x, "x"),
        (lambda strain, E, nu: E * strain, "nu"),
        (lambda x, y, z: x, "x, y, z"),
        (lambda x: x, "x"),
    ],
)
def test_names_that_are_not_declared_are_told(law: Any, unknown: str) -> None:
    with pytest.raises(FatalError, match=f"of which {unknown} (are|is) not declared.*strain, E"):
        of_strain(law, {"E": 1.0})(torch.ones(6), torch.tensor(1.0))


@pytest.mark.parametrize(
    ("law", "told"),
    [
        (lambda strain: strain[:3], r"shape \(3,\)"),
        (lambda strain: 3.0, "returns float"),
        (lambda strain: None, "returns NoneType"),
        (lambda strain: strain > 0, "torch.bool"),
        (lambda strain: strain.float(), "torch.float32"),
        (lambda strain: [strain, strain], "2 tensors"),
        (lambda strain: {"strss": strain}, "strss"),
    ],
)
def test_what_is_not_as_declared_is_told(law: Any, told: str) -> None:
    with pytest.raises(FatalError, match=told):
        of_strain(law)(torch.ones(6, dtype=torch.float64))


def test_outputs_may_be_constants_and_inputs(tmp_path: Path) -> None:
    """And parameters, and copies of one another: their derivatives are zero, or one."""

    def law(strain: Any, other: Any, E: Any) -> dict[str, Any]:
        nothing = (torch.zeros(6) * torch.ones(6)).sum()
        return {
            "vanishing": strain * nothing,
            "constant": torch.full((6,), 3.0, dtype=strain.dtype),
            "passed": strain,
            "again": strain,
            "modulus": E,
            "one": torch.ones((), dtype=strain.dtype) * torch.tensor([1.0, 0.0]).sum(),
        }

    sizes = {"vanishing": 6, "constant": 6, "passed": 6, "again": 6, "modulus": 1, "one": 1}
    path = export.model(
        law,
        tmp_path / "law",
        inputs={"strain": "SR2", "other": "Scalar"},
        outputs={name: "SR2" if size == 6 else "Scalar" for name, size in sizes.items()},
        parameters={"E": 7.0},
        kernels="only",
    )
    inputs = {"strain": STRAIN, "other": np.ones(5)}
    outputs, blocks = Model(path).jacobian(inputs)
    _, by_parameter = Model(path).param_jacobian(inputs)
    expected = {"vanishing": 0 * STRAIN, "constant": 3.0 + 0 * STRAIN, "passed": STRAIN}
    expected |= {"again": STRAIN, "modulus": np.full(5, 7.0), "one": np.ones(5)}
    for name, value in expected.items():
        np.testing.assert_array_equal(outputs[name], value, err_msg=name)
        unit = np.eye(6) if name in ("passed", "again") else np.zeros((sizes[name], 6))
        block = np.asarray(blocks[name]["strain"]).reshape(5, -1, 6)
        np.testing.assert_array_equal(block, np.broadcast_to(unit, block.shape), err_msg=name)
        assert not np.any(blocks[name]["other"])
        assert np.all(np.asarray(by_parameter[name]["E"]) == (name == "modulus"))


def into_zeros(x: Any) -> Any:
    z = torch.zeros(6, dtype=x.dtype)
    z[0] = x[1] ** 2
    z[2:4] = x[0:2] * 3
    return z


def into_empty(x: Any) -> Any:
    z = torch.empty(6, dtype=x.dtype)
    for i in range(6):
        z[i] = x[i] ** 2
    return z


def into_a_unit_matrix(x: Any) -> Any:
    A = torch.eye(3, dtype=x.dtype)
    A[0, 0] += x[0]
    A[1, 2] = x[1] * x[2]
    return torch.cat([A[0], (A @ A)[1]])


def into_places(x: Any) -> Any:
    z = torch.zeros_like(x)
    z[torch.tensor([1, 4])] = x[3:5] ** 2
    return z.index_put((torch.tensor([0, 0]),), x[:2], accumulate=True)


def into_a_clone(x: Any) -> Any:
    y = x.clone()
    y[0] += x[1] * x[2]
    y.mul_(2.0)
    y[3:].copy_(x[:3] ** 3)
    return y


def through_a_view(x: Any) -> Any:
    y = 1.0 * x
    part = y.view(2, 3)[1]
    part[0] = x[0] * x[5]
    return torch.sin(y)


def into_constants(x: Any) -> Any:
    z = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=x.dtype)
    z[2] = x[0] * x[1]
    return z * x


WRITING = [into_zeros, into_empty, into_a_unit_matrix, into_places, into_a_clone]
WRITING += [through_a_view, into_constants]


@pytest.mark.parametrize("law", WRITING, ids=lambda law: law.__name__)
def test_a_law_may_write_into_what_it_has_made(law: Callable[[Any], Any]) -> None:
    """Values and derivatives, of the graph and of its kernel."""
    function = Law(law, [declared("inputs", {"x": (6,)})], declared("outputs", {"y": (6,)}))
    graph = batched(jacobian(function, [0]), [(6,)], torch.float64)
    x = torch.from_numpy(STRAIN)
    expected = torch.stack([law(row) for row in x])
    tangent = torch.stack([torch.func.jacrev(lambda y: law(1.0 * y))(row) for row in x])
    found = torch.utils._pytree.tree_leaves(graph(x))
    np.testing.assert_allclose(found[0], expected, atol=1e-14)
    np.testing.assert_allclose(found[1], tangent, atol=1e-14)
    program = read(traced(graph, (torch.zeros(2, 6, dtype=torch.float64),), [0]))
    values, block = evaluate(program, [STRAIN.T])
    np.testing.assert_allclose(values.T, expected, atol=1e-14)
    np.testing.assert_allclose(block.T.reshape(-1, 6, 6), tangent, atol=1e-14)


_WEIGHT = torch.tensor([0.3], dtype=torch.float64)
F = torch.nn.functional
#: What torch cannot differentiate for many points, or export.
REWRITTEN: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "hardshrink": (lambda x: F.hardshrink(x, 0.6), lambda x: (x.abs() > 0.6) * 1.0),
    "softshrink": (lambda x: torch.nn.Softshrink(0.6)(x), lambda x: (x.abs() > 0.6) * 1.0),
    "mish": (F.mish, torch.func.grad(lambda x: (x * F.softplus(x).tanh()).sum())),
    "prelu": (lambda x: F.prelu(x, _WEIGHT), lambda x: torch.where(x > 0, 1.0, 0.3)),
    "heaviside": (lambda x: torch.heaviside(x, 2.0 * x), lambda x: 0.0 * x),
    "//": (lambda x: x // 0.4 + torch.floor_divide(x, x + 1.0), lambda x: 0.0 * x),
    "a number //": (lambda x: 2.0 // x, lambda x: 0.0 * x),
    "sgn": (torch.sgn, lambda x: 0.0 * x),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_activations_and_steps_differentiate(name: str) -> None:
    law, slope = REWRITTEN[name]
    _require(law, torch.vmap(torch.diag)(slope(torch.from_numpy(STRAIN))))


def test_a_normalized_layer_differentiates() -> None:
    def law(x: Any) -> Any:
        return F.layer_norm(x, (6,), 2.0 * torch.ones_like(x), x)

    _require(law, torch.stack([torch.func.jacrev(law)(row) for row in torch.from_numpy(STRAIN)]))


def _require(law: Callable[[Any], Any], tangent: Any) -> None:
    """Values of torch, and this derivative, of the graph and of its kernel."""
    x = torch.from_numpy(STRAIN)
    graph = batched(jacobian(lambda x: (law(x),), [0]), [(6,)], torch.float64)
    values, block = torch.utils._pytree.tree_leaves(graph(x))
    expected = torch.stack([law(row) for row in x])
    np.testing.assert_allclose(values, expected, atol=1e-14)
    np.testing.assert_allclose(block, tangent, atol=1e-14)
    program = read(traced(graph, (torch.zeros(2, 6, dtype=torch.float64),), [0]))
    values, block = evaluate(program, [STRAIN.T])
    np.testing.assert_allclose(values.T, expected, atol=1e-14)
    np.testing.assert_allclose(
        np.broadcast_to(block.T, (5, 36)).reshape(-1, 6, 6), tangent, atol=1e-14
    )


def test_constants_of_less_accuracy_are_those_of_torch() -> None:
    """A number in float32 is rounded, in kernels too."""
    graph = batched(lambda x: (x * torch.full((6,), 0.1),), [(6,)], torch.float64)
    program = read(traced(graph, (torch.zeros(2, 6, dtype=torch.float64),), [0]))
    (made,) = evaluate(program, [STRAIN.T])
    np.testing.assert_array_equal(made.T, STRAIN * float(np.float32(0.1)))


def test_progress_is_told_before_a_package_is_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it takes minutes; not unless asked, or on a terminal."""
    compiled: list[str] = []
    monkeypatch.setattr(
        "neml2_capi.export._artifact.compile_program",
        lambda program, path, target, shown: compiled.append(path.name),
    )
    for progress, told in ((True, ["law.pt2", "law_jvp.pt2"]), (None, [])):
        compiled.clear()
        export.model(
            twice,
            tmp_path / "law",
            inputs={"x": "SR2"},
            outputs={"y": "SR2"},
            kernels="no",
            progress=progress,
        )
        said = [line.split()[1] for line in capsys.readouterr().err.splitlines()]
        assert said == told
        assert compiled == ["law.pt2", "law_jvp.pt2"]
