"""Linear algebra in laws: values and derivatives, against torch at one point and closed forms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Model

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402
from neml2_capi.export._compile import traced  # noqa: E402
from neml2_capi.export._linear_algebra import SmallMatrices  # noqa: E402
from neml2_capi.export._lines import called  # noqa: E402
from neml2_capi.export._points import batched, jacobian  # noqa: E402
from neml2_capi.kernels.trace import read  # noqa: E402

pytestmark = pytest.mark.full("it exports graphs with torch")

linalg = torch.linalg


def of_symmetric(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An isotropic function of A A^T by its eigenvalues."""

    def made(A: Any) -> Any:
        values, vectors = linalg.eigh(A @ A.mT)
        return (vectors * function(values)) @ vectors.mT

    return made


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "linalg.det": linalg.det,
    "det by name": lambda A: torch.det(input=A) + linalg.det(A=A) + torch.logdet(input=A @ A.mT),
    "det": torch.det,
    "tensor.det": lambda A: A.det(),
    "slogdet": lambda A: torch.stack(linalg.slogdet(A)),
    "tensor.slogdet": lambda A: A.slogdet()[1],
    "logdet": lambda A: torch.logdet(A @ A.mT),
    "linalg.inv": linalg.inv,
    "inverse": torch.inverse,
    "tensor.inverse": lambda A: A.inverse(),
    "inv_ex": lambda A: linalg.inv_ex(A)[0],
    "solve of a vector": lambda A: linalg.solve(A, A[0] + 1.0),
    "solve of a matrix": lambda A: linalg.solve(A, A.mT),
    "solve from the right": lambda A: linalg.solve(A, A.mT, left=False),
    "solve_ex": lambda A: linalg.solve_ex(A, A[0])[0],
    "matrix_power": lambda A: torch.matrix_power(A, -2) + linalg.matrix_power(A, 3),
    "cholesky": lambda A: linalg.cholesky(A @ A.mT),
    "upper cholesky": lambda A: linalg.cholesky(A @ A.mT, upper=True),
    "eigvalsh": linalg.eigvalsh,
    "upper eigvalsh": lambda A: linalg.eigvalsh(A, UPLO="U"),
    "eigh": of_symmetric(torch.log),
    "cofactor": lambda A: linalg.det(A) * linalg.inv(A).mT,
    "trace": lambda A: torch.trace(A) * A.trace(),
    "cross": lambda A: linalg.cross(A[0], A[1]) if A.shape[0] == 3 else A,
    "norm": lambda A: linalg.norm(A) + torch.norm(A[0]) + A.norm(),
    "outer": lambda A: torch.outer(A[0], A[1]),
    "kron": lambda A: torch.kron(A[:2, :2], A[:2, :2]),
    "stress of an energy": torch.func.grad(lambda F: linalg.slogdet(F)[1] ** 2 + linalg.det(F)),
    "stress of principal stretches": torch.func.grad(
        lambda F: (linalg.eigvalsh(F.mT @ F).log() ** 2).sum()
    ),
}
ROWS = {"eigh": (3,), "upper eigvalsh": (3,), "cross": (3,)}
ROWS["stress of principal stretches"] = (3,)
LARGER = pytest.mark.everything("the same operators on larger matrices")


def cases() -> Iterator[Any]:
    """Each function on its smallest matrices; then on larger ones."""
    for name in FUNCTIONS:
        rows = ROWS.get(name, (2, 3, 4) if "inv" in name else (2, 3))
        for n in rows:
            yield pytest.param(name, n, marks=[LARGER] * (n > rows[0]), id=f"{name}-{n}")


def matrices(n: int, points: int = 4) -> Any:
    """Far from singular, not symmetric."""
    made = np.random.default_rng(n).uniform(-1, 1, (points, n, n)) + 2.0 * np.eye(n)
    return torch.from_numpy(made)


def one_by_one(function: Callable[[Any], Any], A: Any) -> Any:
    return torch.stack([function(matrix) for matrix in A])


@pytest.mark.parametrize(("name", "n"), cases())
def test_values_and_derivatives_are_those_of_torch(name: str, n: int) -> None:
    function, A = FUNCTIONS[name], matrices(n)
    graph = batched(jacobian(lambda A: (function(A),), [0]), [(n, n)], torch.float64)
    (values,), ((derivative,),) = _unflattened(graph(A))
    expected = one_by_one(function, A)
    tangent = one_by_one(torch.func.jacrev(function), A)
    assert_near(values, expected)
    assert_near(derivative, tangent)
    assert_kernel_takes(graph, n)


