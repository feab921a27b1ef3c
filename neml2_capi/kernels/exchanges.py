"""Small dense systems that are solved with exchanges of rows, each point for itself."""

from __future__ import annotations

from neml2_capi.kernels.matrix import is_zero
from neml2_capi.kernels.scalar import Node, Scalars


def solved_with_pairs(
    s: Scalars, a: list[list[Node]], b: list[Node]
) -> tuple[list[Node], list[Node]]:
    """The solution of a small dense system, and that its pivots are not zero.

    An equation of two unknowns alone, such as one of a strain and a stress of which one is given,
    yields the one with the larger coefficient first: so much less is left for exchanges of rows.
    """
    checks: list[Node] = []
    pairs: list[tuple[int, int, int, Node]] = []  # row, pivot, other, whether they were exchanged
    rows, columns = list(range(len(b))), list(range(len(b)))
    for row, entries in enumerate(a):
        found = [j for j, value in enumerate(entries) if not is_zero(value)]
        if len(found) != 2 or not set(found) <= set(columns):
            continue
        pivot, other = found
        turned = s.gt(s.function("abs", entries[other]), s.function("abs", entries[pivot]))
        for i in rows:
            x, y = a[i][pivot], a[i][other]
            a[i][pivot], a[i][other] = s.where(turned, y, x), s.where(turned, x, y)
        rows.remove(row)
        columns.remove(pivot)
        pairs.append((row, pivot, other, turned))
        checks.append(s.gt(s.function("abs", entries[pivot]), s.constant(0.0)))
        for i in rows:
            if not is_zero(a[i][pivot]):
                factor = s.div(a[i][pivot], entries[pivot])
                a[i][other] = s.sub(a[i][other], s.mul(factor, entries[other]))
                b[i] = s.sub(b[i], s.mul(factor, b[row]))
    rest = [[a[i][j] for j in columns] for i in rows]
    values, nonzero = _solved_with_exchanges(s, rest, [b[i] for i in rows])
    solution = dict(zip(columns, values, strict=True))
    for row, pivot, other, turned in reversed(pairs):
        y = solution[other]
        x = s.div(s.sub(b[row], s.mul(a[row][other], y)), a[row][pivot])
        solution[pivot], solution[other] = s.where(turned, y, x), s.where(turned, x, y)
    return [solution[j] for j in range(len(b))], [*checks, *nonzero]


def _solved_with_exchanges(
    s: Scalars, a: list[list[Node]], b: list[Node]
) -> tuple[list[Node], list[Node]]:
    """The solution of a small dense system with row pivoting, and that its pivots are not zero."""
    checks, count = [], len(b)
    for k in range(count):
        for i in range(k + 1, count):
            if is_zero(a[i][k]):
                continue
            small = s.gt(s.function("abs", a[i][k]), s.function("abs", a[k][k]))
            for j in range(k, count):
                x, y = a[k][j], a[i][j]
                a[k][j], a[i][j] = s.where(small, y, x), s.where(small, x, y)
            b[k], b[i] = s.where(small, b[i], b[k]), s.where(small, b[k], b[i])
        checks.append(s.gt(s.function("abs", a[k][k]), s.constant(0.0)))
        for i in range(k + 1, count):
            if is_zero(a[i][k]):
                continue
            factor = s.div(a[i][k], a[k][k])
            for j in range(k + 1, count):
                a[i][j] = s.sub(a[i][j], s.mul(factor, a[k][j]))
            b[i] = s.sub(b[i], s.mul(factor, b[k]))
    for k in range(count - 1, -1, -1):
        for j in range(k + 1, count):
            b[k] = s.sub(b[k], s.mul(a[k][j], b[j]))
        b[k] = s.div(b[k], a[k][k])
    return b, checks
