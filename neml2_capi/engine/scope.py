"""The values and parameters of a model by the names inside: their shapes and element types."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.engine.artifact import Artifact, ForwardSegment, NamedGraph, Variable
from neml2_capi.engine.blocks import Promoted
from neml2_capi.engine.package import Package, Slot


class Scope:
    """Filled by the segments, in order, from what their packages take and return.

    Metadata says little of sub-batch axes, and the name of a float32 leaf does not tell the element
    type: neml2-compile 3.1.0 writes float64 packages there.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.leaf: Path = artifact.leaf
        self.parameters = {parameter.name: parameter for parameter in artifact.parameters}
        self._leaf_dtype = artifact.dtype
        self._dtype: str | None = None
        self._slots: dict[str, Slot] = {}
        self._names = {variable.name for variable in artifact.inputs}

    @property
    def dtype(self) -> str:
        """The element type of floating-point values: what the first package takes."""
        return self._dtype or self._leaf_dtype

    def load(self, name: str) -> Package:
        """A package of the artifact."""
        package = Package(self.leaf / name)
        for slot in package.inputs:
            if self._dtype is None and np.issubdtype(slot.dtype, np.floating):
                self._dtype = slot.dtype
        return package

    def declare(self, name: str, shape: tuple[int, ...], dtype: str, who: str) -> None:
        """Note what `who` says of a value. FatalError where something else was said before."""
        slot = Slot(shape, True, dtype)
        if self._slots.setdefault(name, slot) != slot:
            known = self._slots[name]
            raise self.misfit(name, (known.dtype, *known.shape), (dtype, *shape, who))

    def misfit(self, name: str, known: object, other: object) -> FatalError:
        """The error where two files say different things of a value."""
        return FatalError(
            f"{name!r} is {known} here and {other} there. The folder mixes files of different "
            "compilations: compile the model again",
            lib.NEML2_ERROR_ARTIFACT,
            name,
        )

    def provide(self, names: Iterable[str]) -> None:
        """Note that there are values of these names from now on."""
        self._names.update(names)

    def require(self, names: Iterable[str]) -> None:
        """FatalError for a name that nothing before provides."""
        for name in names:
            if name not in self._names:
                raise FatalError(
                    f"the metadata asks for {name!r}, but no input and no earlier segment has this "
                    "name. Was it edited by hand? Compile the model again, with --rename-input or "
                    "--rename-output",
                    lib.NEML2_ERROR_ARTIFACT,
                    name,
                )

    def declare_graph(self, graph: NamedGraph | ForwardSegment, package: Package) -> None:
        """Note what a package says of the values that it takes and returns."""
        self.require(graph.inputs)
        self.provide(graph.outputs)
        for names, slots in ((graph.inputs, package.inputs), (graph.outputs, package.outputs)):
            for name, slot in zip(names, slots, strict=False):
                self.declare(name, slot.shape, slot.dtype, package.name)

    def slot(self, variable: Variable) -> Slot:
        """Return the slot of a value: of the metadata, where no package tells."""
        return self._slots.get(variable.name, Slot(variable.point_shape, True, self.dtype))

    def shape_of(self, key: str | Promoted) -> tuple[int, ...]:
        """The point shape of a value, or the base shape of a parameter."""
        if isinstance(key, Promoted):
            return self.parameters[key.parameter].base_shape
        return self._slots[key].shape
