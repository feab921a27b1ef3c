"""What a model has inside: packages, and the shapes of values and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from neml2_capi.engine.description import Key, Promoted, Shape
from neml2_capi.engine.package import Package, Slot


class Scope:
    """Filled by the segments, in order: metadata says little of sub-batch axes, packages do."""

    def __init__(self, described: Any, dtype: str) -> None:
        self._leaf = described.leaf
        #: The element type of floating-point values.
        self.dtype = dtype
        #: All that were loaded.
        self.packages: list[Package] = []
        #: The point shape of each value, and the base shape of each parameter.
        self.shapes: dict[Key, Shape] = {
            Promoted(p.name): tuple(p.base_shape) for p in described.parameters
        }

    def load(self, name: str) -> Package | None:
        """A package of the artifact; None for an empty name."""
        return self.package(name) if name else None

    def package(self, name: str) -> Package:
        """A package of the artifact."""
        self.packages.append(Package(self._leaf, name))
        return self.packages[-1]

    def note(self, names: Iterable[str], slots: Sequence[Slot]) -> None:
        """Note what a package says of the values that it takes or returns."""
        self.shapes.update((name, slot.shape) for name, slot in zip(names, slots, strict=False))
