"""Sums and products in the order in which their terms are ready.

One point waits for its operations, one after the other, while most of a processor's units are idle.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

from neml2_capi.kernels.program import FREE, Program, Step
from neml2_capi.kernels.schedule import changing_steps

#: Cycles until a result is there, of processors of today, nearly; of all others _USUAL.
_CYCLES = {"sqrt": 20, "div": 14, "quotient": 14, "abs": 1, "neg": 1, "where": 2, "sign": 4}
_USUAL, _OF_A_CALL = 4, 60
_CALLS = frozenset({"pow", "exp", "log", "tanh", "sin", "cos", "sinh", "cosh", "expm1", "log1p"})


def ready_first(program: Program, unknowns: int) -> Program:
    """The same operations on other pairs of terms; values change by round-off.

    What depends on none of the first inputs, which are unknowns, is ready before. If there are no
    unknowns, all waits.
    """
    changing = changing_steps(program) if unknowns else bytearray(b"\1" * len(program.steps))
    steps: list[Step] = []
    ready: list[int] = []
    place: list[int] = []

    def new(step: Step, at: int) -> int:
        steps.append(step)
        ready.append(at)
        return len(steps) - 1

    for number, (name, arguments, data) in enumerate(program.steps):
        x = tuple(place[a] for a in arguments)
        if name not in ("sum", "product") or len(x) < 3 or not changing[number]:
            cycles = _CYCLES.get(name, _OF_A_CALL if name in _CALLS else _USUAL)
            at = max((ready[a] for a in x), default=0) + cycles
            place.append(new((name, x, data), at if changing[number] and name not in FREE else 0))
            continue
        signs = data or (1,) * len(x)
        terms = [(ready[a], n, s, a) for n, (a, s) in enumerate(zip(x, signs, strict=True))]
        heapq.heapify(terms)
        while len(terms) > 1:
            _, n, s, a = heapq.heappop(terms)
            at, m, t, b = heapq.heappop(terms)
            if s < t:
                s, a, t, b = t, b, s, a
            made = new((name, (a, b), (1, s * t) if data else None), at + _USUAL)
            heapq.heappush(terms, (at + _USUAL, min(n, m), s, made))
        at, _, sign, made = terms[0]
        place.append(made if sign > 0 else new(("neg", (made,), None), at))
    results = [[place[p] for p in places] for places in program.results]
    return replace(program, steps=steps, results=results, sites=None)
