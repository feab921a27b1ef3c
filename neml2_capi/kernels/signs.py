"""Whether a graph tells 0 from -0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from neml2_capi.kernels.scalar import Node

#: Arguments that decide a result by their sign if they vanish: 1 / -0 is negative.
_SEEN = {"div": (1,), "quotient": (1,), "pow": (0,), "atan2": (0, 1), "copysign": (1,)}
#: Arguments that hand their sign on if they vanish. Terms of a sum do not: it vanishes as 0.
_PASSED_ON = {
    **dict.fromkeys(("mul", "div", "quotient", "greatest", "least", "fmod"), (0, 1)),
    **dict.fromkeys(("neg", "sqrt", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh"), (0,)),
    **dict.fromkeys(("atanh", "expm1", "log1p", "erf", "floor", "round", "trunc", "pow"), (0,)),
    "atan2": (0,),
    "where": (1, 2),
}


def sees(nodes: Sequence[Node], differences: Iterable[int]) -> bool:
    """Tell whether the sign of a difference that vanishes decides what another operation gives."""
    sought, seen = set(differences), set[int]()
    waiting = [x.arguments[k] for x in nodes for k in _SEEN.get(x.operation, ())] if sought else []
    while waiting:
        x = waiting.pop()
        if x.index in sought:
            return True
        if x.index not in seen:
            seen.add(x.index)
            waiting.extend(x.arguments[k] for k in _PASSED_ON.get(x.operation, ()))
    return False
