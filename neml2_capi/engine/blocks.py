"""Blocks of a segment's Jacobian, and their products with directions: the chain rule.

A value has one or several *sites*, the positions on its sub-batch axes, and base components
at each.
A direction of a value is an array (points, size, count) of `count` columns for each point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.engine.description import Key, Promoted, Scope, Values
from neml2_capi.engine.package import Package, Slot
from neml2_capi.engine.packing import split_axis


class BlockShape(NamedTuple):
    """Shape of a block, which maps an input to an output at one point."""

    output: str
    input: Key
    rows: int  # components of the output at one site
    columns: int  # components of the input at one site
    batched: bool = True  # else the same for all points
    sites: int = 1  # matrices; 1: the same at every site
    output_sites: int = 1
    input_sites: int = 1
    # The derivative for one change at all sites of the input: more is not known.
    lumped: bool = False

    def refuse(self, why: str) -> FatalError:
        """The error for this derivative, whose name is OUTPUT:INPUT."""
        by = self.input.parameter if isinstance(self.input, Promoted) else self.input
        name = f"{self.output}:{by}"
        return FatalError(why.format(name), lib.NEML2_ERROR_UNSUPPORTED, name)

    def refuse_sites(self, why: str) -> FatalError:
        """The error if a lumped derivative does not tell what is asked."""
        return self.refuse(
            "the package gives the derivative {} for the same change at all "
            f"{self.input_sites} sub-batch sites of the input; {why}. Differentiate a model whose "
            "output keeps the sub-batch axes, and reduce it afterwards"
        )


def block_shape(pair: Any, key: Key, slot: Slot, output_size: int, input_size: int) -> BlockShape:
    """Return the shape for a pair that is an output of a package."""
    rows, columns = prod(pair.output_base_shape), prod(pair.input_base_shape)
    sites, to, by = prod(slot.shape) // (rows * columns), output_size // rows, input_size // columns
    paired = 1 in (to, by) or to == by
    # Cells and the edges between them are other sites: each edge depends on several cells.
    lumped = not paired or (by > 1 and to == 1 and sites == 1)
    shape = BlockShape(pair.output, key, rows, columns, slot.batched, sites, to, by, lumped)
    if sites not in ((1, to, by) if paired else (1, to)):
        raise shape.refuse(
            f"the derivative {{}} has {sites} sub-batch sites, between an output of "
            f"{to} and an input of {by}: expected the output's, or one"
        )
    return shape


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
                raise s.refuse_sites("the tangent is not the same at all of them")
            x = x[:, :1]
        return _to_sites(self.matrices @ x, s.output_sites)

    def pull(self, direction: Array) -> Array:
        """The transpose: from a direction of the output to one of the input."""
        s = self.shape
        if s.lumped:
            raise s.refuse_sites("an adjoint at each of them cannot be told")
        w = direction.reshape(len(direction), s.output_sites, s.rows, direction.shape[-1])
        return _to_sites(self.matrices.swapaxes(-1, -2) @ w, s.input_sites)


def _to_sites(y: Array, sites: int) -> Array:
    """(points, any sites, size, count) as (points, sites * size, count)."""
    points, _, size, count = y.shape
    if sites == 1:
        y = y.sum(axis=1, keepdims=True)
    return np.broadcast_to(y, (points, sites, size, count)).reshape(points, sites * size, count)


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


def split(matrix: Array, outputs: Mapping[str, int], inputs: Mapping[Any, int]) -> list[Block]:
    """The blocks of a matrix per point of all outputs by all inputs, whose sizes are given."""
    return [
        Block.of(BlockShape(output, input, *block.shape[1:]), block)
        for output, rows in zip(outputs, split_axis(matrix, outputs.values(), 1), strict=True)
        for input, block in zip(inputs, split_axis(rows, inputs.values(), 2), strict=True)
    ]


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
        for number, pair in enumerate(pairs, first):
            key = Promoted(pair.input) if of_parameters else pair.input
            sizes = prod(scope.shapes[pair.output]), prod(scope.shapes[key])
            if package is None or pair.matrix is not None:
                self.shapes.append(BlockShape(pair.output, key, *sizes))
            else:
                self.shapes.append(block_shape(pair, key, package.outputs[number], *sizes))

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
    rows = slice(pair.row, pair.row + shape.rows)
    return Block.of(shape, matrix[:, rows, pair.column : pair.column + shape.columns])
