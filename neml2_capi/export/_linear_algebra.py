"""Linear algebra of small matrices as arithmetic of their entries.

What torch calls of LAPACK has no kernel, and torch 2.13 differentiates some of it wrongly for many
points. While a law is traced, its calls are replaced by these functions, which differentiate as any
arithmetic does, twice as well. All take (..., n, n); a singular matrix gives infinity or NaN at its
own point, and no error.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

#: Greater matrices are torch's own.
MOST_ROWS = 6
#: Of Jacobi's method, by rows: five sweeps of three, since it converges quadratically.
_ROTATIONS = {1: 0, 2: 1, 3: 15}


class SmallMatrices(TorchFunctionMode):  # type: ignore[misc]
    """Replaces torch's linear algebra of small real matrices."""

    def __init__(self) -> None:
        super().__init__()
        #: Whether torch's own functions are no reference: for eigenvectors, whose signs are free,
        #: and for derivatives of solutions, some of which torch has wrong.
        self.differs = False

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        options = options or {}
        most, ours = _OURS.get(function, (0, function))
        if most and not arguments:  # the matrix by its name
            name = "A" if "A" in options else "input"
            arguments, options = (options[name],), {k: v for k, v in options.items() if k != name}
        if not most or not _is_small(arguments[0], most):
            return function(*arguments, **options)
        self.differs |= ours in (eigensystem, solution, _solution_ex)
        return ours(*arguments, **options)


def _is_small(matrix: Any, most: int) -> bool:
    if not isinstance(matrix, torch.Tensor) or matrix.ndim < 2:
        return False
    rows, columns = matrix.shape[-2:]
    return bool(matrix.is_floating_point() and rows == columns and 1 <= rows <= most)


def _entries(matrix: Any) -> list[list[Any]]:
    n = matrix.shape[-1]
    return [[matrix[..., i, j] for j in range(n)] for i in range(n)]


def _matrix(rows: list[list[Any]]) -> Any:
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def _diagonal(matrix: Any) -> Any:
    return torch.diagonal(matrix, dim1=-2, dim2=-1)


def _scale(matrix: Any) -> Any:
    """The greatest entry, (..., 1, 1), as a number that has no derivative."""
    return matrix.detach().abs().amax((-2, -1), keepdim=True)


# ---- determinants ----


def determinant(A: Any, *, out: Any = None) -> Any:
    """By minors, each of which is made once: a polynomial, also if A is singular."""
    rows = _entries(A)
    minors: dict[tuple[int, ...], Any] = {(j,): entry for j, entry in enumerate(rows[-1])}
    for row in reversed(rows[:-1]):
        size = len(next(iter(minors))) + 1
        choices = itertools.combinations(range(len(rows)), size)
        minors = {columns: _expanded(row, columns, minors) for columns in choices}
    (value,) = minors.values()
    return value if len(rows) > 1 else value.clone()


def _expanded(row: list[Any], columns: tuple[int, ...], minors: dict[tuple[int, ...], Any]) -> Any:
    terms = [row[c] * minors[columns[:k] + columns[k + 1 :]] for k, c in enumerate(columns)]
    total = terms[0]
    for k, term in enumerate(terms[1:]):
        total = total + term if k % 2 else total - term
    return total


def sign_and_logarithm(A: Any, *, out: Any = None) -> Any:
    """Both from a scaled determinant, which neither overflows nor vanishes."""
    scale = _scale(A)
    scaled = determinant(A / scale)
    logarithm = scaled.abs().log() + A.shape[-1] * scale[..., 0, 0].log()
    return torch.return_types.linalg_slogdet((scaled.detach().sign(), logarithm))


def logarithm_of_determinant(A: Any) -> Any:
    sign, logarithm = sign_and_logarithm(A)
    return torch.where(sign < 0, torch.nan, logarithm)


# ---- inverses and solutions ----


def inverse(A: Any, *, out: Any = None) -> Any:
    """In closed form for three rows; for more by elimination.

    Neither has a derivative here: the correction by what it left, which is round-off, has the first
    and the second one.
    """
    n = A.shape[-1]
    if n == 1:
        return 1.0 / A
    with torch.no_grad():
        X = _closed(A.detach()) if n <= 3 else _eliminated(A.detach())
    rest = torch.eye(n, dtype=A.dtype) - A @ X
    return X + X @ (rest + rest @ rest)


