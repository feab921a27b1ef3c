"""A part of a kernel with loops: a loop, or steps that are written out.

It is a program of its own, whose variables are texts in C and whose results have targets there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from neml2_capi.kernels.emit import Text, number
from neml2_capi.kernels.program import FREE, Array, Program, Step, cost
from neml2_capi.kernels.simplify import simplified


class Part:
    """Its steps by the keys of the kernel's; `finish` makes the program of them."""

    #: Whether lanes are sites, not points.
    is_side_by_side = False
    one = ""
    #: Where the numbers of a site begin in memory.
    here = ""

    def __init__(self, single: bool) -> None:
        self.single = single
        self._steps: list[Step] = []
        #: Steps of the kernel, in this part.
        self.known: dict[Any, int] = {}
        self._texts: dict[tuple[str, bool], int] = {}
        #: By variable: its text, and whether it is a truth value.
        self.loads: list[tuple[str, bool]] = []
        #: Texts that are what another site makes, in the same loop: the key of that step.
        self.carried: dict[str, Any] = {}
        self._keys: list[Any] = []
        self._targets: list[list[str]] = []
        self.uses: Mapping[int, int] = {}
        self.writes: dict[int, list[str]] = {}
        #: By the keys of steps that are written: their place in the program.
        self.place: dict[Any, int] = {}
        self.program = Program([], [], [], [])

    def step(self, key: Any, step: Step) -> int:
        self._steps.append(step)
        self.known[key] = len(self._steps) - 1
        return len(self._steps) - 1

    def add(self, key: Any, text: str, more: Any) -> int:
        """A step from outside: a constant, or a text and whether it is a truth value."""
        if text == "constant":
            return self.step(key, ("constant", (), more))
        self.known[key] = self.loaded(text, more)
        return self.known[key]

    def loaded(self, text: str, is_mask: bool) -> int:
        if (text, is_mask) not in self._texts:
            self.loads.append((text, is_mask))
            self._steps.append(("variable", (), (0, len(self.loads) - 1)))
            self._texts[text, is_mask] = len(self._steps) - 1
        return self._texts[text, is_mask]

    def write(self, key: Any, targets: list[str]) -> None:
        if targets:
            self._keys.append(key)
            self._targets.append(targets)

    def finish(self, simplify: bool = True) -> int:
        """Make the program, and simplify it; the operations are returned."""
        results = [self.known[key] for key in self._keys]
        inputs = [Array("texts", (len(self.loads),))]
        outputs = [Array("targets", (len(results),))]
        real = "float32" if self.single else "float64"
        made = Program(inputs, outputs, self._steps, [results], real)
        self.program = simplified(made) if simplify else made
        self.uses = Counter(a for _, arguments, _ in self.program.steps for a in arguments)
        self.place = dict(zip(self._keys, self.program.results[0], strict=True))
        for place, targets in zip(self.program.results[0], self._targets, strict=True):
            self.writes.setdefault(place, []).extend(targets)
        return sum(cost(step) for step in self.program.steps)

    def of_sites(self) -> set[int]:
        """Where, from `here` on, it takes or writes vectors of sites."""
        targets = [target for of_one in self.writes.values() for target in of_one]
        texts = [*(text for text, _ in self.loads), *targets]
        return {int(text[5:-1]) for text in texts if text.startswith("here[")}

    def rename(self, names: Mapping[str, str]) -> None:
        """Take other texts and targets."""
        self.loads = [(names.get(text, text), is_mask) for text, is_mask in self.loads]
        self.writes = {p: [names.get(t, t) for t in targets] for p, targets in self.writes.items()}

    # Texts for the statements of the part

    def constant(self, data: object) -> Text:
        return number(data, self.single)

    def variable(self, data: tuple[int, int]) -> tuple[str, str]:
        text, is_mask = self.loads[data[1]]
        kind, cast = ("mask", "(mask)") if is_mask else ("lanes", "")
        return f"x{data[1]}", f"  const {kind} x{data[1]} = {cast}{self._loaded(text)};"

    def _loaded(self, text: str) -> str:
        if text.startswith("rows["):
            return f"OF_ROW({text})" if self.is_side_by_side else f"spread({text})"
        if self.is_side_by_side and is_of_site(text):
            return f"OF_SITES({self._at_site(text)})"
        return text

    def assignment(self, target: str, value: str) -> str:
        if target.startswith("rows["):
            text = f"OF_ROW({target}) = " if self.is_side_by_side else f"{target} = ("
            return f"  {text}{value};" if self.is_side_by_side else f"  {text}{value})[0];"
        if self.is_side_by_side and is_of_site(target):
            return f"  TO_SITES({self._at_site(target)}, {value});"
        return f"  {target} = {value};"

    def _at_site(self, text: str) -> str:
        """A text in which nothing but i tells the site."""
        return text.replace("here[", f"memory[{self.here} + ")

    def rest(self) -> list[str]:
        """Targets of what is not computed."""
        lines = []
        for place, targets in self.writes.items():
            name, _, data = self.program.steps[place]
            if name in FREE:
                text = self.constant(data).lanes
                if name == "variable":
                    text = self._loaded(self.loads[data[1]][0])
                lines += [self.assignment(target, text) for target in targets]
        return lines


def is_of_site(text: str) -> bool:
    """Whether it is another vector at each site."""
    return not {"i", "here"}.isdisjoint(words_of(text))


def words_of(line: str) -> set[str]:
    """The names in a line of C."""
    word, found = "", set()
    for character in line + " ":
        if character.isalnum() or character == "_":
            word += character
        elif word:
            found.add(word)
            word = ""
    return found
