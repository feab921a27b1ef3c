"""Families: operations of one form at many sites, found in a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from neml2_capi.kernels.labels import Origin
from neml2_capi.kernels.program import Program

#: Fewer sites are written out.
LEAST_REPEATED = 6

#: Sites of a range that a family may lack.
_MOST_LACKED = 2

COMMUTATIVE = frozenset({"add", "mul", "and", "or", "eq"})


#: A family to be: its first site, and its members from there on.
Chosen = tuple[int, list[int]]


class Families:
    """Steps of one form, by site."""

    def __init__(self, program: Program, origins: Sequence[Sequence[Origin]]) -> None:
        self._members: list[dict[int, int]] = []
        sites = program.sites or []
        known: dict[Any, int] = {}
        seen: Counter[tuple[int, int]] = Counter()
        family = [-1] * len(program.steps)
        descriptors: list[Any] = [None] * len(program.steps)
        for place, (name, arguments, data) in enumerate(program.steps):
            if name == "constant":
                descriptors[place] = "number"
                continue
            if name == "variable":
                what, site = origins[data[0]][data[1]]
                descriptors[place] = (data[0], what, site)
                continue
            site = sites[place]
            if site is None:
                continue
            form = [self._form(a, site, sites, family, descriptors, program) for a in arguments]
            if name in COMMUTATIVE:
                form.sort(key=repr)
            key = known.setdefault((name, data, *form), len(known))
            rank = seen[key, site]
            seen[key, site] += 1
            number = known.setdefault((key, rank), len(known))
            while len(self._members) <= number:
                self._members.append({})
            self._members[number][site] = place
            family[place] = number

    @staticmethod
    def _form(
        argument: int,
        site: int,
        sites: Sequence[int | None],
        family: Sequence[int],
        descriptors: Sequence[Any],
        program: Program,
    ) -> Any:
        described = descriptors[argument]
        if described is not None:
            if described == "number" or described[2] is None:
                return described
            return (*described[:2], described[2] - site)
        own = sites[argument]
        if own is None:
            return ("shared", argument)
        if own == site:
            return ("family", family[argument])
        return ("neighbour", program.steps[argument][0], own - site)

    def chosen(self) -> list[Chosen]:
        """Families on ranges of sites: on the range that holds most steps first, then beside it.

        Families that lack few of these sites, as a sum lacks the first, have a range of their own.
        """
        runs = [members for members in self._members if len(members) >= LEAST_REPEATED]
        found: list[Chosen] = []
        waiting = [(0, max((max(members) for members in runs), default=-1))]
        while waiting:
            begin, end = waiting.pop()
            span = self._best(runs, begin, end)
            if span is None:
                continue
            first, last = span
            for members in runs:
                run = _longest_run([s for s in sorted(members) if first <= s <= last])
                if run and run[1] - run[0] >= max(last - first - _MOST_LACKED, LEAST_REPEATED - 1):
                    found.append((run[0], [members[s] for s in range(run[0], run[1] + 1)]))
            waiting += [(begin, first - 1), (last + 1, end)]
        return sorted(found, key=lambda family: family[1][len(family[1]) // 2])

    @staticmethod
    def _best(runs: Sequence[dict[int, int]], begin: int, end: int) -> tuple[int, int] | None:
        """The range within these sites on which most steps are in families."""
        if end - begin + 1 < LEAST_REPEATED:
            return None
        spans = Counter(
            run
            for members in runs
            if (run := _longest_run([site for site in sorted(members) if begin <= site <= end]))
        )
        firsts = sorted({a for a, _ in spans})
        lasts = sorted({b for _, b in spans})

        def covered(first: int, last: int) -> int:
            fit = sum(n for (a, b), n in spans.items() if a <= first and b >= last)
            return fit * (last - first + 1) if last - first + 1 >= LEAST_REPEATED else 0

        ranges = [(a, b) for a in firsts[:40] for b in lasts[-40:]]
        best = max(ranges, key=lambda r: covered(*r), default=None)
        return best if best and covered(*best) else None


def _longest_run(sites: Sequence[int]) -> tuple[int, int] | None:
    """The longest range without a gap."""
    best = begin = None
    for site in sites:
        begin = (begin[0], site) if begin and site == begin[1] + 1 else (site, site)
        best = begin if not best or begin[1] - begin[0] > best[1] - best[0] else best
    return best