def _unflattened(made: Any) -> Any:
    leaves = torch.utils._pytree.tree_leaves(made)
    return (leaves[0],), ((leaves[1],),)


def assert_near(found: Any, expected: Any, tolerance: float = 1e-11) -> None:
    size = expected.abs().max().item()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size)


def assert_kernel_takes(graph: Any, n: int) -> None:
    assert read(traced(graph, (torch.zeros(2, n, n, dtype=torch.float64),), [0])).operations


@pytest.mark.parametrize(
    "solved",
    [
        lambda A: linalg.solve(torch.stack([A, A.mT]), torch.stack([A[0], A[1]])),
        lambda A: linalg.solve(B=torch.stack([A[0], A[1]]), A=torch.stack([A, A.mT])),
        lambda A: linalg.solve_ex(torch.stack([A, A.mT]), B=torch.stack([A, A])).result,
        lambda A: linalg.solve_ex(A, A[:, :1] + 1.0).result,
        lambda A: linalg.solve(A, A[:, :1] + 1.0),
    ],
)
def test_solutions_differentiate(solved: Callable[[Any], Any]) -> None:
    """By differences: torch has the derivatives of some of them wrong."""
    A, step = matrices(2), 1e-6
    graph = batched(jacobian(lambda A: (solved(A),), [0]), [(2, 2)], torch.float64)
    (values,), ((derivative,),) = _unflattened(graph(A))
    assert_near(values, one_by_one(solved, A))
    moves = [step * torch.eye(4, dtype=A.dtype)[k].view(2, 2) for k in range(4)]
    slopes = [one_by_one(solved, A + m) - one_by_one(solved, A - m) for m in moves]
    assert_near(derivative.flatten(-2), torch.stack(slopes, -1) / (2 * step), 1e-8)


def test_what_cancels_is_no_chance() -> None:
    """Round-off, of torch's way and of ours."""
    unit = batched(jacobian(lambda A: (linalg.inv(A) @ A,), [0]), [(3, 3)], torch.float64)
    (values,), ((derivative,),) = _unflattened(unit(matrices(3)))
    assert_near(values, torch.eye(3, dtype=torch.float64).expand(4, 3, 3))
    np.testing.assert_allclose(derivative, 0.0, atol=1e-13)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_more_rows_are_eliminated_with_pivots(n: int) -> None:
    """A matrix whose diagonal is zero needs them."""
    A = torch.from_numpy(np.random.default_rng(n).uniform(1, 2, (n, n)))
    A = torch.flip(A.triu() + 1e-3, (0,))
    A.fill_diagonal_(0.0)
    with SmallMatrices():
        det, inv, x = linalg.det(A), linalg.inv(A), linalg.solve(A, A[0] * 3.0)
        tangent = torch.func.jacrev(linalg.det)(A)
    assert_near(det, linalg.det(A))
    assert_near(inv, linalg.inv(A), 1e-10)
    assert_near(x, linalg.solve(A, A[0] * 3.0), 1e-10)
    assert_near(tangent, linalg.det(A) * linalg.inv(A).mT, 1e-10)


PRINCIPAL = [(1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 1.0, 2.0), (1.0, 1.0 + 1e-9, 3.0)]
PRINCIPAL += [(-2.0, 0.0, 1.0), (1e-8, 1.0, 1e8), (1e-200, 2e-200, 2e-200), (1e150, 1e150, -1e150)]


@pytest.mark.parametrize("eigenvalues", PRINCIPAL)
def test_eigenvalues_are_exact_where_they_are_equal(eigenvalues: tuple[float, ...]) -> None:
    turn = linalg.qr(torch.from_numpy(np.random.default_rng(3).uniform(-1, 1, (3, 3))))[0]
    A = (turn * torch.tensor(eigenvalues, dtype=torch.float64)) @ turn.mT
    A = 0.5 * (A + A.mT)
    with SmallMatrices():
        values, vectors = linalg.eigh(A)
        tangent = torch.func.jacrev(linalg.eigvalsh)(A)
    assert_near(values, linalg.eigvalsh(A), 1e-14)
    assert_near((vectors * values) @ vectors.mT, A, 1e-14)
    assert_near(vectors.mT @ vectors, torch.eye(3, dtype=torch.float64), 1e-14)
    # The eigenvalues sum to the trace, whose derivative is the unit matrix.
    np.testing.assert_allclose(tangent.sum(0), np.eye(3), atol=1e-14)


