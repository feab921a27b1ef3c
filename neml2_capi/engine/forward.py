"""A forward segment: one graph, and its derivatives by two others."""

from __future__ import annotations

from typing import Any

from neml2_capi.engine.blocks import Block, BlockShape, Pairs
from neml2_capi.engine.coupled_sites import couples_sites
from neml2_capi.engine.description import Key, Promoted, Scope
from neml2_capi.engine.results import Batch


class ForwardSegment:
    """Makes its outputs from its inputs and parameters."""

    def __init__(self, described: Any, scope: Scope) -> None:
        self.inputs, self.outputs = described.inputs, described.outputs
        self.keys: list[Key] = [*self.inputs, *map(Promoted, described.parameters)]
        self.package = scope.package(described.package)
        scope.note(self.inputs, self.package.inputs)
        scope.note(self.outputs, self.package.outputs)
        self.jacobian = scope.load(described.jacobian_package)
        self.parameter_jacobian = scope.load(described.parameter_jacobian_package)
        pairs = described.pairs if self.jacobian else []
        self.by_values = Pairs(pairs, self.jacobian, scope, first=len(self.outputs))
        self.by_values.shapes = [
            shape._replace(lumped=shape.lumped or self._couples_sites(shape))
            for shape in self.by_values.shapes
        ]
        pairs = described.parameter_pairs if self.parameter_jacobian else []
        self.by_parameters = Pairs(pairs, self.parameter_jacobian, scope, of_parameters=True)

    def run(self, batch: Batch) -> list[Block]:
        """Make the outputs; returns the derivatives that the batch asks for, as were compiled."""
        arguments = [batch.values[key] for key in self.keys]
        blocks: list[Block] = []
        if batch.by_values and self.jacobian:
            returned = self.jacobian(batch.points, arguments)
            blocks += self.by_values.among(returned[len(self.outputs) :])
        else:
            returned = self.package(batch.points, arguments)
        if batch.by_parameters and self.parameter_jacobian:
            blocks += self.by_parameters.among(self.parameter_jacobian(batch.points, arguments))
        batch.values.update(zip(self.outputs, returned, strict=False))
        return blocks

    def _couples_sites(self, shape: BlockShape) -> bool:
        if 1 in (shape.input_sites, shape.output_sites):
            return False
        number, output = self.inputs.index(shape.input), self.outputs.index(shape.output)
        return couples_sites(self.package, number, output, shape.input_sites)
