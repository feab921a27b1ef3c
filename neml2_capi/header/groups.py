"""Groups of unknowns, givens and residuals side by side in one vector; as capi/kernels/groups.h."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from neml2_capi.engine.description import point_shape
from neml2_capi.kernels.systems import Group


@dataclass
class Part:
    """A variable in the vector: pieces, each `apart` from the one before."""

    name: str
    group: int
    first: int
    pieces: int
    piece: int
    apart: int = 0

    @property
    def size(self) -> int:
        return self.pieces * self.piece

    @property
    def is_whole(self) -> bool:
        """Whether its pieces stand one after the other."""
        return self.piece == self.apart or self.pieces == 1


class Groups:
    """The groups of a segment, and where each variable is in them."""

    def __init__(self, described: Sequence[Any]) -> None:
        self.all: list[Group] = []
        self.parts: list[Part] = []
        self.size = 0
        for group in described:
            block = group.structure == "block"
            sites = max(math.prod(group.sub_batch_shape), 1) if block else 1
            parts, width = [], 0
            for variable in group.variables:
                piece = math.prod(point_shape(variable)) // sites
                parts.append(Part(variable.name, len(self.all), self.size + width, sites, piece))
                width += piece
            for part in parts:
                part.apart = width
            self.all.append(Group(self.size, sites, width))
            self.parts += parts
            self.size += sites * width


class SubMatrix(NamedTuple):
    """A matrix of a block: from its component `at` on, rows and columns of the vectors."""

    at: int
    stride: int
    row: int
    rows: int
    column: int
    columns: int
    site: int


def sub_matrices(rows: Group, columns: Group) -> Iterator[SubMatrix]:
    """The matrices of a block of derivatives, one for each site of its columns."""
    if columns.sites == 1:
        size, width = rows.size, columns.width
        yield SubMatrix(0, width, rows.first, size, columns.first, width, 0)
        return
    for site in range(columns.sites):
        yield SubMatrix(
            site * rows.width * columns.width,
            columns.width,
            rows.first + (0 if rows.sites == 1 else site * rows.width),
            rows.width,
            columns.first + site * columns.width,
            columns.width,
            site,
        )


def block_size(rows: Group, columns: Group) -> int:
    """The components of a block, all of them stored."""
    return max(rows.sites, columns.sites) * rows.width * columns.width
