"""The matrix of a Newton step: entries of a Jacobian, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from neml2_capi.kernels.program import Program
from neml2_capi.kernels.scalar import Node, Scalars, constant_of
from neml2_capi.kernels.tables import stored

#: A sum of numbers: of each, by its step, how often; 1 itself is at ONE. Zero if it is empty.
_Form = dict[int, float]
ONE = -1
_MOST_TERMS = 60
_Key = tuple[tuple[int, float], ...]


class Alike(Scalars):
    """Arithmetic that moves no sign: from one site to the next, signs would alternate."""

    def neg(self, x: Node) -> Node:
        return self.sub(self.constant(0.0), x)

    def sub(self, x: Node, y: Node) -> Node:
        a, b = constant_of(x), constant_of(y)
        if b == 0:
            return x
        if a is not None and b is not None:
            return self.constant(a - b)
        return self.node("sub", x, y)

    def mul(self, x: Node, y: Node) -> Node:
        a, b = constant_of(x), constant_of(y)
        if a is not None and b is not None:
            return self.constant(a * b)
        if a == 0 or b == 0:
            return self.constant(0.0)
        return y if a == 1 else x if b == 1 else self.node("mul", x, y)

    def div(self, x: Node, y: Node) -> Node:
        a, b = constant_of(x), constant_of(y)
        if a is not None and b:
            return self.constant(a / b)
        return x if b == 1 else self.node("div", x, y)


class Entry(NamedTuple):
    """An entry of a Jacobian: the step that makes it, and the array and component that it is."""

    row: int
    column: int
    place: int
    variable: tuple[int, int]
    sign: int = 1


def entries_of(jacobian: Program, groups: Sequence[int]) -> list[Entry]:
    """All entries that are stored of a Jacobian in blocks."""
    starts = [sum(groups[:i]) for i in range(len(groups))]
    found = []
    for i, first_row in enumerate(starts):
        for j, first_column in enumerate(starts):
            block = i * len(groups) + j
            for slot, (component, place) in enumerate(stored(jacobian, block)):
                row, column = divmod(component, groups[j])
                found.append(Entry(first_row + row, first_column + column, place, (block, slot)))
    return sorted(found)


class Matrix:
    """The entries of the Jacobian that are not zero, by row and column."""

    def __init__(
        self,
        s: Scalars,
        jacobian: Program,
        entries: Sequence[Entry],
        total: int,
        equal: bool = True,
    ) -> None:
        self._equal = equal
        self._s, self._jacobian = s, jacobian
        self._known: dict[int, _Form] = {}
        self._nodes: dict[_Key, Node] = {}
        #: What is known of each entry, and how it is computed.
        self.forms: list[dict[int, _Form]] = [{} for _ in range(total)]
        self.rows: list[dict[int, Node]] = [{} for _ in range(total)]
        for row, column, place, variable, sign in entries:
            if form := self._form(place):
                value = s.variable(*variable)
                self.forms[row][column] = form if sign > 0 else _sum({}, form, -1.0)
                value = value if sign > 0 else s.neg(value)
                self.rows[row][column] = self._node(self.forms[row][column], value)

    def _form(self, place: int) -> _Form:
        if place not in self._known:
            self._known[place] = self._made(place)
        return self._known[place]

    def _made(self, place: int) -> _Form:
        name, arguments, data = self._jacobian.steps[place]
        if name == "constant" and data != "nan":
            return {ONE: float(data)} if data else {}
        form: _Form = {place: 1.0}
        if name == "neg":
            form = _sum({}, self._form(arguments[0]), -1.0)
        elif name in ("add", "sub"):
            first, second = (self._form(argument) for argument in arguments)
            form = _sum(first, second, 1.0 if name == "add" else -1.0)
        return form if len(form) <= _MOST_TERMS else {place: 1.0}

    def _node(self, form: _Form, computed: Node) -> Node:
        """The value of an entry: the first of equal ones, unless each is its own."""
        if not form.keys() - {ONE}:
            return self._s.constant(form.get(ONE, 0.0))
        if not self._equal:
            return computed
        return self._nodes.setdefault(_key(form), computed)

    def constant(self, row: int, column: int) -> float:
        """The constant part of an entry, which does not vanish if nothing flows."""
        return abs(self.forms[row].get(column, {}).get(ONE, 0.0))


def _key(form: _Form) -> _Key:
    return tuple(sorted(form.items()))


def _sum(first: _Form, second: _Form, sign: float) -> _Form:
    made = dict(first)
    for place, number in second.items():
        total = made.pop(place, 0.0) + sign * number
        if total:
            made[place] = total
    return made


def is_zero(node: Node) -> bool:
    return constant_of(node) == 0
