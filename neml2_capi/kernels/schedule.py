"""The order of operations, and how they are cut into C functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from neml2_capi.kernels.folding import BINARY, FUNCTIONS
from neml2_capi.kernels.program import FREE, Program, Step, cost

#: One C function holds about so many operations at most: compilers take longer than in proportion.
MOST_OPERATIONS = 2000
#: Of all operations: fewer are computed again as soon as they are kept and loaded.
_LEAST_PREPARED = 0.1

#: Functions that take as long as a hundred operations, one waiting for the other. Calls of one that
#: do not need each other stand together: they overlap, and those of a single point share a vector.
_QUICK = {"sqrt", "abs", "sign", "floor", "round", "trunc", "copysign", "quotient"}
LONG = frozenset({*FUNCTIONS, *BINARY, "pow"} - _QUICK)
#: So many at most, so that few numbers wait for each other.
MOST_CALLS = 4


@dataclass
class Section:
    """The steps of one C function, and the values that it takes over and hands on."""

    places: list[int]
    #: Where values of other sections are found, and where own ones are stored.
    loads: dict[int, str] = field(default_factory=dict)
    stores: dict[int, str] = field(default_factory=dict)


@dataclass
class Schedule:
    """Sections before the inputs that change are known, and those that need them."""

    prepare: list[Section]
    run: list[Section]
    #: Numbers that prepare hands to run, and sections of one of them to each other.
    kept: int
    shared_in_prepare: int
    shared_in_run: int


def scheduled(program: Program, most: int = MOST_OPERATIONS) -> Schedule:
    """Depth first, output after output: what is computed is used soon after."""
    ends = [place for places in program.results for place in places]
    order = depth_first(program, ends)
    changing = changing_steps(program)
    hoisted = [p for p in order if not changing[p]]
    if _work(program, hoisted) < _LEAST_PREPARED * _work(program, order):
        changing, hoisted = bytearray(b"\1" * len(program.steps)), []
    later = [p for p in order if changing[p]]
    wanted = {a for p in later for a in program.steps[p][1]} | set(ends)
    handed = [p for p in hoisted if p in wanted]
    kept = {p: f"kept[{slot}]" for slot, p in enumerate(handed)}
    before = _cut(program, depth_first(program, handed), most)
    after = _cut(program, later, most)
    shared_before, shared_after = _share(program, before), _share(program, after)
    for section in before:  # a number that is kept is found there by all
        section.stores.update({p: kept[p] for p in section.places if p in kept})
        section.loads.update({p: kept[p] for p in section.loads if p in kept})
    used = {p: {a for q in s.places for a in program.steps[q][1]} for p, s in enumerate(after)}
    for number, section in enumerate(after):
        section.loads.update({a: kept[a] for a in used[number] if a in kept})
    return (
        Schedule(before, after, len(kept), shared_before, shared_after)
        if handed
        else Schedule([], after, 0, 0, shared_after)
    )


def unchanging_first(program: Program) -> Program:
    """The same values to round-off: what changes in no term of a sum or product is one term."""
    changing = changing_steps(program)
    steps: list[Step] = []
    place: list[int] = []
    for name, arguments, data in program.steps:
        x = tuple(place[a] for a in arguments)
        steady = [not changing[a] for a in arguments]
        if name in ("sum", "product") and 1 < sum(steady) < len(x):
            signs = data or (1,) * len(x)
            terms = sorted(zip(steady, signs, x, strict=True), key=lambda t: (not t[0], t[1] < 0))
            count = sum(steady)
            own = tuple(sign for _, sign, _ in terms[:count]) if data else None
            steps.append((name, tuple(p for _, _, p in terms[:count]), own))
            x = (len(steps) - 1, *(p for _, _, p in terms[count:]))
            data = (1, *(sign for _, sign, _ in terms[count:])) if data else None
        steps.append((name, x, data))
        place.append(len(steps) - 1)
    results = [[place[p] for p in places] for places in program.results]
    return replace(program, steps=steps, results=results, sites=None)


def run_operations(program: Program) -> int:
    """The operations of run()."""
    sections = scheduled(program).run
    return sum(_work(program, section.places) for section in sections)


def _work(program: Program, order: Iterable[int]) -> int:
    return sum(cost(program.steps[place]) for place in order)


def as_it_stands(program: Program, most: int = MOST_OPERATIONS) -> Schedule:
    """The order of the program itself; nothing is prepared."""
    order = [place for place, step in enumerate(program.steps) if step[0] not in FREE]
    sections = _cut(program, order, most)
    return Schedule([], sections, 0, 0, _share(program, sections))


def sections_of(
    program: Program, ends: Iterable[int], most: int = MOST_OPERATIONS
) -> tuple[list[Section], int]:
    """What the ends need, cut into functions, and how many numbers these hand to each other."""
    sections = _cut(program, depth_first(program, ends), most)
    return sections, _share(program, sections)


def depth_first(program: Program, ends: Iterable[int]) -> list[int]:
    """What the ends need, each step right behind the last of its arguments; without inputs.

    Calls that stand together are one step of it.
    """
    ends = list(ends)
    alone = _depth_first(program, ends, {})
    together = dict(_together(program, alone))
    return _depth_first(program, ends, together) if together else alone


def _depth_first(
    program: Program, ends: Iterable[int], together: Mapping[int, tuple[int, ...]]
) -> list[int]:
    order: list[int] = []
    seen = bytearray(len(program.steps))
    for end in ends:
        waiting = [(end, False)]
        while waiting:
            place, ready = waiting.pop()
            places = together.get(place, (place,))
            if ready:
                order += places
            elif not seen[place] and program.steps[place][0] not in FREE:
                waiting.append((place, True))
                for call in reversed(places):
                    seen[call] = 1
                    waiting.extend((a, False) for a in reversed(program.steps[call][1]))
    return order


def calls_together(program: Program, places: Iterable[int]) -> Iterator[list[int]]:
    """The same places, those of calls that stand together as one list."""
    group: list[int] = []
    for place in places:
        name, arguments, _ = program.steps[place]
        alike = name in LONG and group and name == program.steps[group[0]][0]
        if group and not (alike and len(group) < MOST_CALLS and not {*group} & {*arguments}):
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _together(program: Program, order: Iterable[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """By call: the calls that stand together with it.

    They come after equally many calls, so that no two groups need each other.
    """
    calls: dict[tuple[str, int], list[int]] = defaultdict(list)
    before = [0] * len(program.steps)
    for place in order:
        name, arguments, _ = program.steps[place]
        before[place] = max(
            (before[a] + (program.steps[a][0] in LONG) for a in arguments), default=0
        )
        if name in LONG:
            calls[name, before[place]].append(place)
    for alike in calls.values():
        for first in range(0, len(alike), MOST_CALLS):
            group = tuple(alike[first : first + MOST_CALLS])
            yield from ((place, group) for place in group if len(group) > 1)


def changing_steps(program: Program) -> bytearray:
    """Whether each step depends on an input that changes; all do if none is said to."""
    if not any(array.changes for array in program.inputs):
        return bytearray(b"\1" * len(program.steps))
    found = bytearray(len(program.steps))
    for place, (name, arguments, data) in enumerate(program.steps):
        if name == "variable":
            found[place] = program.inputs[data[0]].changes
        else:
            found[place] = any(found[a] for a in arguments)
    return found


def _cut(program: Program, order: list[int], most: int) -> list[Section]:
    """Sections of nearly equal numbers of operations."""
    total = _work(program, order)
    count = max(-(-total // most), 1)
    sections = [Section([]) for _ in range(count)]
    done = 0
    for place in order:
        sections[min(done * count // max(total, 1), count - 1)].places.append(place)
        done += cost(program.steps[place])
    return [section for section in sections if section.places]


def _share(program: Program, sections: list[Section]) -> int:
    """Name the numbers that sections hand to later ones; return how many there are at a time."""
    section_of = {place: n for n, section in enumerate(sections) for place in section.places}
    last: dict[int, int] = {}
    for number, section in enumerate(sections):
        for place in section.places:
            for argument in program.steps[place][1]:
                if section_of.get(argument, number) != number:
                    last[argument] = number
    free: list[int] = []
    count = 0
    freed: dict[int, list[int]] = {}
    for number, section in enumerate(sections):
        free.extend(freed.get(number, ()))
        free.sort(reverse=True)
        for place in section.places:
            if place not in last:
                continue
            if not free:
                free.append(count)
                count += 1
            slot = free.pop()
            freed.setdefault(last[place] + 1, []).append(slot)
            section.stores[place] = f"shared[{slot}]"
    for number, section in enumerate(sections):
        for place in section.places:
            for argument in program.steps[place][1]:
                home = section_of.get(argument, number)
                if home != number:
                    section.loads[argument] = sections[home].stores[argument]
    return count
