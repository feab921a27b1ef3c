"""Loops over sites, found in the operations of a graph.

Operations of one form at many sites are a family. Families become statements of loops: an operand
is another family at the same site or at one a fixed distance away, a component of an array, a
number from a table, or what all sites share. Sites at the ends, which lack a neighbour, stay as
they are. Loops are fused if no statement needs a later site of another one (typed fusion: Kennedy
and McKinley, Maximizing Loop Parallelism and Improving Data Locality, 1993).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from neml2_capi.kernels.labels import Origin
from neml2_capi.kernels.program import FREE, Program

#: Fewer sites are written out.
LEAST_REPEATED = 6

#: Sites of a range that a family may lack.
_MOST_LACKED = 2

_COMMUTATIVE = frozenset({"add", "mul", "and", "or", "eq"})


class Fixed(NamedTuple):
    """What all sites share: a step."""

    place: int


class Components(NamedTuple):
    """A component of an input for each site."""

    array: int
    places: tuple[int, ...]


class Numbers(NamedTuple):
    """A constant for each site."""

    values: tuple[Any, ...]


class Neighbour(NamedTuple):
    """A family, at the site that is so far away."""

    family: int
    distance: int


Operand = Fixed | Components | Numbers | Neighbour


@dataclass
class Family:
    """A statement of a loop."""

    #: From its first site to the last.
    members: list[int]
    first: int
    name: str
    data: Any
    operands: list[Operand] = field(default_factory=list)


@dataclass
class Loop:
    """Statements that are repeated for each site; each follows its operands."""

    families: list[int]
    first: int
    last: int
    #: From the last site to the first.
    backward: bool = False


@dataclass
class Rolled:
    """Loops, and steps between them, in order."""

    program: Program
    families: list[Family]
    #: Each is a loop, or steps that are written out.
    parts: list[Loop | list[int]]
    #: By family: values at sites outside the loops that a neighbour needs, by site.
    edges: dict[int, dict[int, int]]


#: A family to be: its first site, and its members from there on.
_Chosen = tuple[int, list[int]]


def rolled(program: Program, origins: Sequence[Sequence[Origin]]) -> Rolled | None:
    """The loops of a program whose `sites` are known; None if there are none.

    Parameters
    ----------
    program : Program
        As it was traced or derived, with operations of two operands.
    origins : Sequence[Sequence[Origin]]
        By input: what each component is, and its site.
    """
    found = _Families(program, origins)
    chosen = found.chosen()
    while chosen:
        trial = _Trial(program, chosen)
        unfit = trial.unfit()
        if not unfit:
            return trial.rolled()
        chosen = [family for number, family in enumerate(chosen) if number not in unfit]
    return None


class _Families:
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
            if name in _COMMUTATIVE:
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

    def chosen(self) -> list[_Chosen]:
        """Families on ranges of sites: on the range that holds most steps first, then beside it.

        Families that lack few of these sites, as a sum lacks the first, have a range of their own.
        """
        runs = [members for members in self._members if len(members) >= LEAST_REPEATED]
        found: list[_Chosen] = []
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


class _Trial:
    """Families as loops: which of them do not fit, or the loops."""

    def __init__(self, program: Program, chosen: Sequence[_Chosen]) -> None:
        self._program = program
        steps = program.steps
        self._families = [
            Family(members, first, steps[members[0]][0], steps[members[0]][2])
            for first, members in chosen
        ]
        #: Of a step in a loop: its family and its site.
        self._home: dict[int, tuple[int, int]] = {
            place: (number, family.first + k)
            for number, family in enumerate(self._families)
            for k, place in enumerate(family.members)
        }
        self._edges: dict[int, dict[int, int]] = defaultdict(dict)
        self._unfit = {n for n, family in enumerate(self._families) if not self._understand(family)}

    def _understand(self, family: Family) -> bool:
        """Describe all operands of a family, if that is possible."""
        steps = self._program.steps
        rows = [self._arguments(place) for place in family.members]
        if family.name in _COMMUTATIVE:
            rows = self._aligned(rows, family.first)
        for column in zip(*rows, strict=True):
            operand = self._operand(column, family.first)
            if operand is None:
                return False
            family.operands.append(operand)
        return all(
            steps[m][0] == family.name and steps[m][2] == family.data for m in family.members
        )

    def _arguments(self, place: int) -> tuple[int, ...]:
        return self._program.steps[place][1]

    def _aligned(self, rows: list[tuple[int, ...]], first: int) -> list[tuple[int, ...]]:
        """Operands that commute, in the order of the middle site."""
        middle = rows[len(rows) // 2]
        site = first + len(rows) // 2
        wanted = tuple(self._sort(a, site) for a in middle)
        if wanted[0] == wanted[1]:
            return rows
        made: list[tuple[int, ...]] = []
        for k, (x, y) in enumerate(rows):
            own = self._sort(x, first + k), self._sort(y, first + k)
            turned = own != wanted and (own[0] == wanted[1] or own[1] == wanted[0])
            made.append((y, x) if turned else (x, y))
        return made

    def _sort(self, place: int, site: int) -> Any:
        name, _, data = self._program.steps[place]
        if place in self._home:
            family, own = self._home[place]
            return family, own - site
        if name == "variable":
            return name, data[0]
        return name if name == "constant" else ("step", place)

    def _operand(self, column: Sequence[int], first: int) -> Operand | None:
        steps, places = self._program.steps, set(column)
        if len(places) == 1:
            return Fixed(column[0])
        names = {steps[p][0] for p in places}
        if names == {"constant"}:
            return Numbers(tuple(steps[p][2] for p in column))
        if names == {"variable"}:
            arrays = {steps[p][2][0] for p in places}
            if len(arrays) > 1:
                return None
            return Components(arrays.pop(), tuple(steps[p][2][1] for p in column))
        middle = column[len(column) // 2]
        if middle not in self._home:
            return None
        family, site = self._home[middle]
        distance = site - first - len(column) // 2
        found: dict[int, int] = {}
        for k, place in enumerate(column):
            at = first + k + distance
            if self._home.get(place) == (family, at):
                continue
            if 0 <= at - self._families[family].first < len(self._families[family].members):
                return None
            if self._edges.get(family, {}).get(at, place) != place:
                return None
            found[at] = place
        if found:
            self._edges[family].update(found)
        return Neighbour(family, distance)

    def unfit(self) -> set[int]:
        """Families that cannot be in loops."""
        if self._unfit:
            return self._unfit
        self._graph()
        for group in components(self._needs):
            if len(group) == 1 and group[0] not in self._needs[group[0]]:
                continue
            families = {-1 - node for node in group if node < 0}
            ranges = {self._range(number) for number in families}
            if len(families) < len(group) or len(ranges) > 1 or self._direction(families) is None:
                self._unfit |= families
        return self._unfit

    def _graph(self) -> None:
        """What each step (by its place) and each family (by -1 - its number) needs."""
        self._needs: dict[int, list[int]] = {}
        wanted = [place for places in self._program.results for place in places]
        seen = set()
        for number, family in enumerate(self._families):
            needs: dict[int, None] = {}
            for operand in family.operands:
                if isinstance(operand, Fixed):
                    needs[self._node(operand.place)] = None
                elif isinstance(operand, Neighbour):
                    needs[-1 - operand.family] = None
                    edges = self._edges.get(operand.family, {})
                    needs.update(dict.fromkeys(map(self._node, edges.values())))
            self._needs[-1 - number] = list(needs)
        for edges in self._edges.values():
            wanted += edges.values()
        wanted += [node for needs in self._needs.values() for node in needs if node >= 0]
        while wanted:
            place = wanted.pop()
            if place in seen or place in self._home:
                continue
            seen.add(place)
            arguments = self._arguments(place)
            self._needs[place] = [self._node(a) for a in arguments]
            wanted.extend(arguments)

    def _node(self, place: int) -> int:
        return -1 - self._home[place][0] if place in self._home else place

    def _direction(self, families: set[int]) -> bool | None:
        """Whether a loop of families that need each other runs backward; None if it cannot run."""
        distances = [
            operand.distance
            for number in families
            for operand in self._families[number].operands
            if isinstance(operand, Neighbour) and operand.family in families
        ]
        fixed = any(
            isinstance(operand, Fixed) and self._node(operand.place) in {-1 - f for f in families}
            for number in families
            for operand in self._families[number].operands
        )
        if fixed or (min(distances) < 0 < max(distances)):
            return None
        return max(distances) > 0

    def rolled(self) -> Rolled:
        groups = components(self._needs)
        loops: list[tuple[int, bool | None, list[int]]] = []  # time, backward, families
        time: dict[int, int] = {}
        straight: dict[int, list[int]] = defaultdict(list)
        for group in groups:
            if group[0] >= 0:
                (place,) = group
                if self._program.steps[place][0] in FREE:
                    time[place] = -1
                    continue
                after = [time[n] for n in self._needs[place]]
                earliest = max(after, default=-1)
                time[place] = max(earliest + 1 if earliest % 2 == 0 else earliest, 1)
                straight[time[place]].append(place)
            else:
                self._place_group(group, time, loops)
        parts: list[tuple[int, Loop | list[int]]] = [(t, sorted(p)) for t, p in straight.items()]
        parts += [(t, Loop(sorted(f), *self._range(f[0]), bool(back))) for t, back, f in loops]
        ordered = [part for _, part in sorted(parts, key=lambda p: p[0])]
        edges = {number: dict(of) for number, of in self._edges.items() if of}
        return Rolled(self._program, self._families, ordered, edges)

    def _operands_at_edges(self, number: int) -> set[int]:
        """Families of which a family takes single values, from behind the end of another one."""
        return {
            self._home[place][0]
            for operand in self._families[number].operands
            if isinstance(operand, Neighbour)
            for place in self._edges.get(operand.family, {}).values()
            if place in self._home
        }

    def _range(self, number: int) -> tuple[int, int]:
        """The first and the last site of a family."""
        family = self._families[number]
        return family.first, family.first + len(family.members) - 1

    def _place_group(
        self,
        group: list[int],
        time: dict[int, int],
        loops: list[tuple[int, bool | None, list[int]]],
    ) -> None:
        """Put families that need each other into the first loop that may hold them."""
        families = {-1 - node for node in group}
        recurs = len(families) > 1 or group[0] in self._needs[group[0]]
        own = self._direction(families) if recurs else None
        earliest = 2
        limits: list[tuple[int, int]] = []  # of operands in loops: the time, the distance
        for number in families:
            for node in self._needs[-1 - number]:
                if node >= 0:
                    earliest = max(earliest, time[node] + 1)
            for of in self._operands_at_edges(number):
                earliest = max(earliest, time[-1 - of] + 2)
            for operand in self._families[number].operands:
                if isinstance(operand, Fixed) and operand.place in self._home:
                    earliest = max(earliest, time[self._node(operand.place)] + 2)
                elif isinstance(operand, Neighbour) and operand.family not in families:
                    limits.append((time[-1 - operand.family], operand.distance))

        def fits(at: int, backward: bool | None) -> bool:
            return all(
                t < at or (t == at and (d == 0 or (backward is not None and (d > 0) == backward)))
                for t, d in limits
            )

        for index, (at, backward, inside) in enumerate(loops):
            if at < earliest or self._range(inside[0]) != self._range(-1 - group[0]):
                continue
            if own is not None and backward is not None and own != backward:
                continue
            chosen = backward if own is None else own
            here = [d for t, d in limits if t == at and d]
            if chosen is None and here:
                chosen = here[0] > 0
            if fits(at, chosen):
                inside.extend(families)
                loops[index] = (at, chosen, inside)
                break
        else:
            behind = [t for t, _ in (*limits, *((at, 0) for at, _, _ in loops))]
            at = max([earliest + earliest % 2, *(t + 2 for t in behind)])
            loops.append((at, own, list(families)))
        for number in families:
            time[-1 - number] = at


def components(needs: dict[int, list[int]]) -> list[list[int]]:
    """Strongly connected components, each behind all that it needs (Tarjan, 1972)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    found: list[list[int]] = []
    for root in needs:
        if root in number:
            continue
        work: list[tuple[int, Iterator[int]]] = [(root, iter(needs[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for other in successors:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(needs[other])))
                    break
                if other in on_stack:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    group = []
                    while True:
                        other = stack.pop()
                        on_stack.discard(other)
                        group.append(other)
                        if other == node:
                            break
                    found.append(group)
    return found
