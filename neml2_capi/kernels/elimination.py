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
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import Node, Scalars, constant_of

#: By how much the products that change a pivot may exceed it, before and after.
GROWTH = 1e3
#: By how much the products that make an unknown may exceed it: so much of it is round-off.
LOSS = 1e8
#: A step of so many operations is always a straight line, and a longer one if a loop over the dense
#: matrix takes _TIMES as many: that code stays in the instruction cache.
MOST_OPERATIONS = 50_000
_TIMES = 4


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
        if the pivots were good. None if the Jacobian is of another form, or a loop is better.
    """
    count, total = len(groups), sum(groups)
    sizes = [m * n for m in groups for n in groups] + list(groups)
    if [array.components for array in jacobian.outputs] != sizes:
        return None
    s = Scalars(notes=False)  # the zeros of the matrix are known
    matrix = _Matrix(s, jacobian, groups)
    changes = matrix.changes()
    sides = [s.variable(count * count + i, r) for i, n in enumerate(groups) for r in range(n)]
    most = max(MOST_OPERATIONS, dense_operations(total) // _TIMES)
    eliminated = _eliminated(s, matrix, sides, most)
    if not eliminated:
        return None
    solution, trusted = eliminated
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
    return made if made.operations <= most else None


def dense_operations(total: int) -> int:
    """What Gaussian elimination and the two substitutions take for a matrix without zeros."""
    return 2 * total**3 // 3 + 2 * total**2


#: A sum of numbers: of each, by its step, how often; 1 itself is at _ONE. Zero if it is empty.
_Form = dict[int, float]
_ONE = -1
_MOST_TERMS = 60
_Key = tuple[tuple[int, float], ...]


class _Matrix:
    """The entries of the Jacobian that are not zero, by row and column."""

    def __init__(self, s: Scalars, jacobian: Program, groups: Sequence[int]) -> None:
        self._s, self._jacobian = s, jacobian
        self._known: dict[int, _Form] = {}
        self._nodes: dict[_Key, Node] = {}
        #: What is known of each entry, and how it is computed.
        self.forms: list[dict[int, _Form]] = []
        self.rows: list[dict[int, Node]] = []
        for i, height in enumerate(groups):
            for r in range(height):
                forms: dict[int, _Form] = {}
                nodes: dict[int, Node] = {}
                column = 0
                for j, width in enumerate(groups):
                    block = i * len(groups) + j
                    for c in range(width):
                        form = self._form(jacobian.results[block][r * width + c])
                        if form:
                            forms[column] = form
                            nodes[column] = self._node(form, s.variable(block, r * width + c))
                        column += 1
                self.forms.append(forms)
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
        return self._nodes.setdefault(_key(form), computed)

    def changes(self) -> list[tuple[int, int, int]]:
        """Add columns to others while that removes two entries or more: (column, other, sign)."""
        made, gains = [], _Gains(self.forms)
        while found := gains.best():
            column, other, sign = found
            made.append(found)
            change = self._s.add if sign > 0 else self._s.sub
            zero = self._s.constant(0.0)
            for forms, nodes in zip(self.forms, self.rows, strict=True):
                if other not in forms:
                    continue
                form = _sum(forms.get(column, {}), forms[other], sign)
                value = self._node(form, change(nodes.get(column, zero), nodes[other]))
                if form:
                    forms[column], nodes[column] = form, value
                else:
                    del forms[column], nodes[column]
            gains.look_again(column)
        return made

    def constant(self, row: int, column: int) -> float:
        """The constant part of an entry, which does not vanish if nothing flows."""
        return abs(self.forms[row].get(column, {}).get(_ONE, 0.0))


class _Gains:
    """How many entries vanish if a column is added to another, or subtracted."""

    def __init__(self, forms: list[dict[int, _Form]]) -> None:
        self._forms = forms
        self._rows: dict[int, set[int]] = defaultdict(set)
        #: In each row, the columns with an entry, by its form.
        self._alike: list[dict[_Key, set[int]]] = []
        for i, row in enumerate(forms):
            alike: dict[_Key, set[int]] = defaultdict(set)
            for j, form in row.items():
                self._rows[j].add(i)
                alike[_key(form)].add(j)
            self._alike.append(alike)
        self._keys = [{j: _key(form) for j, form in row.items()} for row in forms]
        self._gains: dict[tuple[int, int, int], int] = {}
        for column in sorted(self._rows):
            self._note(column)

    def best(self) -> tuple[int, int, int] | None:
        """The column, the other one and the sign that remove most; None if that is one entry."""
        if not self._gains:
            return None
        return min(self._gains, key=lambda pair: (-self._gains[pair], pair[:2], -pair[2]))

    def look_again(self, column: int) -> None:
        """A column has changed."""
        for pair in [pair for pair in self._gains if column in pair[:2]]:
            del self._gains[pair]
        for i in self._rows.pop(column, set()):
            self._alike[i][self._keys[i].pop(column)].remove(column)
        for i, row in enumerate(self._forms):
            if column in row:
                key = self._keys[i][column] = _key(row[column])
                self._rows[column].add(i)
                self._alike[i][key].add(column)
        self._note(column)

    def _note(self, column: int) -> None:
        """Count the gains of all pairs with this column."""
        vanish: Counter[tuple[int, int]] = Counter()
        for i in self._rows[column]:
            form = self._forms[i][column]
            for sign, key in ((-1, _key(form)), (1, _key(_sum({}, form, -1.0)))):
                vanish.update((other, sign) for other in self._alike[i].get(key, ()))
        for (other, sign), count in vanish.items():
            if other == column or count < 2:
                continue
            common = len(self._rows[column] & self._rows[other])
            for one, two in ((column, other), (other, column)):
                gain = count - (len(self._rows[two]) - common)
                if gain > 1:
                    self._gains[one, two, sign] = gain


def _key(form: _Form) -> _Key:
    return tuple(sorted(form.items()))


def _sum(first: _Form, second: _Form, sign: float) -> _Form:
    made = dict(first)
    for place, number in second.items():
        total = made.pop(place, 0.0) + sign * number
        if total:
            made[place] = total
    return made


def _eliminated(
    s: Scalars, matrix: _Matrix, sides: list[Node], limit: int
) -> tuple[list[Node], Node] | None:
    """The solution, and 1 or 0 for whether it is to be trusted; None for more operations."""
    rows, total = [dict(row) for row in matrix.rows], len(sides)
    above: list[set[int]] = [set() for _ in range(total)]  # the rows that have a column
    for i, entries in enumerate(rows):
        for j in entries:
            above[j].add(i)
    changes: dict[tuple[int, int], list[Node]] = defaultdict(list)
    pivots: list[tuple[int, int]] = []
    left, columns = dict.fromkeys(range(total)), dict.fromkeys(range(total))
    begin = len(s.nodes)
    while left:
        if len(s.nodes) - begin > limit:
            return None
        row, column = _cheapest(rows, above, matrix, left, columns)
        pivots.append((row, column))
        del left[row], columns[column]
        rest = sorted(j for j in rows[row] if j in columns)
        for i in sorted(i for i in above[column] if i in left):
            factor = s.div(rows[i][column], rows[row][column])
            for j in rest:
                change = s.mul(factor, rows[row][j])
                if _is_zero(change):
                    continue
                changes[i, j].append(change)
                made = s.sub(rows[i].get(j, s.constant(0.0)), change)
                if _is_zero(made):
                    rows[i].pop(j, None)
                    above[j].discard(i)
                else:
                    rows[i][j] = made
                    above[j].add(i)
            sides[i] = s.sub(sides[i], s.mul(factor, sides[row]))
    zero = s.constant(0.0)
    found = [rows[i].get(j, zero) for i, j in pivots]
    checks = [
        _good(s, matrix.rows[i].get(j, zero), pivot, changes[i, j])
        for (i, j), pivot in zip(pivots, found, strict=True)
        if constant_of(pivot) in (None, 0)
    ]
    filled = [place for place, (i, j) in enumerate(pivots) if j not in matrix.rows[i]]
    order = {column: place for place, (_, column) in enumerate(pivots)}
    solution = list(sides)
    for place in range(total - 1, -1, -1):
        row, column = pivots[place]
        value, size = sides[row], s.function("abs", sides[row])
        for other in sorted((j for j in rows[row] if order[j] > place), key=order.__getitem__):
            product = s.mul(rows[row][other], solution[other])
            value, size = s.sub(value, product), s.add(size, s.function("abs", product))
        # A later pivot that was made of nothing does not tell whether this one was too small, so
        # that nothing was left of an equation. Its constant part tells, or else its own unknown.
        if filled and place < filled[-1]:
            if (part := matrix.constant(row, column)) >= 1.0 / GROWTH:
                most, tested, least = GROWTH, found[place], s.constant(part)
            else:
                most, tested, least = LOSS, value, size
            checks.append(s.ge(s.mul(s.constant(most), s.function("abs", tested)), least))
        solution[column] = s.div(value, found[place])
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
    rows: list[dict[int, Node]],
    above: list[set[int]],
    matrix: _Matrix,
    left: Collection[int],
    columns: Collection[int],
) -> tuple[int, int]:
    """The pivot that makes the fewest products, of those that are 1 and something if there are."""
    heights = {j: sum(i in left for i in above[j]) - 1 for j in columns}
    best = None
    for i in left:
        entries = [j for j in rows[i] if j in columns]
        for j in entries:
            products = heights[j] * (len(entries) - 1)
            cost = (not matrix.constant(i, j), products, i != j, i, j)
            if best is None or cost < best:
                best = cost
    return best[-2:] if best else (next(iter(left)), next(iter(columns)))


def _is_zero(node: Node) -> bool:
    return constant_of(node) == 0
