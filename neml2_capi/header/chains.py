"""Derivatives of a model by the chain rule, as statements; as capi/kernels/chains.h.

What each segment does to the columns of the inputs. Directions stand side by side: all of them, or
a band of a few at a time, so that a thread of CUDA keeps fewer numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from neml2_capi.engine.description import Key, Promoted
from neml2_capi.header.links import Links, Local
from neml2_capi.header.newton import LEAVE, Run, System
from neml2_capi.header.parts import Parts
from neml2_capi.header.statements import Place
from neml2_capi.header.walk import Walk
from neml2_capi.kernels.folder import KernelError


@dataclass(frozen=True)
class Direction:
    """The derivative of a value: columns of the unit matrix, or rows of an array; else zero."""

    at: Place | None = None
    first: int = -1

    @property
    def zero(self) -> bool:
        return self.at is None and self.first < 0


@dataclass(frozen=True)
class Block:
    """A block of derivatives of the model, and where its entries are; zeros if that is nowhere."""

    output: str
    input: Key
    rows: int
    columns: int
    at: Place | None
    stride: int


@dataclass(frozen=True)
class Columns:
    """The last system, if its columns of derivatives can be written as each is found."""

    system: System
    step: Run
    locals: list[Local]


#: Columns of so many numbers are unrolled on devices: no array is indexed by a number of the run.
_UNROLLED = 256


class Pair(NamedTuple):
    """A derivative: its output, and the input or parameter that it is by."""

    output: str
    input: Key


class Chains:
    """The directions of all inputs, and parameters, of which a derivative was compiled."""

    def __init__(self, walk: Walk, is_direct: bool, in_bands: bool) -> None:
        self._walk, self._text = walk, walk.text
        described = walk.described
        self._pairs = [Pair(pair.output, pair.input) for pair in described.derivatives]
        if walk.by_parameters:
            named = described.parameter_derivatives
            self._pairs += [Pair(pair.output, Promoted(pair.input)) for pair in named]
        #: Whether the model is one forward segment, whose blocks are those of the model.
        self._is_direct = is_direct
        self._locals: list[Local] = []
        self._columns: dict[Key, int] = {}
        #: The segments that columns are taken through at the end, band by band; else at once.
        self._passed: list[Links] | None = [] if in_bands and self._can_wait() else None
        self.columns: Columns | None = None
        count = 0
        for pair in self._pairs:
            if pair.input not in self._columns:
                self._columns[pair.input] = count
                count += walk.column(pair.input)[1]
        self._total = count
        self._of = {key: Direction(first=column) for key, column in self._columns.items()}

    def _can_wait(self) -> bool:
        """Tell whether there are several segments, all of which a column passes in one step.

        An increment that is cut is passed in its parts, and factors that are not kept would be
        made again for each band.
        """
        segments = self._walk.described.segments
        return len(segments) > 1 and all(
            segment.kind == "forward"
            or (not segment.max_substepping_level and self._walk.keeps_factors(segment))
            for segment in segments
        )

    def _times(self, rows: int) -> str:
        """The numbers in so many rows of directions."""
        return str(rows * self._total) if self._passed is None else f"{rows} * band"

    def _pointer(self, rows: Place) -> str:
        return f"{rows.array} + {self._times(rows.offset)}" if rows.offset else rows.array

    def _room(self, name: str, rows: int) -> Place:
        """Rows for the directions of a value."""
        text = self._text
        if self._passed is None:
            return Place(text.place(f"d_{name}", rows * self._total).array, 0, rows)
        array = text.name(f"d_{name}")
        text.line(f"lanes {array}[{self._times(rows)}];")
        return Place(array, 0, rows)

    def push(self, links: Links, is_last: bool) -> None:
        """The directions behind a segment that has been run."""
        if self._is_direct:
            self._locals = links.locals
        elif self._passed is not None:
            self._passed.append(links)
        else:
            self._pass(links, is_last)

    def _pass(self, links: Links, is_last: bool) -> None:
        made: dict[Key, Direction] = {}
        if links.system:
            made = {part.name: Direction() for part in links.system.groups.parts}
        known = [x for x in links.locals if not self._of.get(x.input, Direction()).zero]
        if known:
            if self._passed is None:
                self.columns = self._in_columns(links.system, known) if is_last else None
                self._text.begin(self._condition)
            if links.system:
                made.update(self._through(links.system, known, links))
            else:
                rooms = {
                    x.output: self._room(x.output, x.rows)
                    for x in {x.output: x for x in known}.values()
                }
                self._add(known, rooms, self._of)
                made.update({name: Direction(room) for name, room in rooms.items()})
            if self._passed is None:
                self._text.end()
        self._of.update(made)

    @property
    def _condition(self) -> str:
        """When whole matrices of directions are needed."""
        return "if (derive && careful)" if self.columns else "if (derive)"

    def _in_columns(self, system: System | None, known: list[Local]) -> Columns | None:
        step = system.newton_step if system else None
        if not system or not step or not step.kernel.prepares:
            return None
        whole = {part.name for part in system.groups.parts if part.is_whole}
        if not {pair.output for pair in self._pairs} <= whole:
            return None
        for local in known:
            if self._of[local.input].at or local.columns != self._walk.column(local.input)[1]:
                return None
        return Columns(system, step, known)

    def write(self, rows: dict[str, int], width: int) -> None:
        """Writes the blocks of the model. A point with one that is not finite is marked as bad."""
        text = self._text
        if self.columns:
            self._write_columns(self.columns, rows, width)
        text.begin(self._condition)
        if self._passed is not None:
            text.line(f"enum {{ band = NEML2_BAND({self._total}) }};")
            for links in self._passed:
                if links.system and links.system.newton_step:
                    links.system.newton_step.prepare(text)
            text.line("UNROLLED")
            text.begin(f"for (int column = 0; column < {self._total}; column += band)")
            text.line(f"if ({self._wants_none('column', 'band')}) continue;")
            for links in self._passed:
                self._pass(links, False)
        zeros = []
        for block in self.blocks():
            at = rows[block.output] * width + self._walk.column(block.input)[0]
            to = f"tangent + {at} * stride" if at else "tangent"
            size, rest = f"{block.rows}, {block.columns}", f"{width}, failed, {to}, stride"
            wanted = f"if ({self._walk.wants(block.input)})"
            if not block.at:
                zeros.append(f"{wanted} write_zeros({size}, {rest});")
                continue
            text.begin(wanted)
            if self._passed is not None:
                first = self._columns[block.input]
                band = f"{self._pointer(block.at)}, band, {size}, {first} - column"
                text.line(f"bad = bad | write_band({band}, {rest});")
            else:
                values = f"{block.at.pointer}, {block.stride}, {size}"
                text.line(f"bad = bad | block_is_not_finite({values});")
                text.line(f"write({values}, {rest});")
            text.end()
        if self._passed is not None:
            text.end()
        for line in zeros:
            text.line(line)
        text.end()

    def _wants_none(self, column: str, count: str) -> str:
        """The condition of so many columns of which none is wanted."""
        wanted = []
        for key, first in self._columns.items():
            end = first + self._walk.column(key)[1]
            within = f"{column} < {end} && {first} < {column} + {count}"
            wanted.append(f"({self._walk.wants(key)} && {within})")
        return f"!({' || '.join(wanted)})"

    def _write_columns(self, columns: Columns, rows: dict[str, int], width: int) -> None:
        """Writes each column of derivatives of the last system as it is found, without care."""
        text, system, step = self._text, columns.system, columns.step
        text.begin("if (derive && !careful)")
        step.prepare(text)
        for given in self._columns:
            first_of, components = self._walk.column(given)
            text.begin(f"if ({self._walk.wants(given)})")
            if system.size * self._total <= _UNROLLED:
                text.line("UNROLLED")
            text.begin(f"for (int c = 0; c < {components}; ++c)")
            text.copy(None, system.r)
            for local in columns.locals:
                if local.input == given:
                    right = system.r.from_(local.row, local.rows)
                    block = f"{local.block.pointer} + c, {local.stride}, {local.rows}"
                    text.line(f"push_band({block}, 1, 0, 1, {right.pointer});")
            text.begin(f"for (int k = 0; k < {system.size}; ++k)")
            text.line(f"{system.r.array}[k] = -{system.r.array}[k];")
            text.end()
            step.call(text)
            text.begin(f"if (!failed && {step.outputs[-1].element(0)} != 1)")
            text.line(LEAVE)
            text.end()
            for pair in self._pairs:
                if pair.input == given:
                    part = next(p for p in system.groups.parts if p.name == pair.output)
                    column = system.step.from_(part.first, part.size)
                    first = rows[pair.output] * width + first_of
                    to = f"tangent + ({first} + c) * stride"
                    size = f"1, {part.size}, 1, {width}, failed, {to}, stride"
                    text.line(f"bad = bad | are_not_finite({column.pointer}, {part.size});")
                    text.line(f"write({column.pointer}, {size});")
            text.end()
            text.end()
        text.end()

    def _add(
        self, locals_: list[Local], rooms: dict[str, Place], of: Mapping[Key, Direction]
    ) -> None:
        """Products of blocks with directions of values, into rooms."""
        text, before, count = self._text, "", str(self._total)
        if self._passed is not None:
            before, count = " - column", "band"
        for room in rooms.values():
            text.line(f"clear({self._pointer(room)}, {self._times(room.components)});")
        for local in locals_:
            direction, to = of[local.input], rooms[local.output].from_(local.row, 0)
            block = f"{local.block.pointer}, {local.stride}, {local.rows}, {local.columns}"
            if direction.at:
                source = self._pointer(direction.at.from_(local.column, 0))
                text.line(f"push({block}, {source}, {count}, {self._pointer(to)});")
            else:
                first = f"{direction.first + local.column}{before}"
                text.line(f"push_band({block}, {first}, {count}, {self._pointer(to)});")

    def _through(self, system: System, known: list[Local], links: Links) -> dict[Key, Direction]:
        """The directions of unknowns, by the implicit function theorem."""
        text = self._text
        made: dict[Key, Direction] = {}
        room = self._room(system.name, system.size)
        of_parts: dict[Key, Direction] = {}
        if links.parts:
            text.zeroed.add(room.array)
            text.begin("if (level == 0)")
        self._add(known, {"": room}, self._of)
        if links.parts:
            text.end("else")
            of_parts = self._in_part(links.parts)
            now = {**self._of, **of_parts}
            self._add([x for x in links.locals if not _of(now, x.input).zero], {"": room}, now)
            text.end()
        text.begin(f"for (int k = 0; k < {self._times(room.components)}; ++k)")
        text.line(f"{room.array}[k] = -{room.array}[k];")
        text.end()
        step = system.newton_step
        if step and step.kernel.prepares:
            self._by_steps(system, step, room)
        else:
            text.line(system.solve_by_pivoting(room, self._total))
        for part in system.groups.parts:
            at = room.from_(part.first, part.size)
            if not part.is_whole:
                whole = self._room(part.name, part.size)
                for k in range(part.pieces):
                    piece = at.from_(k * part.apart, part.piece)
                    self._copy(piece, whole.from_(k * part.piece, part.piece))
                at = whole
            made[part.name] = Direction(at)
        for role in links.parts.roles if links.parts else ():
            if role.role == "old_state":
                self._copy(_matrix(made[role.partner]), _matrix(of_parts[role.name]))
        return made

    def _copy(self, source: Place, to: Place) -> None:
        size = self._times(to.components)
        self._text.line(f"copy({self._pointer(source)}, {self._pointer(to)}, {size});")

    def _in_part(self, parts: Parts) -> dict[Key, Direction]:
        """Writes the directions of what is given in a part of the increment."""
        text = self._text
        found: dict[Key, Direction] = {}
        for role in parts.roles:
            own, size = _of(self._of, role.name), parts.wholes[role.name].components
            partner = _of(self._of, getattr(role, "partner", ""))
            is_state, is_force = role.role == "old_state", role.role.endswith("force")
            if own.zero and not is_state and (partner.zero or not is_force):
                continue
            made = text.place(f"d_{role.name}_part", size * self._total)
            found[role.name] = Direction(Place(made.array, 0, size))
            if is_state:
                text.zeroed.add(made.array)
                text.begin("if (part == 0)")
                self._spread(own, made, size)
                text.end()
                continue
            self._spread(own, made, size)
            if is_force:
                other = text.place(f"d_{role.name}_other", size * self._total)
                self._spread(partner, other, size)
                parts.interpolate(role.role, made, other, made)
            else:
                entries = f"{made.pointer}, {made.components}"
                text.line(f"scale({made.pointer}, narrowed(width), {entries});")
        return found

    def _spread(self, direction: Direction, to: Place, rows: int) -> None:
        """Writes a direction as a matrix."""
        if direction.first >= 0:
            size = f"{rows}, {self._total}, {direction.first}"
            self._text.line(f"spread_unit({to.pointer}, {size});")
        else:
            self._copy(_matrix(direction), Place(to.array, 0, rows))

    def _by_steps(self, system: System, step: Run, room: Place) -> None:
        """A direction is a Newton step more; with row pivoting if the pivots are not trusted.

        That is told of the Jacobian, so that the first direction tells it for all.
        """
        text, count = self._text, str(self._total) if self._passed is None else "band"
        column = f"{room.array}[i * {count} + k]"
        rows = f"for (int i = 0; i < {system.size}; ++i)"
        if self._passed is None:
            step.prepare(text)
        text.line("trusted = 0 == 0;")
        text.line("ROLLED")
        text.begin(f"for (int k = 0; k < {count}; ++k)")
        if self._passed is None:
            text.line(f"if ({self._wants_none('k', '1')}) continue;")
        text.line(f"{rows} {system.r.array}[i] = {column};")
        step.call(text)
        text.line(f"trusted = {step.outputs[-1].element(0)} == 1;")
        text.line("if (!trusted) break;")
        text.line(f"{rows} {column} = {system.step.array}[i];")
        text.end()
        text.begin("if (!trusted)")
        if not self.columns:
            text.line(LEAVE)
        text.line(system.solve_by_pivoting(room, count))
        text.end()

    def blocks(self) -> list[Block]:
        """The blocks of the model, in the order of its derivatives."""
        found = []
        for pair in self._pairs:
            value, columns = self._walk.value(pair.output), self._walk.column(pair.input)[1]
            if value is self._walk.inputs.get(pair.output):
                raise KernelError(
                    f"{pair.output} is an input that is handed on, which has no derivatives in a "
                    "header: write values alone"
                )
            at, stride = self._of.get(pair.output, Direction()).at, self._total
            if self._is_direct:
                of = [x.block for x in self._locals if (x.output, x.input) == pair]
                at, stride = (of[-1] if of else None), columns
            elif at and self._passed is None:
                first = at.offset * stride + self._columns[pair.input]
                at = Place(at.array, first, 0)
            found.append(Block(pair.output, pair.input, value.components, columns, at, stride))
        return found


def _of(directions: Mapping[Key, Direction], name: Key) -> Direction:
    return directions.get(name, Direction())


def _matrix(direction: Direction) -> Place:
    assert direction.at
    return direction.at
