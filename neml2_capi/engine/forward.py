"""A forward segment: one graph, and its derivatives by two others."""

from __future__ import annotations

import numpy as np

from neml2_capi._ffi.tensor import Array
from neml2_capi.engine import artifact
from neml2_capi.engine.batch import Batch
from neml2_capi.engine.blocks import Block, BlockShape, lumped
from neml2_capi.engine.package import Package
from neml2_capi.engine.scope import Scope
from neml2_capi.engine.sensitivity import PlacedPairs


class ForwardSegment:
    """Makes its outputs from its inputs and parameters."""

    def __init__(self, segment: artifact.ForwardSegment, scope: Scope) -> None:
        self.inputs, self.outputs = segment.inputs, segment.outputs
        self.parameters = segment.parameters
        self.package = scope.load(segment.package)
        scope.declare_graph(segment, self.package)
        self.jacobian = self.parameter_jacobian = None
        self.pairs: list[BlockShape] = []
        if segment.jacobian_package:
            self.jacobian = scope.load(segment.jacobian_package)
            self.by_values = PlacedPairs(
                segment.pairs, self.jacobian, len(self.outputs), False, scope.shape_of
            )
            self.by_values.shapes = [self._tell_coupled_sites(s) for s in self.by_values.shapes]
            self.pairs += self.by_values.shapes
        if segment.parameter_jacobian_package:
            self.parameter_jacobian = scope.load(segment.parameter_jacobian_package)
            self.by_parameters = PlacedPairs(
                segment.parameter_pairs, self.parameter_jacobian, 0, True, scope.shape_of
            )
            self.pairs += self.by_parameters.shapes

    @property
    def packages(self) -> list[Package]:
        all_packages = (self.package, self.jacobian, self.parameter_jacobian)
        return [package for package in all_packages if package]

    @property
    def uniform_parameters(self) -> list[str]:
        """Parameters that a package takes as one value for all points of a run."""
        first = len(self.inputs)
        return [
            name
            for package in self.packages
            for name, slot in zip(self.parameters, package.inputs[first:], strict=True)
            if not slot.batched
        ]

    def run(self, batch: Batch) -> list[Block]:
        """Make the outputs; returns the derivatives that the batch asks for, as were compiled."""
        arguments = [batch.values[name] for name in self.inputs]
        arguments += [batch.parameters[name] for name in self.parameters]
        blocks: list[Block] = []
        if batch.by_values and self.jacobian:
            returned = self.jacobian(batch.points, arguments)
            blocks += self.by_values.blocks(returned[len(self.outputs) :])
        else:
            returned = self.package(batch.points, arguments)
        if batch.by_parameters and self.parameter_jacobian:
            blocks += self.by_parameters.blocks(self.parameter_jacobian(batch.points, arguments))
        batch.values.update(zip(self.outputs, returned, strict=False))
        return blocks

    def _tell_coupled_sites(self, shape: BlockShape) -> BlockShape:
        """Derivatives are compiled for one change at all sites of an input. Where a site of the
        output depends on its own site of the input only, that is the derivative at each site. Does
        it? Change the input at its first site, and see what changes."""
        if shape.lumped or 1 in (shape.input_sites, shape.output_sites):
            return shape
        number, output = self.inputs.index(str(shape.input)), self.outputs.index(shape.output)

        def other_sites(value: float) -> Array:
            inputs = self.package.filled(2)
            changed = inputs[number].reshape(2, shape.input_sites, shape.columns)
            changed[0, 0] = value
            inputs[number] = changed.reshape(inputs[number].shape)
            returned = self.package(2, self._by_point(inputs))[output]
            return returned.reshape(2, shape.output_sites, shape.rows)[0, 1:]

        uncoupled = np.array_equal(other_sites(0.5), other_sites(0.75), equal_nan=True)
        return shape if uncoupled else lumped(shape)

    def _by_point(self, inputs: list[Array]) -> list[Array]:
        return [
            array if slot.batched else np.broadcast_to(array, (2, *array.shape))
            for array, slot in zip(inputs, self.package.inputs, strict=True)
        ]
