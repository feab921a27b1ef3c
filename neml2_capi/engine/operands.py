"""Operands of the packages of an implicit segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neml2_capi._ffi.tensor import Array
from neml2_capi.engine.packing import Packing


@dataclass(frozen=True)
class Operands:
    """Givens and promoted parameters of some points: residual packages take them in this order,
    after the unknowns."""

    unknowns: Packing
    givens: Sequence[Array]
    parameters: Sequence[Array]

    def at(self, u: Array) -> list[Array]:
        """The arguments of a package for the unknowns `u`, (points, size)."""
        return [*self.unknowns.split(u), *self.givens, *self.parameters]

    def of_rows(self, rows: Array) -> Operands:
        """Return the operands of some of the points."""
        return Operands(
            self.unknowns, [g[rows] for g in self.givens], [p[rows] for p in self.parameters]
        )
