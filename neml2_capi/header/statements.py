"""Statements of a function, and the arrays that they work on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from neml2_capi.header.definitions import Definition
from neml2_capi.kernels.tables import identifier


@dataclass(frozen=True)
class Place:
    """Components side by side in an array of the text."""

    array: str
    offset: int
    components: int

    @property
    def pointer(self) -> str:
        return f"{self.array} + {self.offset}" if self.offset else self.array

    def from_(self, offset: int, components: int) -> Place:
        return Place(self.array, self.offset + offset, components)

    def element(self, component: int) -> str:
        return f"{self.array}[{self.offset + component}]"


#: Names that functions of text/ or the walk have.
_TAKEN = re.findall(
    r"\w+",
    "x p y c tangent stride rules told of_system all norm first status singular settled i j k pass "
    "before slope alpha trial difference made derive given failed right sides bad block lanes wide "
    "mask real truth number int long double float where fill copy clear push push_band place solve "
    "substitute root down over times fused write write_zeros invalidate divided report settings "
    "choose narrowed widened plain ok undecided careful part level width spent whole_first end "
    "trusted band column write_band",
)


class Statements:
    """Lines with their indentation, and the arrays that they need."""

    def __init__(self) -> None:
        self._taken = set(_TAKEN)
        self.arrays: dict[str, int] = {}
        #: Arrays that begin as zeros: compilers do not see that they are written before they are
        #: read.
        self.zeroed: set[str] = set()
        self.lines: list[str] = []
        self._depth = 1

    def name(self, wanted: str) -> str:
        """A name that nothing else has."""
        name = identifier(wanted)
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def place(self, wanted: str, components: int) -> Place:
        """A new array."""
        array = self.name(wanted)
        self.arrays[array] = max(components, 1)
        return Place(array, 0, components)

    def line(self, text: str) -> None:
        self.lines.append("  " * self._depth + text)

    def begin(self, text: str) -> None:
        self.line(f"{text} {{")
        self._depth += 1

    def end(self, otherwise: str = "") -> None:
        self._depth -= 1
        self.line(f"}} {otherwise} {{" if otherwise else "}")
        self._depth += 1 if otherwise else 0

    def copy(self, source: Place | None, to: Place, components: int = -1) -> None:
        """Copies components; zeros if they come from nowhere."""
        count = to.components if components < 0 else components
        if not count:
            return
        if count == 1:
            value = source.element(0) if source else "fill(0)"
            self.line(f"{to.element(0)} = {value};")
        elif source:
            self.line(f"copy({source.pointer}, {to.pointer}, {count});")
        else:
            self.line(f"clear({to.pointer}, {count});")

    def declarations(self) -> list[str]:
        return [
            f"  lanes {name}[{size}]{' = {0}' if name in self.zeroed else ''};"
            for name, size in self.arrays.items()
        ]

    def function(self, head: str, declared: Sequence[str] = ()) -> Definition:
        """The function that these are the body of."""
        body = "\n".join([*self.declarations(), *declared, *self.lines])
        name = head.split("(")[0].split()[-1]
        return Definition(name, f"{head} {{\n{body}\n}}")
