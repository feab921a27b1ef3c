"""A program that is made from the steps of another one."""

from __future__ import annotations

from dataclasses import replace

from neml2_capi.kernels.program import Program, Step


class Rebuilt:
    """A program in the making, and where the steps of the old one are in it."""

    def __init__(self, old: Program) -> None:
        self._old = old
        self.steps: list[Step] = []
        self.place: dict[int, int] = {}

    def new(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def keep(self, place: int) -> None:
        name, arguments, data = self._old.steps[place]
        self.place[place] = self.new((name, tuple(self.place[a] for a in arguments), data))

    def program(self) -> Program:
        results = [[self.place[p] for p in places] for places in self._old.results]
        return replace(self._old, steps=self.steps, results=results, sites=None)
