"""Quotients by constants: products with the reciprocal, which may be the next number.

A branch, a whole number, or whether a function is defined may hang on the last bit: x / 49 is 1 if
x is 49, and x * (1 / 49) is less. What decides such things is divided.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from neml2_capi.kernels.folding import product, quotient
from neml2_capi.kernels.scalar import Node, Scalars, constant_of, is_usual

#: Operations that decide by the last bit of an argument.
ROUNDINGS = frozenset({"floor", "round", "trunc", "fmod", "asin", "acos", "acosh", "atanh"})
#: The same and comparisons, which may decide by it.
_DECIDE = ROUNDINGS | {"gt", "ge", "eq"}


def decisive(
    steps: Sequence[tuple[str, Sequence[int]]], by: Collection[str] = _DECIDE
) -> bytearray:
    """1 for each step, of a name and the places of its arguments, on which a decision depends."""
    found = bytearray(len(steps))
    for place in range(len(steps) - 1, -1, -1):
        name, arguments = steps[place]
        if found[place] or name in by:
            for argument in arguments:
                found[argument] = 1
    return found


def replace_quotients(s: Scalars) -> None:
    """Make products of the quotients by constants on which no decision depends.

    `Scalars` made the constants before them. A product of one and a constant becomes one product.
    """
    decides = decisive([(x.operation, [a.index for a in x.arguments]) for x in s.nodes])
    made: set[Node] = set()
    for x in s.nodes:
        if x.operation == "div" and not decides[x.index]:
            over, under = x.arguments
            divisor = constant_of(under)
            if is_usual(divisor):
                x.operation, x.arguments = "mul", (s.constant(quotient(1, divisor)), over)
                made.add(x)
        elif x.operation == "mul" and x.arguments[1] in made:
            a, (factor, over) = x.arguments[0], x.arguments[1].arguments
            value = constant_of(a)
            if is_usual(value):
                x.arguments = (
                    s.constant(product(value, float(factor.data))),  # type: ignore[arg-type]
                    over,
                )
