"""Quotients by constants: products with the reciprocal, which may be the next number."""

from __future__ import annotations

from neml2_capi.kernels.decisions import decisive
from neml2_capi.kernels.folding import product, quotient
from neml2_capi.kernels.scalar import Node, Scalars, constant_of, is_usual


def replace_quotients(s: Scalars) -> None:
    """Make products of the quotients by constants on which no decision depends.

    `Scalars` made the constants before them. A product of one and a constant becomes one product.
    """
    decides = decisive([(x.operation, [a.index for a in x.arguments], x.data) for x in s.nodes])
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
