"""The variables that a caller sees, and their values inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.handle import owned
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array, Label, common_batch, lossless, taken, wrap
from neml2_capi._ffi.variables import Variable, Variables
from neml2_capi.engine.artifact import Artifact
from neml2_capi.engine.artifact import Variable as Inside
from neml2_capi.engine.blocks import Key, Promoted
from neml2_capi.engine.scope import Scope

Shape = tuple[int, ...]
K = TypeVar("K", str, Promoted)


class Side(Generic[K]):
    """The variables of one kind, and what each is called inside."""

    def __init__(self, variables: Variables, keys: Sequence[K]) -> None:
        self.variables = variables
        self.keys: Sequence[K] = keys

    def name(self, key: Key) -> str:
        """The name at the boundary of what is called `key` inside."""
        return self.variables.names[self._index(key)]

    def shape(self, key: Key) -> Shape:
        """The point shape of what is called `key` inside."""
        return self.variables[self._index(key)].point_shape

    def sites(self, key: Key) -> Shape:
        """The sub-batch shape."""
        return self.variables[self._index(key)].sub_batch_shape

    def _index(self, key: Key) -> int:
        keys: Sequence[Key] = self.keys
        return keys.index(key)

    def read(self, values: Mapping[str, Any], argument: str, kind: str = "") -> dict[str, Array]:
        """The arrays of a caller by name, (*B, *point shape); what is None is left out.

        Parameters may go by the last component of their names. FatalError for a wrong name, element
        type or trailing shape.
        """
        if not isinstance(values, Mapping):
            raise FatalError(
                f"{argument} must be a mapping of names to arrays; got {type(values).__name__}",
                lib.NEML2_ERROR_ARGUMENT,
                argument,
            )
        arrays: dict[str, Array] = {}
        for name, value in values.items():
            known = bool(kind) or name in self.variables.index_of
            if not known and self.variables.is_replaced_guess(name, value):
                continue
            index = self._find(name)
            full = self.variables.names[index]
            if full in arrays:
                raise FatalError(f"{full!r} is given twice", lib.NEML2_ERROR_NAME, full)
            if value is not None:
                arrays[full] = self.read_one(full, value, kind)
        return arrays

    def _find(self, name: str) -> int:
        if self.variables.kind == "parameter":
            return self.variables.resolve(name)
        if name not in self.variables.index_of:
            raise unknown_name(self.variables.kind, name, self.variables.names)
        return self.variables.index_of[name]

    def read_one(self, name: str, value: Any, kind: str = "") -> Array:
        """A value of the variable `name`; numbers and lists get its element type."""
        index = self.variables.index_of[name]
        variable, label = self.variables[index], Label(kind or self.variables.kind, name)
        owner = owned("tensor")
        source = wrap(owner, lossless(value, variable.dtype), label, variable.dtype)
        array = taken(owner, source, label, variable.dtype)
        if array.dtype != variable.dtype:
            raise label.refuse(
                f"must be {variable.dtype}; got {array.dtype}. Convert it first",
                lib.NEML2_ERROR_DTYPE,
            )
        label.batch_of(array.shape, variable.point_shape)
        return array

    def widen(self, batch: Shape, arrays: Mapping[str, Array], kind: str = "") -> Shape:
        """What `batch` and the batches of these arrays broadcast to."""
        given = [v for v in self.variables if v.name in arrays]
        labels = [Label(kind or self.variables.kind, v.name) for v in given]
        own = [
            x.batch_of(arrays[x.name].shape, v.point_shape)
            for x, v in zip(labels, given, strict=True)
        ]
        return common_batch(zip(labels, own, strict=True), batch)

    def rows(self, arrays: Mapping[str, Array], batch: Shape) -> dict[K, Array]:
        """Arrays as (points, *point shape), by the keys inside."""
        return {
            key: np.broadcast_to(arrays[v.name], batch + v.point_shape).reshape(
                prod(batch), *v.point_shape
            )
            for key, v in zip(self.keys, self.variables, strict=True)
            if v.name in arrays
        }


class Boundary:
    """Variables that a caller sees."""

    def __init__(self, artifact: Artifact, unknowns: Sequence[Inside], scope: Scope) -> None:
        names = artifact.aliases

        def side(kind: str, inside: Sequence[Inside], aliases: Mapping[str, str]) -> Side[str]:
            made = []
            scope.require(v.name for v in inside)
            for v in inside:
                slot = scope.slot(v)
                sub_batch = slot.shape[: len(slot.shape) - len(v.base_shape)]
                if sub_batch + v.base_shape != slot.shape:
                    raise scope.misfit(v.name, v.base_shape, slot.shape)
                name = aliases.get(v.name, v.name)
                made.append(Variable(name, v.type, v.base_shape, sub_batch, slot.dtype))
            return Side(Variables(kind, made), [v.name for v in inside])

        self.inputs = side("input", artifact.inputs, names.inputs)
        self.outputs = side("output", artifact.outputs, names.outputs)
        self.unknowns = side("unknown", unknowns, names.outputs)
        self.inputs.variables.note_guesses(self.unknowns.variables)
        self.parameters: Side[Promoted] = Side(
            Variables(
                "parameter",
                [
                    Variable(names.parameters.get(p.name, p.name), "", p.base_shape, (), p.dtype)
                    for p in artifact.parameters
                ],
            ),
            [Promoted(p.name) for p in artifact.parameters],
        )

    def by(self, key: Key) -> Side[str] | Side[Promoted]:
        """The side that something to differentiate by is on."""
        return self.parameters if isinstance(key, Promoted) else self.inputs
