"""Blocks of a segment's Jacobian, and their products with directions: the chain rule.

A value has one or several *sites*, the positions on its sub-batch axes, and base components
at each.
A direction of a value is an array (points, size, count) of `count` columns for each point.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.engine.description import Key, Promoted, Shape, Values
from neml2_capi.engine.package import Package, Slot
from neml2_capi.engine.scope import Scope


class BlockShape(NamedTuple):
    """Shape of a block, which maps an input to an output at one point."""

    output: str
    input: Key
    shape: tuple[int, ...]  # of one point, as the package returns it
    batched: bool  # else the same for all points
    rows: int  # components of the output at one site
    columns: int  # components of the input at one site
    sites: int  # matrices; 1: the same at every site
    output_sites: int
    input_sites: int
    # The derivative for one change at all sites of the input: more is not known.
    lumped: bool

    @property
    def output_size(self) -> int:
        return self.output_sites * self.rows

    @property
    def input_size(self) -> int:
        return self.input_sites * self.columns

    @property
    def name(self) -> str:
        by = self.input.parameter if isinstance(self.input, Promoted) else self.input
        return f"{self.output}:{by}"


def block_shape(pair: Any, key: Key, slot: Slot, output_size: int, input_size: int) -> BlockShape:
    """Return the shape for a pair that is an output of a package."""
    rows, columns = prod(pair.output_base_shape), prod(pair.input_base_shape)
    sites, output_sites, input_sites = (
        prod(slot.shape) // (rows * columns),
        output_size // rows,
        input_size // columns,
    )
    paired = 1 in (output_sites, input_sites) or output_sites == input_sites
    shape = BlockShape(
        output=pair.output,
        input=key,
        shape=slot.shape,
        batched=slot.batched,
        rows=rows,
        columns=columns,
        sites=sites,
        output_sites=output_sites,
        input_sites=input_sites,
        # Cells and the edges between them are other sites: each edge depends on several cells.
        lumped=not paired or (input_sites > 1 and output_sites == 1 and sites == 1),
    )
    if sites not in ((1, output_sites, input_sites) if paired else (1, output_sites)):
        raise FatalError(
            f"the derivative {shape.name} has {sites} sub-batch sites, between an output of "
            f"{output_sites} and an input of {input_sites}: expected the output's, or one",
            lib.NEML2_ERROR_UNSUPPORTED,
            shape.name,
        )
    return shape


def dense_shape(output: str, input: Key, output_shape: Shape, input_shape: Shape) -> BlockShape:
    """Return the shape of a matrix of all components of the output by all of the input."""
    rows, columns = prod(output_shape), prod(input_shape)
    shape = (*output_shape, *input_shape)
    return BlockShape(output, input, shape, True, rows, columns, 1, 1, 1, False)


class Block(NamedTuple):
    """The derivative of one value with respect to another, or to a promoted parameter."""

    shape: BlockShape
    matrices: Array  # (points or 1, sites, rows, columns)

    @classmethod
    def of(cls, shape: BlockShape, array: Array) -> Block:
        """Return one block per point, from what a package returned."""
        if not shape.batched:
            array = array[:1]
        return cls(shape, array.reshape(len(array), shape.sites, shape.rows, shape.columns))

    def push(self, direction: Array) -> Array:
        """The direction of the output that one of the input makes."""
        s = self.shape
        x = direction.reshape(len(direction), s.input_sites, s.columns, direction.shape[-1])
        if s.lumped:
            if not np.array_equal(x, np.broadcast_to(x[:, :1], x.shape), equal_nan=True):
                raise _lumped(s, "the tangent is not the same at all of them")
            x = x[:, :1]
        return _to_sites(self.matrices @ x, s.output_sites)

    def pull(self, direction: Array) -> Array:
        """The transpose: from a direction of the output to one of the input."""
        s = self.shape
        if s.lumped:
            raise _lumped(s, "an adjoint at each of them cannot be told")
        w = direction.reshape(len(direction), s.output_sites, s.rows, direction.shape[-1])
        return _to_sites(self.matrices.swapaxes(-1, -2) @ w, s.input_sites)


def _to_sites(y: Array, sites: int) -> Array:
    """(points, any sites, size, count) as (points, sites * size, count)."""
    points, _, size, count = y.shape
    if sites == 1:
        y = y.sum(axis=1, keepdims=True)
    return np.broadcast_to(y, (points, sites, size, count)).reshape(points, sites * size, count)


def _lumped(shape: BlockShape, why: str) -> FatalError:
    return FatalError(
        f"the package gives the derivative {shape.name} for the same change at all "
        f"{shape.input_sites} sub-batch sites of the input; {why}. Differentiate a model whose "
        "output keeps the sub-batch axes, and reduce it afterwards",
        lib.NEML2_ERROR_UNSUPPORTED,
        shape.name,
    )


def push_forward(blocks: Iterable[Block], outputs: Iterable[str], directions: Values) -> Values:
    """Replace directions of a segment's inputs by directions of its outputs.

    A direction that is not there is zero.
    """
    made: Values = {key: d for key, d in directions.items() if key not in set(outputs)}
    for block in blocks:
        if block.shape.input in directions:
            change = block.push(directions[block.shape.input])
            made[block.shape.output] = made.get(block.shape.output, 0.0) + change
    return made


def pull_back(blocks: Iterable[Block], outputs: Iterable[str], directions: Values) -> Values:
    """The transpose: directions of a segment's outputs go to its inputs, and are used up."""
    left: Values = {key: d for key, d in directions.items() if key not in set(outputs)}
    for block in blocks:
        if block.shape.output in directions:
            change = block.pull(directions[block.shape.output])
            left[block.shape.input] = left.get(block.shape.input, 0.0) + change
    return left


class Pairs:
    """Derivatives that are outputs of a package, or parts of matrices."""

    def __init__(
        self,
        pairs: Sequence[Any],
        package: Package | None,
        scope: Scope,
        of_parameters: bool = False,
        first: int = 0,
    ) -> None:
        """`package`: whose outputs they are, from number `first` on; None: parts of one matrix."""
        self.pairs = pairs
        self.shapes: list[BlockShape] = []
        for number, pair in enumerate(pairs):
            key = Promoted(pair.input) if of_parameters else pair.input
            output, input = scope.shapes[pair.output], scope.shapes[key]
            if package is None or pair.matrix is not None:
                self.shapes.append(dense_shape(pair.output, key, output, input))
            else:
                slot = package.outputs[first + number]
                self.shapes.append(block_shape(pair, key, slot, prod(output), prod(input)))

    def among(self, tensors: Sequence[Array]) -> list[Block]:
        """The blocks in what the package returned."""
        return [
            Block.of(shape, tensors[number])
            if pair.matrix is None
            else _part(shape, tensors[pair.matrix], pair)
            for number, (pair, shape) in enumerate(zip(self.pairs, self.shapes, strict=True))
        ]

    def within(self, matrix: Array) -> list[Block]:
        """The blocks in one matrix for each point."""
        return [
            _part(shape, matrix, pair) for pair, shape in zip(self.pairs, self.shapes, strict=True)
        ]


def _part(shape: BlockShape, matrix: Array, pair: Any) -> Block:
    rows = slice(pair.row, pair.row + shape.output_size)
    return Block.of(shape, matrix[:, rows, pair.column : pair.column + shape.input_size])
