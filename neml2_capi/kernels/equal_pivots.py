"""Elimination by pivots that are known, of which some are equal."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Sequence

from neml2_capi.kernels.matrix import is_zero
from neml2_capi.kernels.scalar import Node, Scalars

#: Entries and right-hand sides after elimination, reciprocals of pivots, and what changed entries.
Eliminated = tuple[list[dict[int, Node]], list[Node], list[Node], dict[tuple[int, int], list[Node]]]


def by_equal_pivots(
    s: Scalars,
    matrix: Sequence[dict[int, Node]],
    sides: Sequence[Node],
    pivots: Sequence[tuple[int, int]],
) -> Eliminated:
    """Elimination by known pivots, in which products of equal ones are added up before division.

    The six pivots of a flow rule are one, 1 + a: what they change by is (b + c + ...) / (1 + a). A
    later pivot p - x / d is inverted as d / (p d - x), which does not wait for 1 / d.
    """
    side = -1  # a column
    rows = [{**row, side: x} for row, x in zip(matrix, sides, strict=True)]
    #: By entry: products that are subtracted from it once they are divided by a pivot.
    waiting: list[dict[int, dict[Node, list[Node]]]] = [{} for _ in rows]
    changes: dict[tuple[int, int], list[Node]] = defaultdict(list)
    reciprocals: dict[Node, Node] = {}
    inverses: list[Node] = []
    left = dict.fromkeys(range(len(rows)))

    def total(products: Sequence[Node]) -> Node:
        return functools.reduce(s.add, products)

    def settle(i: int, j: int) -> Node:
        value = rows[i].get(j, s.constant(0.0))
        for inverse, products in waiting[i].pop(j, {}).items():
            value = s.sub(value, s.mul(inverse, total(products)))
            sizes = [s.function("abs", product) for product in products]
            changes[i, j].append(s.mul(s.function("abs", inverse), total(sizes)))
        rows[i][j] = value
        return value

    for row, column in pivots:
        del left[row]
        before, found = rows[row].get(column), waiting[row].get(column, {})
        value = settle(row, column)
        inverse = s.div(s.constant(1.0), value)
        if len(found) == 1 and before:
            ((other, products),) = found.items()
            pivot = reciprocals[other]
            inverse = s.div(pivot, s.sub(s.mul(before, pivot), total(products)))
        inverses.append(inverse)
        reciprocals[inverse] = value
        for j in [*waiting[row]]:
            settle(row, j)
        for i in left:
            if column not in rows[i] and column not in waiting[i]:
                continue
            factor = settle(i, column)
            for j, entry in rows[row].items():
                product = s.mul(factor, entry)
                if j != column and not is_zero(product):
                    waiting[i].setdefault(j, {}).setdefault(inverse, []).append(product)
            del rows[i][column]
    return (
        [{j: value for j, value in row.items() if j != side} for row in rows],
        [row[side] for row in rows],
        inverses,
        changes,
    )
