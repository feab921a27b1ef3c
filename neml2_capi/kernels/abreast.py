"""Loops for one point: sites side by side in lanes, if no site needs another one.

A loop is divided into pieces, each a loop of its own over all sites: steps that need no other site
of the loop go side by side, and what goes on from site to site, a sum or a sweep, is computed for
one site after the other, as in the loop for points (loop distribution: Kuck et al., Dependence
Graphs and Compiler Optimizations, 1981). All operations stay as they are, and so do their bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from neml2_capi.kernels.components import components
from neml2_capi.kernels.parts import Part, is_of_site
from neml2_capi.kernels.program import FREE, cost
from neml2_capi.kernels.rolling import Loop
from neml2_capi.kernels.scalar import MASKS

#: Loops over fewer sites do not go side by side: no target of doubles has more lanes.
LEAST_SIDE_BY_SIDE = 8
#: Lanes, and what it takes to gather a number and to write it to all lanes: for the decision alone.
_LANES, _GATHER, _SPREAD = 4, 1.25, 2.0
#: The most of a loop's time that pays.
MOST_TIME = 0.8


def divided(part: Part, loop: Loop) -> tuple[list[Part], int]:
    """The pieces of a loop in order, and how many numbers they hand on, in rows of all sites.

    There are no pieces if they would take as long as the loop.
    """
    sites = loop.last - loop.first + 1
    if sites < LEAST_SIDE_BY_SIDE:
        return [], 0
    program, level = part.program, _levels(part)
    width = width_of_row(sites)
    crossing = dict.fromkeys(
        argument
        for place, (name, arguments, _) in enumerate(program.steps)
        for argument in arguments
        if program.steps[argument][0] not in FREE and level[argument] < level[place]
    )
    rows = {p: f"rows[{k * width - loop.first} + i]" for k, p in enumerate(crossing)}
    computed = {level[p] for p, step in enumerate(program.steps) if step[0] not in FREE}
    pieces = {number: Part(part.single) for number in sorted(computed | {max(level, default=0)})}

    def known(place: int, at: int) -> int:
        """An argument in the piece of a level."""
        piece, (name, _, data) = pieces[at], program.steps[place]
        if place in piece.known:
            return piece.known[place]
        if name == "constant":
            return piece.step(place, program.steps[place])
        load = part.loads[data[1]] if name == "variable" else (rows[place], name in MASKS)
        return piece.add(place, *load)

    for place, (name, arguments, data) in enumerate(program.steps):
        if name not in FREE:
            at = level[place]
            taken = tuple(known(argument, at) for argument in arguments)
            pieces[at].step(place, (name, taken, data))
    for place, targets in part.writes.items():
        at = min(number for number in pieces if number >= level[place])
        known(place, at)
        pieces[at].write(place, [*targets, *([rows[place]] if place in rows else [])])
    for place, text in rows.items():
        if place not in part.writes:
            pieces[level[place]].write(place, [text])
    for at, piece in pieces.items():
        piece.is_side_by_side = at % 2 == 0
        piece.carried = {} if piece.is_side_by_side else part.carried
        piece.finish(simplify=False)
    if _time(list(pieces.values())) > MOST_TIME * _time([part]):
        return [], 0
    return list(pieces.values()), len(rows) * width


def width_of_row(sites: int) -> int:
    """Numbers of a row: no power of 2, by which rows would drive each other out of the cache."""
    return -(-sites // 8) * 8 | 8


def _levels(part: Part) -> list[int]:
    """The piece of each step: an even number if sites do not need each other, else an odd one."""
    steps = part.program.steps
    needs = {place: list(arguments) for place, (_, arguments, _) in enumerate(steps)}
    carried: dict[int, int] = {}  # loads of what another site makes
    for place, (name, _, data) in enumerate(steps):
        key = part.carried.get(part.loads[data[1]][0]) if name == "variable" else None
        if key is not None:
            carried[place] = part.place[key]
            needs[place] = [part.place[key]]
    level = [0] * len(steps)
    for group in components(needs):
        inside = set(group)
        recurs = any(need in inside for place in group for need in needs[place])
        after = [
            level[need] + (2 - level[need] % 2 if place in carried and not recurs else 0)
            for place in group
            for need in needs[place]
            if need not in inside
        ]
        own = max(after, default=0)
        own += (own % 2 == 0) if recurs else (own % 2)
        for place in group:
            level[place] = own
    return level


def _time(pieces: Sequence[Part]) -> float:
    """The estimated time of a site: operations, loads and stores."""
    total = 0.0
    for piece in pieces:
        texts = [text for text, _ in piece.loads]
        targets = [target for of_one in piece.writes.values() for target in of_one]
        operations = sum(cost(step) for step in piece.program.steps)
        if not piece.is_side_by_side:
            total += operations + len(texts) + len(targets)
            continue
        gathered = sum(is_of_site(t) and not t.startswith("rows") for t in texts)
        spread = sum(not t.startswith("rows") for t in targets)
        others = len(texts) - gathered + len(targets) - spread
        total += (operations + others) / _LANES + _GATHER * gathered + _SPREAD * spread
    return total
