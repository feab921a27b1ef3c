"""Scalar expressions: numbers that are computed later, each once.

`Scalars` makes nodes, and returns the same node for the same expression. What is folded is what
IEEE 754 allows for arguments that may be anything, infinite and NaN too, with one exception: a
product with a structural zero is 0, and notes what it lacks (`dropped`). Signs move outward, so
that x and -x share what is made of them. If both x - y and y - x are used, the second is -(x - y),
which is -0 if they are equal: `shared` has such differences, and `signs` tells whether it matters.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from typing import TypeGuard

from neml2_capi.kernels import dropped, folding

#: Operations whose result is true or false.
MASKS = frozenset({"gt", "ge", "eq", "and", "or", "not"})
#: The most factors that a power becomes.
MOST_FACTORS = 16


class Node:
    """An operation on other nodes; `data` is a constant's value or a variable's place."""

    __slots__ = ("arguments", "data", "index", "operation", "site")

    def __init__(
        self, operation: str, arguments: tuple[Node, ...], data: Hashable, index: int
    ) -> None:
        #: The site that it was made for, if its maker tells.
        self.site: int | None = None
        self.operation = operation
        self.arguments = arguments
        self.data = data
        self.index = index

    def __repr__(self) -> str:
        inner = [f"n{a.index}" for a in self.arguments]
        return f"{self.operation}({', '.join([*inner, *([] if inner else [repr(self.data)])])})"


def _of_values(method: Callable[..., Node]) -> Callable[..., Node]:
    """Computes with the values; the result lacks what the arguments lack."""

    @functools.wraps(method)
    def computed(self: Scalars, *arguments: Node) -> Node:
        for x in arguments:
            if x.operation == "lacking":
                break
        else:
            return method(self, *arguments)
        values, lacks = zip(*map(dropped.parts, arguments), strict=True)
        return dropped.lacking(self, method(self, *values), *lacks)

    return computed


class Scalars:
    """The nodes of one graph, in the order in which they were made.

    Without `notes`, a product with a structural zero is 0 for all numbers. With `every_sign`, no
    difference stands for another one.
    """

    def __init__(self, notes: bool = True, every_sign: bool = False) -> None:
        self.nodes: list[Node] = []
        self._known: dict[Hashable, Node] = {}
        self._notes, self._every_sign = notes, every_sign
        #: The places of sums and differences of which the negative is used, too.
        self.shared: set[int] = set()
        #: Of the nodes that are made from now on.
        self.site: int | None = None

    def node(self, operation: str, *arguments: Node, data: Hashable = None) -> Node:
        """The node of an operation, made if there is none; nothing is simplified."""
        key = (operation, *(a.index for a in arguments), data, is_negative_zero(data))
        found = self._known.get(key)
        if found is None:
            found = Node(operation, arguments, data, len(self.nodes))
            found.site = self.site
            self.nodes.append(found)
            self._known[key] = found
        return found

    def constant(self, value: float) -> Node:
        value = float(value)
        if value != value:  # NaN is unequal to itself, in keys too
            return self.node("constant", data="nan")
        return self.node("constant", data=value)

    def variable(self, array: int, component: int) -> Node:
        """A component of an input."""
        return self.node("variable", data=(array, component))

    # Numbers and truth values

    def number(self, x: Node) -> Node:
        """1 for true and 0 for false; a number is itself."""
        return self.node("where", x, *map(self.constant, (1, 0))) if x.operation in MASKS else x

    def truth(self, x: Node) -> Node:
        """Whether a number is not 0."""
        if x.operation in MASKS:
            return x
        value = constant_of(x)
        return self.not_(self.eq(x, self.constant(0))) if value is None else self._true(value != 0)

    def _true(self, value: bool) -> Node:
        return self.constant(float(value))

    # Arithmetic

    @_of_values
    def neg(self, x: Node) -> Node:
        x = self.number(x)
        value = constant_of(x)
        if value is not None:
            return self.constant(-value)
        if x.operation == "neg":
            return x.arguments[0]
        return self.node("neg", x)

    @_of_values
    def add(self, x: Node, y: Node) -> Node:
        x, y = self.number(x), self.number(y)
        a, b = constant_of(x), constant_of(y)
        if a is not None and b is not None:
            return self.constant(a + b)
        if a == 0:
            return y
        if b == 0:
            return x
        if y.operation == "neg" or (b is not None and b < 0):
            return self.sub(x, self.neg(y))
        if x.operation == "neg" or (a is not None and a < 0):
            return self.sub(y, self.neg(x))
        if x is y:
            return self.mul(self.constant(2), x)
        return self.node("add", *_ordered(x, y))

    @_of_values
    def sub(self, x: Node, y: Node) -> Node:
        x, y = self.number(x), self.number(y)
        a, b = constant_of(x), constant_of(y)
        if a is not None and b is not None:
            return self.constant(a - b)
        if a == 0:
            return self.neg(y)
        if b == 0:
            return x
        if y.operation == "neg" or (b is not None and b < 0):
            return self.add(x, self.neg(y))
        if x is y and not self._notes:
            return self.constant(0)
        if not self._every_sign:
            if x.operation == "neg" or (a is not None and a < 0):
                return self._negative(self.add(self.neg(x), y))
            if (other := self._known.get(("sub", y.index, x.index, None, False))) and x is not y:
                return self._negative(other)
        return self.node("sub", x, y)

    def _negative(self, total: Node) -> Node:
        """A sum or difference with the other signs: the negative of one that is used."""
        self.shared.add(total.index)
        return self.neg(total)

    @_of_values
    def mul(self, x: Node, y: Node) -> Node:
        x, y = self.number(x), self.number(y)
        if constant_of(y) is not None:
            x, y = y, x
        a, b = constant_of(x), constant_of(y)
        if a is not None:
            if b is not None:
                return self.constant(folding.product(a, b))
            if a == 0:
                return dropped.zero_times(self, self.constant(0), y) if self._notes else x
            if a == 1:
                return y
            if a < 0:
                return self.neg(self.mul(self.constant(-a), y))
        if x.operation == "neg":
            return self.neg(self.mul(x.arguments[0], y))
        if y.operation == "neg":
            return self.neg(self.mul(x, y.arguments[0]))
        if a is not None and y.operation == "mul":
            factor = constant_of(y.arguments[0])
            if is_usual(factor) and is_usual(a):
                return self.mul(self.constant(folding.product(a, factor)), y.arguments[1])
        if a is not None and y.operation == "div":
            divisor = constant_of(y.arguments[1])
            if is_usual(divisor) and is_usual(a):  # for `quotients`, which makes no node
                self.constant(folding.product(a, folding.quotient(1, divisor)))
        return self.node("mul", x, y) if a is not None else self.node("mul", *_ordered(x, y))

    @_of_values
    def div(self, x: Node, y: Node) -> Node:
        x, y = self.number(x), self.number(y)
        a, b = constant_of(x), constant_of(y)
        if a is not None and b is not None:
            return self.constant(folding.quotient(a, b))
        if a == 0:
            return dropped.zero_over(self, self.constant(0), y) if self._notes else x
        if b is not None and (is_usual(b) or b == 0):
            reciprocal = self.constant(folding.quotient(1, b))
            is_exact = b == 0 or abs(math.frexp(b)[0]) == 0.5
            if is_exact or not self._notes:  # `quotients` replaces others, if they decide nothing
                return self.mul(x, reciprocal)
        if x.operation == "neg" or (a is not None and a < 0):
            return self.neg(self.div(self.neg(x), y))
        if y.operation == "neg":
            return self.neg(self.div(x, y.arguments[0]))
        return self.node("div", x, y)

    def with_zero(self, name: str, x: Node, y: Node) -> Node:
        """A sum, difference, product or quotient of a number and a zero that a law writes.

        Nothing is left out: -0 + 0 is 0, and 0 times infinity is NaN.
        """
        x, y = (dropped.settled(self, self.number(z)) for z in (x, y))
        a, b = constant_of(x), constant_of(y)
        if a is not None and b is not None:
            return getattr(self, name)(x, y)  # type: ignore[no-any-return]
        zero = math.copysign(1, b if a is None else a)  # type: ignore[arg-type]
        if name == "add":
            other = y if b is None else x
            return other if zero < 0 else self.node("add", self.constant(0), other)
        if name == "sub":
            if a is None:
                return x if zero > 0 else self.node("add", self.constant(0), x)
            return self.neg(y) if zero < 0 else self.node("sub", x, y)
        if name == "mul":
            return self.node("mul", *((x, y) if b is None else (y, x)))
        return self.div(x, y) if a is None else self.node("div", x, y)

    def pow(self, x: Node, y: Node) -> Node:
        if constant_of(y) in (None, 0):  # 1 to the power of NaN is 1, and so is NaN to 0
            x, y = dropped.settled(self, x), dropped.settled(self, y)
        return self._pow(x, y)

    @_of_values
    def _pow(self, x: Node, y: Node) -> Node:
        x, y = self.number(x), self.number(y)
        a, b = constant_of(x), constant_of(y)
        if b == 0 or a == 1:
            return self.constant(1)
        if a is not None and b is not None:
            return self.constant(folding.power(a, b))
        if b is not None and abs(b) <= MOST_FACTORS and (2 * b).is_integer():
            return self._power(x, b)
        return self.node("pow", x, y)

    def _power(self, x: Node, exponent: float) -> Node:
        """Products for an integer exponent, times the root for half of an odd one."""
        if exponent < 0:
            return self.div(self.constant(1), self._power(x, -exponent))
        whole = math.floor(exponent)
        result = self.function("sqrt", x) if exponent != whole else None
        if result is not None and whole:  # of -infinity it is infinity, unlike the root
            infinite = self.eq(x, self.constant(-math.inf))
            if whole % 2 == 0:  # of -0 it is 0, unlike the root
                result = self.with_zero("add", result, self.constant(0))
            power = self.mul(result, self._power(x, whole))
            return self.where(infinite, self.constant(math.inf), power)
        square = x
        while whole:
            if whole & 1:
                result = square if result is None else self.mul(result, square)
            whole >>= 1
            if whole:
                square = self.mul(square, square)
        assert result is not None
        return result

    # Functions and choices

    def function(self, name: str, x: Node) -> Node:
        """One of folding.FUNCTIONS."""
        if name in folding.NUMBERS_OF_NAN:
            x = dropped.settled(self, x)
        value, lacks = dropped.parts(x)
        return dropped.lacking(self, self._function(name, self.number(value)), lacks)

    def _function(self, name: str, x: Node) -> Node:
        value = constant_of(x)
        if value is not None:
            return self.constant(folding.FUNCTIONS[name](value))
        if x.operation == "neg" and name in folding.ODD:
            return self.neg(self._function(name, x.arguments[0]))
        if x.operation == "neg" and name in folding.EVEN:
            x = x.arguments[0]
        if name == "abs" and x.operation in ("abs", "exp"):
            return x
        return self.node(name, x)

    def binary(self, name: str, x: Node, y: Node) -> Node:
        """One of folding.BINARY; a quotient is rounded once, whatever divides by the same."""
        x, y = (dropped.settled(self, self.number(z)) for z in (x, y))
        a, b = constant_of(x), constant_of(y)
        if a is not None and b is not None:
            return self.constant(folding.BINARY[name](a, b))
        return self.node(name, x, y)

    def gt(self, x: Node, y: Node) -> Node:
        return self._compare("gt", self.number(x), self.number(y))

    def ge(self, x: Node, y: Node) -> Node:
        return self._compare("ge", self.number(x), self.number(y))

    def eq(self, x: Node, y: Node) -> Node:
        return self._compare("eq", *_ordered(self.number(x), self.number(y)))

    def _compare(self, name: str, x: Node, y: Node) -> Node:
        x, y = dropped.settled(self, x), dropped.settled(self, y)
        a, b = constant_of(x), constant_of(y)
        if a is not None and b is not None:
            return self._true(folding.COMPARISONS[name](a, b))
        return self.node(name, x, y)

    def not_(self, x: Node) -> Node:
        x = self.truth(x)
        value = constant_of(x)
        if value is not None:
            return self._true(not value)
        return x.arguments[0] if x.operation == "not" else self.node("not", x)

    def and_(self, x: Node, y: Node) -> Node:
        x, y = self.truth(x), self.truth(y)
        for known, other in ((x, y), (y, x)):
            if constant_of(known) is not None:
                return other if constant_of(known) else known
        return x if x is y else self.node("and", *_ordered(x, y))

    def or_(self, x: Node, y: Node) -> Node:
        x, y = self.truth(x), self.truth(y)
        for known, other in ((x, y), (y, x)):
            if constant_of(known) is not None:
                return known if constant_of(known) else other
        return x if x is y else self.node("or", *_ordered(x, y))

    def where(self, condition: Node, x: Node, y: Node) -> Node:
        condition = self.truth(condition)
        value = constant_of(condition)
        if value is not None:
            return x if value else y
        if condition.operation == "not":
            condition, x, y = condition.arguments[0], y, x
        (x, of_x), (y, of_y) = dropped.parts(self.number(x)), dropped.parts(self.number(y))
        result = x if x is y else self.node("where", condition, x, y)
        lacks = dropped.chosen(self, condition, of_x, of_y)
        return result if lacks is None else dropped.lacking(self, result, lacks)

    @_of_values
    def greatest(self, x: Node, y: Node) -> Node:
        return self._extreme("greatest", self.number(x), self.number(y))

    @_of_values
    def least(self, x: Node, y: Node) -> Node:
        return self._extreme("least", self.number(x), self.number(y))

    def _extreme(self, name: str, x: Node, y: Node) -> Node:
        a, b = constant_of(x), constant_of(y)
        if a is not None and b is not None:
            return self.constant(getattr(folding, name)(a, b))
        return x if x is y else self.node(name, x, y)


def constant_of(x: Node) -> float | None:
    """The value of a constant, else None."""
    if x.operation == "lacking":
        x = x.arguments[0]
    return float(x.data) if x.operation == "constant" else None  # type: ignore[arg-type]


def is_negative_zero(value: object) -> bool:
    return isinstance(value, float) and value == 0 and math.copysign(1, value) < 0


def is_usual(value: float | None) -> TypeGuard[float]:
    """Whether products of two such constants neither overflow nor lose digits, in float32 too."""
    return value is not None and 1e-15 < abs(value) < 1e15


def _ordered(x: Node, y: Node) -> tuple[Node, Node]:
    return (x, y) if x.index <= y.index else (y, x)
