"""Operations of one point side by side in a vector.

A block whose lanes hold one point computes each number as often as there are lanes. Here sums of
products whose terms share factors, as entries of one column in an elimination do, become lanes of
one vector instead (superword-level parallelism: Larsen and Amarasinghe, PLDI 2000). No operation
changes, so that all bits stay.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from neml2_capi.kernels.program import FREE, Program, Step, live

#: Numbers in a vector.
LANES = 4
#: Fewer common terms of sums do not pay for a vector.
_LEAST_TERMS = 2
#: Sums that are compared with one.
_MOST_ALIKE = 64

#: Steps whose numbers lie in one vector.
_Lanes = tuple[int, ...]


def packed(program: Program) -> Program | None:
    """The same program with vectors of several numbers, in an order in which few wait.

    Two operations are new: ("pack", numbers, None) makes a vector of LANES numbers, and ("lane",
    (vector,), k) is its number k. All others do to vectors what they do to numbers. None if vectors
    save less than a twentieth of the operations.
    """
    level = _levels(program)
    groups = _Groups(program, level).found
    if 20 * sum(group.saved for group in groups) <= program.operations:
        return None
    return _Rewritten(program, level, groups).program()


def _levels(program: Program) -> list[int]:
    """By step: how many others it waits for, one after the other."""
    levels: list[int] = []
    for name, arguments, _ in program.steps:
        levels.append(0 if name in FREE else 1 + max((levels[a] for a in arguments), default=0))
    return levels


@dataclass(frozen=True)
class _Group:
    """Sums whose first terms are lanes of one vector."""

    sums: _Lanes
    #: The first terms, and the factors of the products after them that differ.
    columns: list[_Lanes]
    #: The factors that all sums share, by product.
    shared: list[int]
    saved: int


class _Groups:
    """The groups of a program. What their vectors need comes before all of their sums."""

    def __init__(self, program: Program, level: Sequence[int]) -> None:
        self._steps, self._level = program.steps, level
        self._uses = Counter(a for _, arguments, _ in program.steps for a in arguments)
        self._taken: set[int] = set()
        #: By number: the vectors that have it, once they are made.
        self._vectors: dict[int, list[_Lanes]] = defaultdict(list)
        self.found: list[_Group] = []
        sums = [p for p in range(len(self._steps)) if self._products(p) >= _LEAST_TERMS]
        sums.sort(key=lambda p: (level[p], p))
        by_factor: dict[int, list[int]] = defaultdict(list)
        for place in sums:
            for factor in self._factors(place, 1):
                by_factor[factor].append(place)
        for place in sums:
            if place in self._taken:
                continue
            trials = [
                self._rated(lanes)
                for factor in self._factors(place, 1)
                for lanes in self._trials(place, factor, by_factor[factor])
            ]
            best = max(trials, key=lambda group: group.saved, default=None)
            if best and best.saved > 0:
                self._take(best)

    def _products(self, place: int) -> int:
        """How many products of two factors follow the first term of a sum."""
        name, arguments, data = self._steps[place]
        if name != "sum" or data[0] < 0:
            return 0
        for count, argument in enumerate(arguments[1:]):
            inner = self._steps[argument]
            if inner[0] != "product" or len(inner[1]) != 2:
                return count
        return len(arguments) - 1

    def _factors(self, place: int, term: int) -> set[int]:
        return {*self._steps[self._steps[place][1][term]][1]}

    def _other(self, place: int, term: int, factor: int) -> int:
        x, y = self._steps[self._steps[place][1][term]][1]
        return y if x == factor else x

    def _trials(self, place: int, factor: int, sums: Sequence[int]) -> list[_Lanes]:
        """Sums whose first products share a factor: in the order of a vector, or the most alike."""
        free = {self._other(p, 1, factor): p for p in sums if p not in self._taken}
        trials = [
            tuple(free[number] for number in vector)
            for vector in self._vectors[self._other(place, 1, factor)]
            if all(number in free for number in vector)
        ]
        others = [p for p in free.values() if p != place][:_MOST_ALIKE]
        others.sort(key=lambda p: (-len(self._shared((place, p))), p))
        if len(others) >= LANES - 1:
            trials.append(tuple(sorted([place, *others[: LANES - 1]])))
        return trials

    def _shared(self, sums: _Lanes) -> list[int]:
        """The factors that the first products of sums share."""
        shared: list[int] = []
        for term in range(1, min(self._products(p) for p in sums) + 1):
            both = set.intersection(*(self._factors(p, term) for p in sums))
            if len(both) != 1 or len({self._steps[p][2][term] for p in sums}) > 1:
                break
            shared.append(both.pop())
        return shared

    def _rated(self, sums: _Lanes) -> _Group:
        first = min(self._level[p] for p in sums)
        shared = self._shared(sums)
        columns = [tuple(self._steps[p][1][0] for p in sums)]
        for term, factor in enumerate(shared, 1):
            columns.append(tuple(self._other(p, term, factor) for p in sums))
        late = [max(self._level[p] for p in column) >= first for column in columns]
        late = [a or self._level[b] >= first for a, b in zip(late[1:], shared, strict=True)]
        count = late.index(True) if True in late else len(late)
        if count < _LEAST_TERMS or max(self._level[p] for p in columns[0]) >= first:
            return _Group(sums, [], [], 0)
        columns, shared = columns[: count + 1], shared[:count]
        # To make a vector of numbers takes an operation each, but serves other sums, too.
        new = {c for c in columns[1:] if c not in self._vectors[c[0]]}
        made = 2 + sum(1 / min(self._uses[number] for number in column) for column in new)
        saved = 2 * count * (LANES - 1) - round(LANES * made)
        return _Group(sums, columns, shared, saved)

    def _take(self, group: _Group) -> None:
        self.found.append(group)
        self._taken.update(group.sums)
        for column in dict.fromkeys(group.columns[1:]):
            if column not in self._vectors[column[0]]:
                for number in dict.fromkeys(column):
                    self._vectors[number].append(column)


class _Rewritten:
    """A program with vectors, in the order of levels."""

    def __init__(self, old: Program, level: Sequence[int], groups: Sequence[_Group]) -> None:
        self._old, self._steps = old, list[Step]()
        self._place: dict[int, int] = {}
        self._vectors: dict[_Lanes, int] = {}
        group_of = {place: group for group in groups for place in group.sums}
        sums: dict[_Lanes, int] = {}
        for place in sorted(range(len(old.steps)), key=lambda p: (level[p], p)):
            group = group_of.get(place)
            if group and group.sums not in sums:
                sums[group.sums] = self._sum_of(group)
            name, arguments, data = old.steps[place]
            if group:
                lane = self._new(("lane", (sums[group.sums],), group.sums.index(place)))
                arguments = arguments[len(group.columns) :]
                data = (1, *data[len(group.columns) :])
                places = (lane, *(self._place[a] for a in arguments))
                self._place[place] = self._new((name, places, data)) if arguments else lane
            else:
                places = tuple(self._place[a] for a in arguments)
                self._place[place] = self._new((name, places, data))

    def program(self) -> Program:
        results = [[self._place[p] for p in places] for places in self._old.results]
        return live(replace(self._old, steps=self._steps, results=results, sites=None))

    def _new(self, step: Step) -> int:
        self._steps.append(step)
        return len(self._steps) - 1

    def _sum_of(self, group: _Group) -> int:
        """The first terms of all sums of a group, added up."""
        terms = [self._vector(group.columns[0])]
        for column, factor in zip(group.columns[1:], group.shared, strict=True):
            factors = self._vector(column), self._place[factor]
            terms.append(self._new(("product", factors, None)))
        steps = [self._old.steps[place] for place in group.sums]
        made = self._new(("sum", tuple(terms), steps[0][2][: len(terms)]))
        if all(len(arguments) == len(terms) for _, arguments, _ in steps):
            self._vectors[group.sums] = made
        return made

    def _vector(self, numbers: _Lanes) -> int:
        """The vector of numbers: it is there, follows from others, or is made of the numbers."""
        if numbers not in self._vectors:
            self._vectors[numbers] = self._made(numbers)
        return self._vectors[numbers]

    def _made(self, numbers: _Lanes) -> int:
        steps = [self._old.steps[number] for number in numbers]
        if len({*numbers}) == 1:
            return self._place[numbers[0]]
        quotients = all(name == "times both" for name, _, _ in steps)
        if quotients and len({arguments[1:] for _, arguments, _ in steps}) == 1:
            over = self._vector(tuple(arguments[0] for _, arguments, _ in steps))
            by = (self._place[argument] for argument in steps[0][1][1:])
            return self._new(("times both", (over, *by), None))
        return self._new(("pack", tuple(self._place[number] for number in numbers), None))
