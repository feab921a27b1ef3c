"""Derivatives of a model from those of its segments.

An output depends on an input where a derivative was compiled for the two: other inputs count as
constants for it, whatever the segments say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neml2_capi._ffi.tensor import Array
from neml2_capi.engine.blocks import (
    Block,
    BlockShape,
    Directions,
    Key,
    identity,
    pull_back,
    push_forward,
)


@dataclass(frozen=True)
class Derivative:
    """A derivative of the model that was compiled, by the names inside."""

    output: str
    input: Key
    shape: BlockShape  # of its block


@dataclass(frozen=True)
class Chain:
    """Derivatives that the segments found for some points."""

    points: int
    outputs: Sequence[Sequence[str]]  # of each segment
    blocks: Sequence[Sequence[Block]]  # of each segment

    def push_forward(self, directions: Directions) -> Directions:
        for outputs, blocks in zip(self.outputs, self.blocks, strict=True):
            directions = push_forward(blocks, outputs, directions)
        return directions

    def pull_back(self, directions: Directions) -> Directions:
        for outputs, blocks in zip(reversed(self.outputs), reversed(self.blocks), strict=True):
            directions = pull_back(blocks, outputs, directions)
        return directions

    def jvp(
        self, derivatives: Sequence[Derivative], tangents: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return tangents by output, (points, size); what has none stands still."""
        result = {}
        for output in dict.fromkeys(d.output for d in derivatives):
            own = [d for d in derivatives if d.output == output]
            directions: Directions = {
                d.input: tangents[d.input][..., np.newaxis]
                for d in own
                if isinstance(d.input, str) and d.input in tangents
            }
            result[output] = self._column(
                self.push_forward(directions), output, own[0].shape.output_size
            )
        return result

    def vjp(
        self, derivatives: Sequence[Derivative], cotangents: Mapping[str, Array]
    ) -> dict[Key, Array]:
        """Return adjoints by input or parameter; what has no cotangent does not count."""
        result = {}
        for by in dict.fromkeys(d.input for d in derivatives):
            own = [d for d in derivatives if d.input == by]
            directions: Directions = {
                d.output: cotangents[d.output][..., np.newaxis]
                for d in own
                if d.output in cotangents
            }
            result[by] = self._column(self.pull_back(directions), by, own[0].shape.input_size)
        return result

    def _column(self, directions: Directions, key: Key, size: int) -> Array:
        if key not in directions:
            return np.zeros((self.points, size))
        return directions[key][..., 0]

    def jacobian(self, derivatives: Sequence[Derivative]) -> list[Array]:
        """Return a block per derivative: (points, *shape), or (1, *shape) where points share it."""
        if len(self.blocks) == 1:  # the blocks of the segment are those of the model
            found = {(block.shape.output, block.shape.input): block for block in self.blocks[0]}
            return [self._own(d, found.get((d.output, d.input))) for d in derivatives]
        by = {d.input: identity(self.points, d.shape.input_size) for d in derivatives}
        pushed = {key: self.push_forward({key: unit}) for key, unit in by.items()}
        return [self._assembled(d, pushed[d.input].get(d.output)) for d in derivatives]

    def _own(self, derivative: Derivative, block: Block | None) -> Array:
        shape = derivative.shape.shape
        if block is None:
            return np.zeros((self.points, *shape))
        return block.matrices.reshape(len(block.matrices), *shape)

    def _assembled(self, derivative: Derivative, direction: Array | None) -> Array:
        shape = self.points, *derivative.shape.shape
        return np.zeros(shape) if direction is None else direction.reshape(shape)
