"""The C text around the statements of a loop over sites: its head, its strips, its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from neml2_capi.kernels.emit import number
from neml2_capi.kernels.rolling import Loop

#: A loop that is cut into functions calls each for so many sites, or sites side by side.
STRIP = 4


class Tables:
    """Tables of places and of numbers, by site."""

    def __init__(self, single: bool) -> None:
        self._single = single
        self._names: dict[tuple[str, tuple[Any, ...]], str] = {}

    def index(self, places: Sequence[int], first: int) -> str:
        """The component of a site, by its number i."""
        step = places[1] - places[0]
        if all(b - a == step for a, b in pairwise(places)):
            start = places[0] - step * first
            sign = "-" if start < 0 else "+"
            by = "i" if step == 1 else f"{step} * i"
            return by if not start else f"{by} {sign} {abs(start)}"
        return f"{self.name('int32_t', tuple(places))}[i - {first}]"

    def name(self, kind: str, values: tuple[Any, ...]) -> str:
        key = kind, values
        if key not in self._names:
            self._names[key] = f"{'places' if kind == 'int32_t' else 'numbers'}_{len(self._names)}"
        return self._names[key]

    def lines(self) -> Iterator[str]:
        for (kind, values), name in self._names.items():
            texts = [str(v) if kind == "int32_t" else number(v, self._single).text for v in values]
            yield f"static const {kind} {name}[] = {{{', '.join(texts)}}};"
        yield ""


def behind(declared: Mapping[str, str], lines: Sequence[str]) -> list[str]:
    """Lines behind the declarations that they need."""
    return [*(d for name, d in declared.items() if any(f"{name}[" in x for x in lines)), *lines]


def repeated(lines: Sequence[str], loop: Loop | None, side_by_side: bool) -> list[str]:
    """Lines, for each site; the last sites side by side may be some of those before."""
    if not loop:
        return list(lines)
    first, last = loop.first, loop.last
    head = [f"  for (int i = {first}; i <= {last}; ++i) {{"]
    if side_by_side:
        head = [
            f"  for (int next = {first}; next <= {last}; next += LANES) {{",
            f"    const int i = next <= {last + 1} - LANES ? next : {last + 1} - LANES;",
        ]
    elif loop.backward:
        head = [f"  for (int i = {last}; i >= {first}; --i) {{"]
    return [*head, *(f"  {line}" for line in lines), "  }"]


def in_strips(calls: Sequence[str], shared: int, loop: Loop, side_by_side: bool) -> Iterator[str]:
    """Calls for some sites, one after the other: functions stay in the instruction cache."""
    last, step = loop.last, "LANES" if side_by_side else "1"
    yield f"  for (int strip = {loop.first}; strip <= {last}; strip += {STRIP} * {step}) {{"
    yield f"    const int end = strip + {STRIP} * {step};"
    for call in calls:
        yield f"    for (int next = strip; next <= {last} && next < end; next += {step}) {{"
        if side_by_side:
            yield f"      const int i = next <= {last + 1} - LANES ? next : {last + 1} - LANES;"
        else:
            yield "      const int i = next;"
        yield f"    {call} + (next - strip) / {step} * {shared});"
        yield "    }"
    yield "  }"
