"""The order of operations, and how they are cut into C functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from neml2_capi.kernels.program import FREE, Program, cost

#: One C function holds about so many operations at most: compilers take longer than in proportion.
MOST_OPERATIONS = 2000


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
    changing = _changing(program)
    if not any(array.changes for array in program.inputs):
        changing = bytearray(b"\1" * len(program.steps))
    hoisted = [p for p in order if not changing[p]]
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


def sections_of(
    program: Program, ends: Iterable[int], most: int = MOST_OPERATIONS
) -> tuple[list[Section], int]:
    """What the ends need, cut into functions, and how many numbers these hand to each other."""
    sections = _cut(program, depth_first(program, ends), most)
    return sections, _share(program, sections)


def depth_first(program: Program, ends: Iterable[int]) -> list[int]:
    """What the ends need, each step right behind the last of its arguments; without inputs."""
    order: list[int] = []
    seen = bytearray(len(program.steps))
    for end in ends:
        waiting = [(end, False)]
        while waiting:
            place, ready = waiting.pop()
            if ready:
                order.append(place)
            elif not seen[place] and program.steps[place][0] not in FREE:
                seen[place] = 1
                waiting.append((place, True))
                waiting.extend((a, False) for a in reversed(program.steps[place][1]))
    return order


def _changing(program: Program) -> bytearray:
    """Whether each step depends on an input that changes."""
    found = bytearray(len(program.steps))
    for place, (name, arguments, data) in enumerate(program.steps):
        if name == "variable":
            found[place] = program.inputs[data[0]].changes
        else:
            found[place] = any(found[a] for a in arguments)
    return found


def _cut(program: Program, order: list[int], most: int) -> list[Section]:
    """Sections of nearly equal numbers of operations."""
    total = sum(cost(program.steps[p]) for p in order)
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
