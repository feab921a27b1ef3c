"""Content of an artifact, as neml2_model_describe() says it; capi/artifact/metadata.h explains.

Names are those inside the model, which may have others at its boundary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from neml2_capi._ffi.labels import Array
from neml2_capi.engine.package import Package, Slot

Shape = tuple[int, ...]


class Promoted(NamedTuple):
    """The key of a parameter, where values and parameters stand together."""

    parameter: str


#: What a value has inside the model: its name, if it is no parameter.
Key = str | Promoted
#: Values or directions by key, with one row per point.
Values = dict[Key, Array]


def attributes(document: Any) -> Any:
    """A description whose objects have their members as attributes."""
    if isinstance(document, dict):
        return SimpleNamespace(**{name: attributes(value) for name, value in document.items()})
    return [attributes(each) for each in document] if isinstance(document, list) else document


def point_shape(variable: Any) -> Shape:
    """The shape of a described variable at one point."""
    return (*variable.sub_batch_shape, *variable.base_shape)


class Scope:
    """Packages and shapes of values, filled by the segments in order.

    Metadata says little of sub-batch axes, packages do.
    """

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
