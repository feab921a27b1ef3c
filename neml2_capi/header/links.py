"""The derivatives of a segment, as blocks of what its kernels return."""

from __future__ import annotations

from dataclasses import dataclass, field

from neml2_capi.engine.description import Key
from neml2_capi.header.groups import Part, SubMatrix
from neml2_capi.header.newton import System
from neml2_capi.header.parts import Parts
from neml2_capi.header.statements import Place


@dataclass(frozen=True)
class Local:
    """A block of derivatives that a kernel of a segment returns.

    Of an output of a forward segment, or of the residual from a row on, with respect to a value
    from a column on.
    """

    output: str
    input: Key
    row: int
    block: Place
    stride: int
    rows: int
    columns: int
    column: int


@dataclass
class Links:
    """The derivatives that a segment has."""

    locals: list[Local] = field(default_factory=list)
    system: System | None = None
    #: Of its increment, if that may be cut.
    parts: Parts | None = None


def local(block: Place, matrix: SubMatrix, part: Part) -> Local:
    """The columns of a variable in a matrix of a block."""
    column = part.first + matrix.site * part.apart - matrix.column
    at = block.from_(matrix.at + column, 0)
    first = matrix.site * part.piece
    return Local("", part.name, matrix.row, at, matrix.stride, matrix.rows, part.piece, first)
