"""Loops over sites, found in the operations of a graph.

Operations of one form at many sites are a family. Families become statements of loops: an operand
is another family at the same site or at one a fixed distance away, a component of an array, a
number from a table, or what all sites share. Sites at the ends, which lack a neighbour, stay as
they are. Loops are fused if no statement needs a later site of another one (typed fusion: Kennedy
and McKinley, Maximizing Loop Parallelism and Improving Data Locality, 1993).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from neml2_capi.kernels.components import components
from neml2_capi.kernels.families import COMMUTATIVE, Chosen, Families
from neml2_capi.kernels.labels import Origin
from neml2_capi.kernels.program import FREE, Program


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


def rolled(program: Program, origins: Sequence[Sequence[Origin]]) -> Rolled | None:
    """The loops of a program whose `sites` are known; None if there are none.

    Parameters
    ----------
    program : Program
        As it was traced or derived, with operations of two operands.
    origins : Sequence[Sequence[Origin]]
        By input: what each component is, and its site.
    """
    found = Families(program, origins)
    chosen = found.chosen()
    while chosen:
        trial = _Trial(program, chosen)
        unfit = trial.unfit()
        if not unfit:
            return trial.rolled()
        chosen = [family for number, family in enumerate(chosen) if number not in unfit]
    return None


class _Trial:
    """Families as loops: which of them do not fit, or the loops."""

    def __init__(self, program: Program, chosen: Sequence[Chosen]) -> None:
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
        if family.name in COMMUTATIVE:
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
