"""The Newton step of a residual, from its Jacobian, as a straight line of operations.

Columns are first added to each other if that makes entries vanish: the derivatives with respect
to the stress and to a back stress differ in few rows. Then comes Gaussian elimination with pivots
that are chosen once, so that few entries come into being (Markowitz, Management Science 3, 1957).
Whether the pivots were good for a point is an output: the caller solves again, with row pivoting,
if they were not.
"""

from __future__ import annotations

import functools
import hashlib
from collections import defaultdict
from collections.abc import Sequence

from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import Node, Scalars, constant_of

#: By how much the products that change a pivot may exceed it, before and after.
GROWTH = 1e3
#: By how much the products that make an unknown may exceed it: so much of it is round-off.
LOSS = 1e8
#: More unknowns than these are left to a loop.
MOST_UNKNOWNS = 40


def newton_step(jacobian: Program, groups: Sequence[int]) -> Program | None:
    """The step of a residual whose unknowns are in groups of these sizes.

    Parameters
    ----------
    jacobian : Program
        It returns blocks of dr/du, group by group, and then the groups of -r.
    groups : Sequence[int]
        The sizes of the groups of unknowns, which the residual has too.

    Returns
    -------
    Program | None
        It takes what the Jacobian returns, and returns the groups of the step and `trusted`: 1
        if the pivots were good. None if the Jacobian is of another form, or too large.
    """
    count, total = len(groups), sum(groups)
    sizes = [m * n for m in groups for n in groups] + list(groups)
    if [array.components for array in jacobian.outputs] != sizes or total > MOST_UNKNOWNS:
        return None
    s = Scalars(notes=False)  # the zeros of the matrix are known
    matrix = _Matrix(s, jacobian, groups)
    changes = matrix.changes()
    sides = [s.variable(count * count + i, r) for i, n in enumerate(groups) for r in range(n)]
    solution, trusted = _eliminated(s, matrix, sides)
    for column, other, sign in reversed(changes):
        change = s.add if sign > 0 else s.sub
        solution[other] = change(solution[other], solution[column])
    results, at = [], 0
    for n in groups:
        results.append(solution[at : at + n])
        at += n
    outputs = [Array(f"step_{i}" if count > 1 else "step", (n,)) for i, n in enumerate(groups)]
    inputs = [Array(array.name, array.shape) for array in jacobian.outputs]
    made = program_of(inputs, [*outputs, Array("trusted", ())], [*results, [trusted]])
    made.real = jacobian.real
    # Of the graph of the Jacobian: it decides.
    made.checksum = hashlib.sha256(f"step {jacobian.checksum}".encode()).hexdigest()
    return made


#: A sum of numbers: of each, by its step, how often; 1 itself is at _ONE. Zero if it is empty.
_Form = dict[int, float]
_ONE = -1
_MOST_TERMS = 60


class _Matrix:
    """The entries of the Jacobian: what is known of each, and how it is computed."""

    def __init__(self, s: Scalars, jacobian: Program, groups: Sequence[int]) -> None:
        self._s, self._jacobian = s, jacobian
        self._known: dict[int, _Form] = {}
        self._nodes: dict[tuple[tuple[int, float], ...], Node] = {}
        self._forms: list[list[_Form]] = []
        self.rows: list[list[Node]] = []
        for i, height in enumerate(groups):
            for r in range(height):
                forms, nodes = [], []
                for j, width in enumerate(groups):
                    block = i * len(groups) + j
                    for c in range(width):
                        form = self._form(jacobian.results[block][r * width + c])
                        forms.append(form)
                        nodes.append(self._node(form, s.variable(block, r * width + c)))
                self._forms.append(forms)
                self.rows.append(nodes)

    def _form(self, place: int) -> _Form:
        if place not in self._known:
            self._known[place] = self._made(place)
        return self._known[place]

    def _made(self, place: int) -> _Form:
        name, arguments, data = self._jacobian.steps[place]
        if name == "constant" and data != "nan":
            return {_ONE: float(data)} if data else {}
        form: _Form = {place: 1.0}
        if name == "neg":
            form = _sum({}, self._form(arguments[0]), -1.0)
        elif name in ("add", "sub"):
            first, second = (self._form(argument) for argument in arguments)
            form = _sum(first, second, 1.0 if name == "add" else -1.0)
        return form if len(form) <= _MOST_TERMS else {place: 1.0}

    def _node(self, form: _Form, computed: Node) -> Node:
        """The value of an entry: of equal ones that which was made first."""
        if not form.keys() - {_ONE}:
            return self._s.constant(form.get(_ONE, 0.0))
        return self._nodes.setdefault(tuple(sorted(form.items())), computed)

    def changes(self) -> list[tuple[int, int, int]]:
        """Add columns to others while that removes two entries or more: (column, other, sign)."""
        made = []
        while found := self._best():
            column, other, sign = found
            made.append(found)
            change = self._s.add if sign > 0 else self._s.sub
            for forms, nodes in zip(self._forms, self.rows, strict=True):
                if forms[other]:
                    forms[column] = _sum(forms[column], forms[other], sign)
                    value = change(nodes[column], nodes[other])
                    nodes[column] = self._node(forms[column], value)
        return made

    def constant(self, row: int, column: int) -> float:
        """The constant part of an entry, which does not vanish if nothing flows."""
        return abs(self._forms[row][column].get(_ONE, 0.0))

    def _best(self) -> tuple[int, int, int] | None:
        columns = range(len(self._forms))
        most, best = 1, None
        for column in columns:
            filled = sum(bool(forms[column]) for forms in self._forms)
            for other in columns:
                for sign in (1, -1) if other != column else ():
                    sums = (_sum(f[column], f[other], sign) for f in self._forms)
                    gain = filled - sum(map(bool, sums))
                    if gain > most:
                        most, best = gain, (column, other, sign)
        return best


