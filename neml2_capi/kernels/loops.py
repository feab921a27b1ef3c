"""The C source of a kernel with loops over sites.

Each loop, and each run of steps between loops, is a part: a program of its own, simplified and
written like other kernels. Parts hand numbers to each other in memory of the caller, which has room
for single numbers first and then for those of each site, one site after the other.

A block of one point leaves its other lanes to sites: a loop is written once more, for as many sites
at a time as there are lanes (`abreast.py`). What it takes is gathered from these sites, and what it
makes is written to all lanes of each, so that every other part serves both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from neml2_capi.kernels.abreast import divided, width_of_row
from neml2_capi.kernels.emit import Statements, head_of, number
from neml2_capi.kernels.families import LEAST_REPEATED
from neml2_capi.kernels.names import Names
from neml2_capi.kernels.parts import Part, words_of
from neml2_capi.kernels.program import FREE, Program
from neml2_capi.kernels.rolling import (
    Components,
    Fixed,
    Loop,
    Neighbour,
    Numbers,
    Rolled,
)
from neml2_capi.kernels.scalar import MASKS
from neml2_capi.kernels.schedule import sections_of
from neml2_capi.kernels.site_text import STRIP, Tables, behind, in_strips, repeated
from neml2_capi.kernels.tables import stored, table

#: Names that no array has.
_IN_TEXT = ("memory", "here", "rows", "i", "next", "strip", "end")
_IN_SITES_H = ("lane", "at_sites", "first_site", "row_of_sites", "spread")
_PARAMETERS = "const void *const *inputs, void *const *outputs, lanes *memory"


def source_with_loops(loops: Rolled, program: Program, name: str, origin: str) -> tuple[str, int]:
    """The C source of a kernel, as `source`, and its operations a point.

    Parameters
    ----------
    loops : Rolled
        The parts of a program.
    program : Program
        The same program with the names of its inputs and outputs.
    name, origin : str
        As for `source`.
    """
    writer = _Kernel(loops, program)
    functions = list(writer.functions())
    more = (*(("RUN_ONE", "SITES_OF_ONE") if writer.side_by_side else ("0", "0")), "0")
    body = [*functions, *table(program, name, writer.room, False, writer.operations, more)]
    head = head_of(program, name, origin, writer.operations)
    if writer.side_by_side:
        head.insert(-1, '#include "sites.h"')
    return "\n".join([*head, *body]) + "\n", writer.operations


class _Kernel:
    """The parts of a kernel, and what they have in memory."""

    def __init__(self, loops: Rolled, program: Program) -> None:
        self._loops, self._program = loops, program
        self.single = program.real == "float32"
        names = Names((*_IN_TEXT, *_IN_SITES_H))
        self.inputs = [names.new(array.name) for array in program.inputs]
        self.outputs = [names.new(array.name) for array in program.outputs]
        self._tables = Tables(self.single)
        self.operations = 0
        self._more = 0  # vectors behind these, which a part needs for itself
        self._part_of: dict[int, int] = {}  # steps that are written out, by their part
        self._loop_of: dict[int, int] = {}  # families, by their part
        for number_, part in enumerate(loops.parts):
            if isinstance(part, Loop):
                self._loop_of.update(dict.fromkeys(part.families, number_))
            else:
                self._part_of.update(dict.fromkeys(part, number_))
        self._home = {
            place: (family, loops.families[family].first + k)
            for family in self._loop_of
            for k, place in enumerate(loops.families[family].members)
        }
        self._find_targets()
        self._find_crossing()
        self._parts = [
            self._loop(n, part) if isinstance(part, Loop) else self._straight(part)
            for n, part in enumerate(loops.parts)
        ]
        #: By loops that are written once more, for one point: their pieces.
        self.side_by_side: dict[int, list[Part]] = {}
        self._rows = 0  # vectors behind the room, for rows of numbers
        self._divide()

    # What is written where

    def _find_targets(self) -> None:
        """Outputs of steps that are written out, of families, and of what no part computes."""
        steps = self._program.steps
        self._writes: dict[int, list[str]] = defaultdict(list)
        self._last_writes: list[tuple[str, int]] = []
        #: By output and by constant or input: slots, and what is written there as it is.
        self._free_writes: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        by_family: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for output, name in enumerate(self.outputs):
            for slot, (_, place) in enumerate(stored(self._program, output)):
                if place in self._home:
                    family, site = self._home[place]
                    by_family[family, output][site].append(slot)
                elif steps[place][0] in FREE:
                    kind, _, data = steps[place]
                    source = repr(data) if kind == "constant" else f"input {data[0]}"
                    self._free_writes[output, source].append((slot, place))
                else:
                    self._writes[place].append(f"{name}[{slot}]")
        self._family_writes: dict[int, list[str]] = defaultdict(list)
        for (family, output), slots in by_family.items():
            name, of = self.outputs[output], self._loops.families[family]
            sites = range(of.first, of.first + len(of.members))
            counts = {len(slots.get(site, ())) for site in sites}
            if len(counts) == 1:
                for column in zip(*(slots[site] for site in sites), strict=True):
                    self._family_writes[family].append(
                        f"{name}[{self._tables.index(column, of.first)}]"
                    )
                continue
            for site, numbers in slots.items():
                place = of.members[site - of.first]
                self._last_writes += [(f"{name}[{slot}]", place) for slot in numbers]

    def _find_crossing(self) -> None:
        """Rooms for the numbers that parts hand to each other."""
        loops, steps = self._loops, self._program.steps
        singles: dict[int, None] = {}
        kept: dict[int, None] = {}
        #: Families of which a step takes a single site.
        self._taken_alone = set(loops.edges)

        def read(place: int, by: int) -> None:
            if place in self._home:
                kept[self._home[place][0]] = None
                self._taken_alone.add(self._home[place][0])
            elif self._part_of.get(place, by) != by:
                singles[place] = None

        for family, part in self._loop_of.items():
            for operand in loops.families[family].operands:
                if isinstance(operand, Fixed):
                    read(operand.place, part)
                elif isinstance(operand, Neighbour) and (
                    operand.distance or self._loop_of[operand.family] != part
                ):
                    kept[operand.family] = None
        for place, part in self._part_of.items():
            for argument in steps[place][1]:
                read(argument, part)
        for _, place in self._last_writes:
            read(place, -1)
        for of_family in loops.edges.values():
            for place in of_family.values():
                if place in self._home:
                    read(place, -1)
        self._single = {place: slot for slot, place in enumerate(singles)}
        self._slot = {family: slot for slot, family in enumerate(kept)}
        ends = [s for f, of in loops.edges.items() if f in self._slot for s in of]
        for part_ in loops.parts:
            if isinstance(part_, Loop):
                ends += [part_.first, part_.last]
        self._begin = min(ends)
        self._sites = sites = max(ends) - self._begin + 1
        #: An odd number: sites that lie a power of 2 apart would drive each other out of the cache.
        self._stride = len(self._slot) | 1
        self._room = len(self._single) + (sites * self._stride if self._slot else 0)
        self._stores: dict[int, list[str]] = defaultdict(list)
        for place, slot in self._single.items():
            self._stores[place].append(f"memory[{slot}]")
        self._edge_stores: list[tuple[str, int]] = []
        self._copies: dict[int, list[str]] = defaultdict(list)  # before the loop of a part
        for family, of in loops.edges.items():
            if family not in self._slot:
                continue
            for site, place in of.items():
                if place in self._home:
                    copy = f"  {self._element(family, site)} = {self._element(*self._home[place])};"
                    for user in self._users(family):
                        self._copies[user].append(copy)
                elif steps[place][0] in FREE:
                    self._edge_stores.append((self._element(family, site), place))
                else:
                    self._stores[place].append(self._element(family, site))

    def _users(self, family: int) -> set[int]:
        """Parts in which a family is a neighbour."""
        return {
            part
            for user, part in self._loop_of.items()
            for operand in self._loops.families[user].operands
            if isinstance(operand, Neighbour) and operand.family == family
        }

    def _element(self, family: int, site: int) -> str:
        first = len(self._single) + (site - self._begin) * self._stride
        return f"memory[{first + self._slot[family]}]"

    # The text

    @property
    def room(self) -> int:
        """Vectors of memory, once all is written."""
        return self._room + self._rows + self._more

    def functions(self) -> Iterator[str]:
        texts: list[str] = []
        for n, part in enumerate(self._loops.parts):
            loop = part if isinstance(part, Loop) else None
            texts += self._written(f"part_{n}", self._parts[n], loop)
            for k, piece in enumerate(self.side_by_side.get(n, ())):
                texts += self._written(f"part_{n}_one_{k}", piece, loop)
        last = list(self._written_free())
        for target, place in self._last_writes:
            last.append(f"  {target} = {self._element(*self._home[place])};")
        yield from self._tables.lines()
        yield from texts
        first = [f"  {to} = {self._free(place)};" for to, place in self._edge_stores]
        parameters = "const void *const *inputs, void *const *outputs, const void *results"
        for what in ("run", "run_one") if self.side_by_side else ("run",):
            yield f"static void {what}({parameters}) {{"
            yield "  lanes *const memory = (lanes *)results;"
            yield from self._pointers([*first, *last])
            yield from first
            for n in range(len(self._loops.parts)):
                yield from self._copies.get(n, ())
                called = [f"part_{n}"]
                if what == "run_one" and n in self.side_by_side:
                    called = [f"part_{n}_one_{k}" for k in range(len(self.side_by_side[n]))]
                yield from (f"  {function}(inputs, outputs, memory);" for function in called)
            yield from last
            yield "}\n"

    def _written_free(self) -> Iterator[str]:
        """Constants and inputs that are outputs: loops, if there are many."""
        for (output, _), writes in self._free_writes.items():
            name = self.outputs[output]
            if len(writes) < LEAST_REPEATED:
                for slot, place in writes:
                    yield f"  {name}[{slot}] = {self._free(place)};"
                continue
            value, (kind, _, data) = self._free(writes[0][1]), self._program.steps[writes[0][1]]
            if kind == "variable":
                components = [self._program.steps[place][2][1] for _, place in writes]
                value = f"{self.inputs[data[0]]}[{self._tables.index(components, 0)}]"
            slots = self._tables.index([slot for slot, _ in writes], 0)
            yield f"  for (int i = 0; i < {len(writes)}; ++i) {name}[{slots}] = {value};"

    def _free(self, place: int) -> str:
        name, _, data = self._program.steps[place]
        if name == "variable":
            return f"{self.inputs[data[0]]}[{data[1]}]"
        return number(data, self.single).lanes

    def _pointers(self, lines: Sequence[str]) -> Iterator[str]:
        """Declarations of the arrays that lines mention."""
        words = {word for line in lines for word in words_of(line)}
        for kind, arrays, owner in (
            ("const lanes", self.inputs, "inputs"),
            ("lanes", self.outputs, "outputs"),
        ):
            for n, name in enumerate(arrays):
                if name in words:
                    yield f"  {kind} *const {name} = {owner}[{n}];"

    def _straight(self, places: list[int]) -> Part:
        part = Part(self.single)
        for place in places:
            name, arguments, data = self._program.steps[place]
            known = [self._known(part, a) for a in arguments]
            part.step(place, (name, tuple(known), data))
        for place in places:
            part.write(place, [*self._writes.get(place, ()), *self._stores.get(place, ())])
        return self._finished(part, 1)

    def _known(self, part: Part, place: int) -> int:
        known = part.known.get(place)
        return part.add(place, *self._load(place)) if known is None else known

    def _load(self, place: int) -> tuple[Any, ...]:
        """A step from outside a part: the text and whether it is a truth value."""
        name, _, data = self._program.steps[place]
        if name == "constant":
            return ("constant", data)
        if name == "variable":
            return (f"{self.inputs[data[0]]}[{data[1]}]", False)
        if place in self._home:
            return (self._element(*self._home[place]), name in MASKS)
        return (f"memory[{self._single[place]}]", name in MASKS)

    def _loop(self, n: int, loop: Loop) -> Part:
        part = Part(self.single)
        for family in loop.families:
            of = self._loops.families[family]
            arguments = [self._operand(part, n, operand, of.first) for operand in of.operands]
            part.step(("family", family), (of.name, tuple(arguments), of.data))
        for family in loop.families:
            targets = list(self._family_writes.get(family, ()))
            if family in self._slot:
                targets.append(f"here[{self._slot[family]}]")
            part.write(("family", family), targets)
        return self._finished(part, loop.last - loop.first + 1)

    def _operand(self, part: Part, n: int, operand: Any, first: int) -> int:
        if isinstance(operand, Fixed):
            return self._known(part, operand.place)
        if isinstance(operand, Neighbour):
            if not operand.distance and self._loop_of[operand.family] == n:
                return part.known["family", operand.family]
            of = self._loops.families[operand.family]
            text = f"here[{operand.distance * self._stride + self._slot[operand.family]}]"
            if self._loop_of[operand.family] == n:
                part.carried[text] = "family", operand.family
            return part.loaded(text, of.name in MASKS)
        if isinstance(operand, Components):
            index = self._tables.index(operand.places, first)
            return part.loaded(f"{self.inputs[operand.array]}[{index}]", False)
        assert isinstance(operand, Numbers)
        return part.loaded(f"fill({self._tables.name('real', operand.values)}[i - {first}])", False)

    def _finished(self, part: Part, sites: int) -> Part:
        self.operations += part.finish() * sites
        offset = len(self._single) - self._begin * self._stride
        part.here = f"{self._stride} * i {'-' if offset < 0 else '+'} {abs(offset)}"
        return part

    def _divide(self) -> None:
        """Make the pieces of loops for one point, and rows of what they alone take."""
        numbers = 0
        for n, (loop, part) in enumerate(zip(self._loops.parts, self._parts, strict=True)):
            pieces, own = divided(part, loop) if isinstance(loop, Loop) else ([], 0)
            if pieces:
                self.side_by_side[n], numbers = pieces, max(numbers, own)
        others = [part for n, part in enumerate(self._parts) if n not in self.side_by_side]
        taken = {k % self._stride for part in others for k in part.of_sites()}
        taken |= {self._slot[family] for family in self._taken_alone & self._slot.keys()}
        rows: dict[int, int] = {}
        for slot in self._slot.values():
            if slot not in taken:
                rows[slot] = numbers - self._begin
                numbers += width_of_row(self._sites)
        for n, pieces in self.side_by_side.items():
            for piece in pieces:
                piece.here = self._parts[n].here
                piece.rename(
                    {
                        f"here[{k}]": f"rows[{rows[k % self._stride] + k // self._stride} + i]"
                        for k in piece.of_sites()
                        if k % self._stride in rows
                    }
                )
        self._rows = -(-numbers // 2)  # of two lanes at least

    def _written(self, function: str, part: Part, loop: Loop | None) -> Iterator[str]:
        sections, shared = sections_of(part.program, part.program.results[0])
        bodies = [Statements(part, section, True).lines() for section in sections]
        bodies[-1:] = [[*bodies[-1], *part.rest()]] if bodies else [part.rest()]
        own = {"here": f"  lanes *const here = memory + ({part.here});"}
        own["rows"] = f"  real *const rows = (real *)(memory + {self._room});"
        if len(bodies) == 1:
            lines = repeated(behind(own, bodies[0]), loop, part.is_side_by_side)
            yield f"FUNCTION void {function}({_PARAMETERS}) {{"
            yield from self._whole([*self._pointers(lines), *lines], (), loop)
            return
        extra = ", int i, lanes *shared" if loop else ", lanes *shared"
        for k, lines in enumerate(bodies):
            yield f"FUNCTION void {function}_{k}({_PARAMETERS}{extra}) {{"
            lines = [*self._pointers(lines), *behind(own, lines)]
            yield from self._whole(lines, ("shared", "i"), loop)
        given = f"inputs, outputs, memory{', i' if loop else ''}, shared"
        calls = [f"  {function}_{k}({given}" for k in range(len(bodies))]
        yield f"FUNCTION void {function}({_PARAMETERS}) {{"
        if loop and not part.carried:
            self._more = max(self._more, STRIP * shared)
            yield f"  lanes *const shared = memory + {self._room + self._rows};"
            yield from in_strips(calls, shared, loop, part.is_side_by_side)
        else:
            yield f"  lanes shared[{max(shared, 1)}];"
            yield from repeated([f"{call});" for call in calls], loop, part.is_side_by_side)
        yield "}\n"

    def _whole(self, lines: list[str], more: Sequence[str], loop: Loop | None) -> Iterator[str]:
        words = {word for line in lines for word in words_of(line)}
        for name in ("inputs", "outputs", "memory", *more):
            if name not in words and (name != "i" or loop):
                yield f"  (void){name};"
        yield from lines
        yield "}\n"