def _closed(A: Any) -> Any:
    """The adjugate over the determinant, of a scaled matrix."""
    factor = 1.0 / _scale(A)
    a = _entries(A * factor)
    if len(a) == 2:
        (p, q), (r, s) = a
        adjugate, value = [[s, -q], [-r, p]], p * s - q * r
    else:
        turn = ((1, 2), (2, 0), (0, 1))
        cofactors = [[a[i][k] * a[j][m] - a[i][m] * a[j][k] for k, m in turn] for i, j in turn]
        value = functools.reduce(torch.add, [a[0][k] * cofactors[0][k] for k in range(3)])
        adjugate = [list(column) for column in zip(*cofactors, strict=True)]
    return _matrix(adjugate) * (factor / value[..., None, None])


def _eliminated(A: Any) -> Any:
    """The inverse by Gauss and Jordan, with the greatest pivot of each column."""
    n = A.shape[-1]
    unit = torch.eye(n, dtype=A.dtype).expand_as(A)
    rows = list(torch.cat([A, unit], -1).unbind(-2))
    for k in range(n):
        for i in range(k + 1, n):
            greater = (rows[i][..., k].abs() > rows[k][..., k].abs())[..., None]
            rows[k], rows[i] = (
                torch.where(greater, rows[i], rows[k]),
                torch.where(greater, rows[k], rows[i]),
            )
        rows[k] = rows[k] / rows[k][..., k : k + 1]
        for i in range(n):
            if i != k:
                rows[i] = rows[i] - rows[i][..., k : k + 1] * rows[k]
    return torch.stack(rows, -2)[..., n:]