def test_what_has_no_derivative_is_not_finite() -> None:
    """Vectors of equal eigenvalues, and second derivatives of these: never a wrong number."""
    unit = torch.eye(3, dtype=torch.float64)

    def energy(C: Any) -> Any:
        return (linalg.eigvalsh(C).log() ** 2).sum()

    with SmallMatrices():
        assert torch.isfinite(torch.func.grad(energy)(unit)).all()
        assert not torch.isfinite(torch.func.jacrev(torch.func.grad(energy))(unit)).any()
        assert not torch.isfinite(torch.func.jacrev(lambda C: linalg.eigh(C)[1])(unit)).any()


def test_a_second_derivative_is_that_of_torch() -> None:
    A = matrices(3, 1)[0]
    for name in ("linalg.det", "slogdet", "linalg.inv", "solve of a vector", "eigvalsh", "eigh"):
        second = torch.func.jacrev(torch.func.jacrev(FUNCTIONS[name]))
        with SmallMatrices():
            found = second(A)
        assert_near(found, second(A), 1e-10)


F = np.array([[1.1, 0.1, 0.0], [0.0, 0.9, 0.2], [0.05, 0.0, 1.0]])


def law(F: Any) -> dict[str, Any]:
    """The volume ratio, the inverse, and the principal values of C."""
    return {
        "J": linalg.det(F),
        "inverse": linalg.inv(F),
        "principal": linalg.eigvalsh(F.mT @ F),
    }


OUTPUTS = {"J": "Scalar", "inverse": "R2", "principal": "Vec"}


def test_a_law_of_the_deformation_gradient_runs_on_kernels(tmp_path: Path) -> None:
    path = export.model(
        law, tmp_path / "law", inputs={"F": (3, 3)}, outputs=OUTPUTS, kernels="only"
    )
    points = np.stack([F, np.eye(3), np.zeros((3, 3)), F @ F])
    model = Model(path)
    model.options["kernels"] = "required"
    (outputs, report), blocks = model.evaluate({"F": points}), model.jacobian({"F": F})[1]
    assert abs(outputs["J"][0] - 0.991) < 1e-15
    np.testing.assert_allclose(blocks["J"]["F"], 0.991 * np.linalg.inv(F).T, atol=1e-14)
    expected = -np.einsum("ik,lj->ijkl", np.linalg.inv(F), np.linalg.inv(F))
    np.testing.assert_allclose(blocks["inverse"]["F"], expected, atol=1e-14)
    np.testing.assert_allclose(outputs["principal"][3], np.linalg.eigvalsh((F @ F).T @ F @ F))
    # A singular matrix fails at its own point.
    np.testing.assert_array_equal(report["status"] != 0, [False, False, True, False])


@pytest.mark.everything("AOTInductor compiles a package")
def test_a_determinant_runs_on_packages(tmp_path: Path) -> None:
    def volume(F: Any) -> Any:
        return linalg.det(F)

    path = export.model(
        volume, tmp_path / "law", inputs={"F": (3, 3)}, outputs={"J": "Scalar"}, kernels="no"
    )
    outputs, blocks = Model(path, runtime="builtin").jacobian({"F": np.stack([F, F @ F])})[:2]
    np.testing.assert_allclose(outputs["J"], [0.991, 0.991**2], rtol=1e-14)
    np.testing.assert_allclose(blocks["J"]["F"][0], 0.991 * np.linalg.inv(F).T, atol=1e-14)


def test_what_torch_differentiates_wrongly_is_told_with_its_line() -> None:
    def great(A: Any) -> Any:
        return (linalg.solve(A, A[0]),)

    with pytest.raises(FatalError, match=r"more than 6 rows.*return \(linalg\.solve"):
        batched(jacobian(functools.partial(called, great), [0]), [(7, 7)], torch.float64)


def test_a_package_of_a_module_has_the_same_algebra() -> None:
    """And its backward pass: no operator of LAPACK is left in them."""
    from neml2_capi.export._adjoint import export_adjoint
    from neml2_capi.export._compile import export as program_of

    def module(F: Any) -> Any:
        return linalg.det(F)[:, None, None] * linalg.inv(F)

    points = matrices(3)
    with SmallMatrices():
        forward = program_of(module, (points[:2],), [0])
        backward = export_adjoint(module, (points[:2],), [0])
    for program in (forward, backward):
        assert not [n for n in program.graph.nodes if "linalg" in str(n.target)]
    assert_near(forward.module()(points), module(points))
    given = points.clone().requires_grad_()
    module(given).square().sum().backward()
    (gradient,) = backward.module()(points, 2.0 * module(points))
    assert_near(gradient, given.grad)