def _sum(first: _Form, second: _Form, sign: float) -> _Form:
    made = dict(first)
    for place, number in second.items():
        total = made.pop(place, 0.0) + sign * number
        if total:
            made[place] = total
    return made


def _eliminated(s: Scalars, matrix: _Matrix, sides: list[Node]) -> tuple[list[Node], Node]:
    """The solution, and 1 or 0 for whether it is to be trusted."""
    rows, total = [list(row) for row in matrix.rows], len(sides)
    changes: dict[tuple[int, int], list[Node]] = defaultdict(list)
    pivots: list[tuple[int, int]] = []
    left, columns = list(range(total)), list(range(total))
    while left:
        row, column = _cheapest(rows, matrix, left, columns)
        pivots.append((row, column))
        left.remove(row)
        columns.remove(column)
        for i in left:
            if _is_zero(rows[i][column]):
                continue
            factor = s.div(rows[i][column], rows[row][column])
            for j in columns:
                change = s.mul(factor, rows[row][j])
                if not _is_zero(change):
                    rows[i][j] = s.sub(rows[i][j], change)
                    changes[i, j].append(change)
            sides[i] = s.sub(sides[i], s.mul(factor, sides[row]))
    checks = [
        _good(s, matrix.rows[i][j], rows[i][j], changes[i, j])
        for i, j in pivots
        if constant_of(rows[i][j]) in (None, 0)
    ]
    filled = [place for place, (i, j) in enumerate(pivots) if _is_zero(matrix.rows[i][j])]
    solution = list(sides)
    for place in range(total - 1, -1, -1):
        row, column = pivots[place]
        value, size = sides[row], s.function("abs", sides[row])
        for _, other in pivots[place + 1 :]:
            product = s.mul(rows[row][other], solution[other])
            value, size = s.sub(value, product), s.add(size, s.function("abs", product))
        # A later pivot that was made of nothing does not tell whether this one was too small, so
        # that nothing was left of an equation. Its constant part tells, or else its own unknown.
        if filled and place < filled[-1]:
            if (part := matrix.constant(row, column)) >= 1.0 / GROWTH:
                most, found, least = GROWTH, rows[row][column], s.constant(part)
            else:
                most, found, least = LOSS, value, size
            checks.append(s.ge(s.mul(s.constant(most), s.function("abs", found)), least))
        solution[column] = s.div(value, rows[row][column])
    return solution, s.number(functools.reduce(s.and_, checks)) if checks else s.constant(1.0)


def _good(s: Scalars, before: Node, after: Node, changes: Sequence[Node]) -> Node:
    """Whether a pivot is much smaller than the sum of what it is made of, at no time."""
    if not changes:
        return s.gt(s.function("abs", after), s.constant(0.0))
    size = s.function("abs", changes[0])
    for change in changes[1:]:
        size = s.add(size, s.function("abs", change))
    start, growth = s.function("abs", before), s.constant(GROWTH)
    kept = s.gt(s.mul(growth, s.function("abs", after)), s.add(start, size))
    return kept if _is_zero(before) else s.and_(kept, s.ge(s.mul(growth, start), size))


def _cheapest(
    rows: list[list[Node]], matrix: _Matrix, left: Sequence[int], columns: Sequence[int]
) -> tuple[int, int]:
    """The pivot that makes the fewest products, of those that are 1 and something if there are."""
    heights = {j: sum(not _is_zero(rows[i][j]) for i in left) - 1 for j in columns}
    widths = {i: sum(not _is_zero(rows[i][j]) for j in columns) - 1 for i in left}

    def cost(place: tuple[int, int]) -> tuple[bool, bool, int, bool]:
        i, j = place
        zero = _is_zero(rows[i][j])
        return zero, not matrix.constant(i, j), heights[j] * widths[i], i != j

    return min(((i, j) for i in left for j in columns), key=cost)


def _is_zero(node: Node) -> bool:
    return constant_of(node) == 0
