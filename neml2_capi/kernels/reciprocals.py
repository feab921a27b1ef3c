"""Quotients by one number as products with its reciprocal."""

from __future__ import annotations

import math
from collections import Counter

from neml2_capi.kernels.decisions import DECIDE, ROUNDINGS, decisive, seen
from neml2_capi.kernels.program import Program
from neml2_capi.kernels.rebuilt import Rebuilt

#: By type: the reciprocal of a larger number is a normal one; so are products of constants.
_NORMAL = {"float64": 1e-300, "float32": 1e-30}


def with_reciprocals(program: Program) -> Rebuilt:
    """x / z and more as products with 1 / z, if three or more are divided by one z.

    Quotients on which whole numbers depend stay, and those that a comparison sees.
    z is scaled first, since the reciprocal of a subnormal number is infinite, unless it is a norm
    that is never so small.
    """
    least = _least_values(program)
    rounded = decisive(program.steps, ROUNDINGS)
    compared = seen(program.steps, DECIDE | {"sign"})
    divisors = [
        arguments[1] if name == "div" and not rounded[p] and not compared[p] else -1
        for p, (name, arguments, _) in enumerate(program.steps)
    ]
    divisions = Counter(under for under in divisors if under >= 0)
    rebuilt = Rebuilt(program)
    reciprocals: dict[int, tuple[int, int]] = {}
    normal: dict[int, int] = {}
    one: int | None = None
    for place, (_, arguments, data) in enumerate(program.steps):
        under = divisors[place]
        if divisions[under] < 3:
            rebuilt.keep(place)
            continue
        if one is None:
            one = rebuilt.new(("constant", (), 1.0))
        over = rebuilt.place[arguments[0]]
        if least[under] >= _NORMAL[program.real]:
            if under not in normal:
                normal[under] = rebuilt.new(("div", (one, rebuilt.place[under]), None))
            by = normal[under]
            is_one = program.steps[arguments[0]] == ("constant", (), 1.0)
            rebuilt.place[place] = by if is_one else rebuilt.new(("mul", (over, by), None))
            continue
        if under not in reciprocals:
            scale = rebuilt.new(("scale", (rebuilt.place[under],), None))
            scaled = rebuilt.new(("mul", (rebuilt.place[under], scale), None))
            reciprocals[under] = rebuilt.new(("div", (one, scaled), None)), scale
        factors = (over, *reciprocals[under])
        rebuilt.place[place] = rebuilt.new(("times both", factors, data))
    return rebuilt


def _least_values(program: Program) -> list[float]:
    """By step: what it is never less than, if it is a number."""
    found: list[float] = []
    for name, arguments, data in program.steps:
        x = [found[argument] for argument in arguments]
        least = -math.inf
        if name == "constant" and data != "nan":
            least = float(data)
        elif name == "mul" and (arguments[0] == arguments[1] or min(x) >= 0):
            least = 0.0 if arguments[0] == arguments[1] else x[0] * x[1]
        elif name == "add":
            least = x[0] + x[1]
        elif name == "sqrt":
            least = math.sqrt(max(x[0], 0.0))
        elif name in ("abs", "exp"):
            least = 0.0
        found.append(least)
    return found
