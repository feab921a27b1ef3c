"""What structural zeros leave out.

0 x is 0 for a finite x alone; for all others it is NaN. Products with the zeros of identities, of
projections and of tangents are left out of a kernel all the same, since they are half of its
operations. A node `lacking` holds a value and what was left out of it, until an output is made:
there the value itself is not finite if something left out is not, or else the product with zero
is added after all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neml2_capi.kernels.scalar import Node, Scalars

#: Their results are not finite if an argument is not.
_PASS_ON = frozenset(
    {"add", "sub", "mul", "neg", "sqrt", "abs", "log", "log1p", "sinh", "cosh", "sin", "cos", "tan"}
)
_MASKS = frozenset({"gt", "ge", "eq", "and", "or", "not"})


def parts(x: Node) -> tuple[Node, Node | None]:
    """A value, and what was left out of it."""
    return x.arguments if x.operation == "lacking" else (x, None)  # type: ignore[return-value]


def lacking(s: Scalars, value: Node, *dropped: Node | None) -> Node:
    """The value, with what was left out of it."""
    value, total = parts(value)
    for more in dropped:
        total = _joined(s, total, more)
    return value if total is None else s.node("lacking", value, total)


def zero_times(s: Scalars, zero: Node, x: Node) -> Node:
    """0 x as 0, which lacks x."""
    while True:
        if x.operation in ("neg", "abs") or (x.operation == "mul" and _is_finite(x.arguments[0])):
            x = x.arguments[-1]
        elif x.operation == "div" and x.arguments[1].operation == "constant":
            x = x.arguments[0]
        else:
            break
    return zero if _is_finite(x) else s.node("lacking", zero, s.node("times zero", x))


def zero_over(s: Scalars, zero: Node, x: Node) -> Node:
    """0 / x as 0."""
    while x.operation in ("neg", "abs"):
        x = x.arguments[0]
    return s.node("lacking", zero, s.node("zero over", x))


def chosen(s: Scalars, mask: Node, x: Node | None, y: Node | None) -> Node | None:
    """What a choice between two values lacks."""
    if x is y:
        return x
    nothing = s.constant(0)
    return s.node("choice", mask, x or nothing, y or nothing)


def settled(s: Scalars, x: Node) -> Node:
    """The value itself, NaN if what it lacks is not finite; or infinite, if it is so already."""
    value, dropped = parts(x)
    if dropped is None:
        return x
    lost = _Lost(s, _Carried([value])).of(dropped)
    return value if lost is None else s.add(lost, value)


def settled_output(s: Scalars, nodes: Sequence[Node]) -> list[Node]:
    """The entries of an output without nodes that lack something.

    If an entry lacks something that is not finite, an entry of the same output is not finite.
    A zero stays a zero if another entry lacks the same.
    """
    pairs = [parts(node) for node in nodes]
    found = [value for value, _ in pairs]
    total: Node | None = None
    for _, dropped in pairs:
        total = _joined(s, total, dropped)
    lost = _Lost(s, _Carried(found))
    waiting = {x.index: made for x in _each(total) if (made := lost.made(x)) is not None}
    for constants in (False, True):
        for place, (value, dropped) in enumerate(pairs):
            if waiting and (value.operation == "constant") == constants:
                here = [waiting.pop(x.index) for x in _each(dropped) if x.index in waiting]
                for number in here:
                    found[place] = s.add(number, found[place])
    return found


def _joined(s: Scalars, x: Node | None, y: Node | None) -> Node | None:
    if x is None or x is y:
        return y
    if y is None or x in y.arguments:
        return x if y is None else y
    if y in x.arguments:
        return x
    return s.node("both", *((x, y) if x.index < y.index else (y, x)))


def _is_finite(x: Node) -> bool:
    waiting, seen = [x], {x.index}
    while waiting:
        y = waiting.pop()
        if y.operation == "where":  # choices of choices share theirs: each is looked at once
            waiting.extend(c for c in y.arguments[1:] if c.index not in seen)
            seen.update(c.index for c in y.arguments[1:])
        elif y.operation == "constant":
            if y.data == "nan" or abs(float(y.data)) == float("inf"):  # type: ignore[arg-type]
                return False
        elif y.operation not in _MASKS and y.operation != "sign":
            return False
    return True


class _Carried:
    """What makes some of these values not finite if it is not finite itself."""

    def __init__(self, values: Iterable[Node]) -> None:
        self.numbers: set[int] = set()
        self.divisors: set[int] = set()
        waiting = list(values)
        while waiting:
            x = waiting.pop()
            if x.index in self.numbers:
                continue
            self.numbers.add(x.index)
            if x.operation in _PASS_ON:
                waiting.extend(x.arguments)
            elif x.operation == "div":
                waiting.append(x.arguments[0])
                self.divisors.add(x.arguments[1].index)


class _Lost:
    """The sum of what was left out, without what is carried anyway; each is made once."""

    def __init__(self, s: Scalars, carried: _Carried) -> None:
        self._s, self._carried = s, carried
        self._known: dict[int, Node | None] = {}  # choices of choices share what they lack

    def of(self, dropped: Node | None) -> Node | None:
        total: Node | None = None
        for x in _each(dropped):
            lost = self.made(x)
            if lost is not None:
                total = lost if total is None else self._s.node("add", total, lost)
        return total

    def made(self, x: Node) -> Node | None:
        if x.index not in self._known:
            self._known[x.index] = self._made(x)
        return self._known[x.index]

    def _made(self, x: Node) -> Node | None:
        s, zero = self._s, self._s.constant(0)
        if x.operation == "choice":
            mask, *ways = x.arguments
            lost = [self.of(None if way is zero else way) for way in ways]
            return None if lost == [None, None] else s.where(mask, *(w or zero for w in lost))
        (of,) = x.arguments
        if x.operation == "zero over":
            return None if of.index in self._carried.divisors else s.node("div", zero, of)
        return None if of.index in self._carried.numbers else s.node("mul", zero, of)


def _each(dropped: Node | None) -> list[Node]:
    """What is joined, each once, in the order of making."""
    found: dict[int, Node] = {}
    seen: set[int] = set()
    waiting = [] if dropped is None else [dropped]
    while waiting:
        x = waiting.pop()
        if x.index in seen:
            continue
        seen.add(x.index)
        if x.operation == "both":
            waiting.extend(x.arguments)
        else:
            found[x.index] = x
    return [found[index] for index in sorted(found)]
