"""Decisions by the last bit: comparisons, whole numbers, and where a function is defined.

x / 49 is 1 if x is 49, and x * (1 / 49) is less. What a decision sees has the bits of the law.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

#: A name, the places of the arguments, and data.
_Step = tuple[str, Sequence[int], object]

#: Operations that decide by the last bit of an argument.
ROUNDINGS = frozenset({"floor", "round", "trunc", "fmod", "asin", "acos", "acosh", "atanh"})
#: The same and comparisons, which may decide by it.
DECIDE = ROUNDINGS | {"gt", "ge", "eq"}
#: A decision sees their arguments, although there are several.
_SUMS = frozenset({"where", "add", "sub"})


def decisive(steps: Sequence[_Step], by: frozenset[str] = DECIDE) -> bytearray:
    """1 for each step on which a decision depends."""
    found = bytearray(len(steps))
    for place, (name, arguments, _) in _last_first(steps):
        if found[place] or name in by:
            for argument in arguments:
                found[argument] = 1
    return found


def seen(steps: Sequence[_Step], by: frozenset[str] = DECIDE) -> bytearray:
    """1 for each step that a decision sees: itself, or what is made of it and constants alone.

    A term of a sum and a branch are seen, too. Products of several steps hide them: nearly all of
    a law of slip depends on each comparison, and would stay as it is.
    """
    found = bytearray(len(steps))
    for place, (name, arguments, _) in _last_first(steps):
        if name in by:
            shown = set(arguments)
        elif found[place]:
            shown = {a for a in arguments[name == "where" :] if steps[a][0] != "constant"}
            if len(shown) > 1 and name not in _SUMS:
                continue
        else:
            continue
        for argument in shown:
            found[argument] = 1
    return found


def _last_first(steps: Sequence[_Step]) -> Iterator[tuple[int, _Step]]:
    for place in range(len(steps) - 1, -1, -1):
        yield place, steps[place]