def solution(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:
    """A X = B, or X A = B, with a step of refinement."""
    of_vectors = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    right = B[..., None] if of_vectors else B
    X = inverse(A)
    if left:
        made = X @ right
        made = made + X @ (right - A @ made)
    else:
        made = right @ X
        made = made + (right - made @ A) @ X
    return made[..., 0] if of_vectors else made


def _power(A: Any, n: int, *, out: Any = None) -> Any:
    return torch.linalg.matrix_power(inverse(A) if n < 0 else A, abs(n))


def _information(X: Any) -> Any:
    """What LAPACK returns: 0, or a positive number for a singular matrix."""
    return (~torch.isfinite(X.detach()).all(-1).all(-1)).to(torch.int32)


def _inverse_ex(A: Any, *, check_errors: bool = False, out: Any = None) -> Any:
    X = inverse(A)
    return torch.return_types.linalg_inv_ex((X, _information(X)))


def _solution_ex(
    A: Any, B: Any, *, left: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    X = solution(A, B, left=left)
    return torch.return_types.linalg_solve_ex((X, _information(inverse(A))))


# ---- symmetric matrices ----


def _as_lower(A: Any, upper: bool = False) -> Any:
    """What LAPACK reads, one triangle, with the derivative of a symmetric matrix."""
    with torch.no_grad():
        a = A.detach()
        half = torch.triu(a) if upper else torch.tril(a)
        read = half + half.mT - torch.diag_embed(_diagonal(a))
    symmetric = 0.5 * (A + A.mT)
    return read + (symmetric - symmetric.detach())


def cholesky(A: Any, *, upper: bool = False, out: Any = None) -> Any:
    """The lower factor; NaN if A is not positive definite."""
    a = _entries(_as_lower(A, upper))
    n = len(a)
    L = [[torch.zeros_like(a[0][0]) for _ in range(n)] for _ in range(n)]
    for j in range(n):
        for i in range(j, n):
            rest = a[i][j]
            for k in range(j):
                rest = rest - L[i][k] * L[j][k]
            L[i][j] = rest.sqrt() if i == j else rest / L[j][j]
    made = _matrix(L)
    return made.mT if upper else made


def eigenvalues(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    values, _ = _eigenpairs(A, UPLO)
    return values


def eigensystem(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    return torch.return_types.linalg_eigh(_eigenpairs(A, UPLO))


def _eigenpairs(A: Any, UPLO: str) -> tuple[Any, Any]:
    """By Jacobi's method; the derivatives by perturbation theory, to the second order.

    With H the change of V^T A V, and C its entries over the gaps of the eigenvalues. Equal ones
    have first derivatives, and no second ones; of their vectors not even the first is defined.
    """
    A = _as_lower(A, UPLO.upper() == "U")
    with torch.no_grad():
        values, columns = _jacobi(_entries(A.detach()))
    V, n = torch.stack(columns, -1), len(values)
    E = V.mT @ A @ V
    H = _entries(E - E.detach())
    H = [[H[min(i, j)][max(i, j)] for j in range(n)] for i in range(n)]
    made, vectors = [], []
    for j in range(n):
        value, others = values[j] + H[j][j], [k for k in range(n) if k != j]
        C: dict[int, Any] = {}
        over_gap: dict[int, Any] = {}
        for k in others:
            gap = values[j] - values[k]
            same = gap == 0
            inverse_gap = 1.0 / torch.where(same, 1.0, gap)
            alone = torch.where(same, H[k][j], 1.0)
            C[k] = torch.where(same, alone.sqrt(), H[k][j] * inverse_gap)  # sqrt has no derivative
            bend = torch.where(same, alone.abs() ** 1.5, H[k][j] * H[k][j] * inverse_gap)
            value, over_gap[k] = value + bend, inverse_gap
        column = columns[j]
        for k in others:
            mixed = sum(H[k][m] * C[m] for m in others) - H[j][j] * C[k]
            along = C[k] + mixed * over_gap[k]
            column = column + columns[k] * along[..., None]
            column = column - columns[j] * (0.5 * C[k] * C[k])[..., None]
        made.append(value)
        vectors.append(column)
    return torch.stack(made, -1), torch.stack(vectors, -1)


def _jacobi(a: list[list[Any]]) -> tuple[list[Any], list[Any]]:
    """Eigenvalues in ascending order, and their vectors."""
    n = len(a)
    unit = torch.eye(n, dtype=a[0][0].dtype).expand((*a[0][0].shape, n, n))
    columns = list(unit.unbind(-1))
    pairs = itertools.cycle(itertools.combinations(range(n), 2))
    for p, q in itertools.islice(pairs, _ROTATIONS[n]):
        off, zero = a[p][q], a[p][q] == 0
        theta = (a[q][q] - a[p][p]) / (2.0 * torch.where(zero, 1.0, off))
        t = torch.where(theta >= 0, 1.0, -1.0) / (theta.abs() + (theta * theta + 1.0).sqrt())
        t = torch.where(zero, 0.0, t)
        c = 1.0 / (t * t + 1.0).sqrt()
        s = t * c
        a[p][p], a[q][q] = a[p][p] - t * off, a[q][q] + t * off
        a[p][q] = a[q][p] = torch.zeros_like(off)
        for r in range(n):
            if r not in (p, q):
                left, right = a[r][p], a[r][q]
                a[r][p] = a[p][r] = c * left - s * right
                a[r][q] = a[q][r] = s * left + c * right
        c, s = c[..., None], s[..., None]
        columns[p], columns[q] = c * columns[p] - s * columns[q], s * columns[p] + c * columns[q]
    values = [a[i][i] for i in range(n)]
    for last in range(n - 1, 0, -1):
        for i in range(last):
            swap = values[i] > values[i + 1]
            for row, chosen in ((values, swap), (columns, swap[..., None])):
                row[i], row[i + 1] = (
                    torch.where(chosen, row[i + 1], row[i]),
                    torch.where(chosen, row[i], row[i + 1]),
                )
    return values, columns


def _table() -> dict[Any, tuple[int, Callable[..., Any]]]:
    t, linalg, tensor = torch, torch.linalg, torch.Tensor
    ours: list[tuple[int, Callable[..., Any], list[Any]]] = [
        (MOST_ROWS, determinant, [linalg.det, t.det, tensor.det]),
        (MOST_ROWS, sign_and_logarithm, [linalg.slogdet, t.slogdet, tensor.slogdet]),
        (MOST_ROWS, logarithm_of_determinant, [t.logdet, tensor.logdet]),
        (MOST_ROWS, inverse, [linalg.inv, t.inverse, tensor.inverse]),
        (MOST_ROWS, _inverse_ex, [linalg.inv_ex]),
        (MOST_ROWS, solution, [linalg.solve]),
        (MOST_ROWS, _solution_ex, [linalg.solve_ex]),
        (MOST_ROWS, _power, [linalg.matrix_power, t.matrix_power, tensor.matrix_power]),
        (MOST_ROWS, cholesky, [linalg.cholesky, t.cholesky, tensor.cholesky]),
        (3, eigensystem, [linalg.eigh]),
        (3, eigenvalues, [linalg.eigvalsh]),
    ]
    return {theirs: (most, our) for most, our, every in ours for theirs in every}


_OURS = _table()
