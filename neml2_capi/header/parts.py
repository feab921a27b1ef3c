"""Parts of an increment, as statements; as capi/kernels/parts_in_lanes.h.

An increment that a point cannot solve in one step is halved, again and again, for the point alone;
the solution of a part is the old state of the next. It is the part number `part` of 2^level, each
of `width`. No recursion is needed: behind the second of two halves, both are solved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neml2_capi.header.newton import LEAVE
from neml2_capi.header.statements import Place, Statements

_BEGIN, _END = "narrowed(begin_of(part, width))", "narrowed(begin_of(part + 1, width))"


class Parts:
    """Givens of a system in a part of the increment, by their roles."""

    def __init__(
        self, roles: Sequence[Any], levels: int, values: Mapping[str, Place], text: Statements
    ) -> None:
        self.roles = [role for role in roles if role.role != "fixed"]
        self.levels, self._text = levels, text
        #: Of the whole increment, and of the part.
        self.wholes = {role.name: values[role.name] for role in self.roles}
        self._all = dict(values)
        self.values = {
            name: text.place(f"{name}_part", whole.components)
            for name, whole in self.wholes.items()
        }

    def begin(self) -> None:
        """Writes the beginning of the loop over parts, and what is given in one."""
        text = self._text
        text.line("level = spent = 0;")
        text.line("part = 0;")
        text.line("width = wide_fill(1.0);")
        text.line("whole_first = wide_fill(0.0);")
        for role in self.roles:
            if role.role == "old_state":
                text.copy(self.wholes[role.name], self.values[role.name])
        text.begin("for (;;)")
        text.begin("if (level == 0)")
        moving = [role for role in self.roles if role.role != "old_state"]
        for role in moving:
            text.copy(self.wholes[role.name], self.values[role.name])
        text.end("else")
        for role in moving:
            whole, made = self.wholes[role.name], self.values[role.name]
            if role.role == "increment":
                text.line(
                    f"scale({whole.pointer}, narrowed(width), {made.pointer}, {made.components});"
                )
            else:
                self.interpolate(role.role, whole, self._all[role.partner], made)
        text.end()

    def interpolate(self, role: str, whole: Place, partner: Place, made: Place) -> None:
        """Writes what a force is at an end of the part, from both ends of the whole."""
        from_, to, at = (whole, partner, _BEGIN) if role == "old_force" else (partner, whole, _END)
        ends = f"{from_.pointer}, {to.pointer}, {at}, {made.pointer}, {made.components}"
        self._text.line(f"between({ends});")

    def judge(self) -> None:
        """Writes what follows if the part could not be solved: its first half."""
        text = self._text
        text.line("if (level == 0) whole_first = first;")
        text.line("spent += of_system.iterations;")
        text.begin(f"if (of_system.status != ok && level < {self.levels})")
        text.line(LEAVE)
        text.line("part = 2 * part;")
        text.line("width = width * wide_fill(0.5);")
        text.line("++level;")
        text.line("continue;")
        text.end()

    def end(self, values: Mapping[str, Place]) -> None:
        """Writes the end of the loop: the solution is the old state of the next part."""
        text = self._text
        text.line("if (of_system.status != ok) break;")
        for role in self.roles:
            if role.role == "old_state":
                text.copy(values[role.partner], self.values[role.name])
        text.line("++part;")
        text.begin("while (level > 0 && part % 2 == 0)")
        text.line("part = part / 2;")
        text.line("width = width * wide_fill(2.0);")
        text.line("--level;")
        text.end()
        text.line("if (level == 0) break;")
        text.end()
