"""Derivatives of the unknowns at a solution, by the implicit function theorem.

With r(u, g, p) = 0 and A = dr/du: du/dg = -A^-1 dr/dg, and likewise for parameters p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.engine import krylov
from neml2_capi.engine.artifact import Pair, Sensitivity
from neml2_capi.engine.blocks import Block, BlockShape, Promoted, block_shape, dense_shape
from neml2_capi.engine.operands import Operands
from neml2_capi.engine.package import Package
from neml2_capi.engine.packing import Packing, flat

#: The point shape of a value, by its name, or of a parameter.
Shapes = Callable[[str | Promoted], tuple[int, ...]]


class PlacedPairs:
    """Pairs that are outputs of a package, or parts of matrices."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        package: Package | None,
        first: int,
        of_parameter: bool,
        shape_of: Shapes,
    ) -> None:
        """`package`: whose outputs they are, from number `first` on; or None."""
        self.pairs = pairs
        self.shapes: list[BlockShape] = []
        for number, pair in enumerate(pairs):
            key = Promoted(pair.input) if of_parameter else pair.input
            output, input = shape_of(pair.output), shape_of(key)
            if package is None or pair.matrix is not None:
                self.shapes.append(dense_shape(pair.output, key, output, input))
            else:
                slot = package.outputs[first + number]
                sizes = int(np.prod(output)), int(np.prod(input))
                self.shapes.append(block_shape(pair, slot, *sizes, of_parameter))

    def blocks(self, tensors: Sequence[Array]) -> list[Block]:
        """Return the blocks in what the package returned."""
        return [
            Block.of(shape, tensors[number])
            if pair.matrix is None
            else _part(shape, tensors[pair.matrix], pair.row, pair.column)
            for number, (pair, shape) in enumerate(zip(self.pairs, self.shapes, strict=True))
        ]

    def parts(self, matrix: Array) -> list[Block]:
        """Return the blocks in one matrix for each point."""
        return [
            _part(shape, matrix, pair.row, pair.column)
            for pair, shape in zip(self.pairs, self.shapes, strict=True)
        ]


def _part(shape: BlockShape, matrix: Array, row: int, column: int) -> Block:
    rows, columns = shape.output_size, shape.input_size
    return Block.of(shape, matrix[:, row : row + rows, column : column + columns])


class CompiledSensitivity:
    """Derivatives from one package, as before schema 12."""

    def __init__(
        self, sensitivity: Sensitivity, leaf: Path, of_parameter: bool, shape_of: Shapes
    ) -> None:
        self.package = Package(leaf / sensitivity.block_package)
        self.pairs = PlacedPairs(sensitivity.pairs, self.package, 0, of_parameter, shape_of)

    def blocks(self, u: Array, operands: Operands) -> list[Block]:
        return self.pairs.blocks(self.package(len(u), operands.at(u)))


class ParameterSensitivity:
    """Derivatives by promoted parameters, each with one value per point."""

    def __init__(self, sensitivity: Sensitivity, leaf: Path, shape_of: Shapes) -> None:
        self.operator = Package(leaf / sensitivity.operator_package)
        self.krylov = sensitivity.krylov
        name = sensitivity.solve_package
        self.solve = Package(leaf / name) if name else None
        self.pairs = PlacedPairs(sensitivity.pairs, self.solve, 0, True, shape_of)

    def blocks(self, u: Array, operands: Operands) -> list[Block]:
        a, b = self.operator(len(u), operands.at(u))
        if self.krylov:
            return self.pairs.parts(-krylov.solve_columns(self.krylov, a, b))
        assert self.solve is not None
        return self.pairs.blocks(self.solve(len(u), [a, b]))


class GivenSensitivity:
    """Derivatives by the givens."""

    def __init__(
        self,
        sensitivity: Sensitivity,
        leaf: Path,
        jacobian: Package,
        step_solve: Package | None,
        packings: tuple[Packing, Packing, Packing],
        shape_of: Shapes,
    ) -> None:
        self.jacobian, self.step_solve = jacobian, step_solve
        self.operator = Package(leaf / sensitivity.operator_package)
        self.krylov = sensitivity.krylov
        name = sensitivity.solve_package
        self.solve = Package(leaf / name) if name else None
        self.unknowns, self.givens, self.residuals = packings
        self.pairs = PlacedPairs(sensitivity.pairs, self.solve, 0, False, shape_of)
        self.all_pairs = PlacedPairs(self._all(), None, 0, False, shape_of)

    def _all(self) -> list[Pair]:
        def placed(packing: Packing) -> list[tuple[str, tuple[int, ...], int]]:
            ends = np.cumsum([np.prod(v.point_shape, dtype=int) for v in packing.variables])
            begins = [0, *(int(end) for end in ends[:-1])]
            return [
                (v.name, v.point_shape, begin)
                for v, begin in zip(packing.variables, begins, strict=True)
            ]

        return [
            Pair(unknown, given, shape, by, False, row, column, None)
            for unknown, shape, row in placed(self.unknowns)
            for given, by, column in placed(self.givens)
        ]

    def blocks(self, u: Array, operands: Operands, every: bool = False) -> list[Block]:
        """At the solution `u`, of the compiled pairs; or of `every` unknown by every given."""
        arguments = operands.at(u)
        a = self.jacobian(len(u), arguments)[: -len(self.residuals.groups)]
        b = self.operator(len(u), arguments)
        every = every and len(self.pairs.pairs) < len(self.all_pairs.pairs)
        if self.krylov:
            dense, right = self._dense(a), np.concatenate(b, axis=-1)
            x = -krylov.solve_columns(self.krylov, dense, right)
            return (self.all_pairs if every else self.pairs).parts(x)
        if every:
            return self.all_pairs.parts(self._by_columns(a, b))
        assert self.solve is not None
        return self.pairs.blocks(self.solve(len(u), [*a, *b]))

    def _dense(self, a: Sequence[Array]) -> Array:
        if len(a) == 1 and a[0].ndim == 3:
            return a[0]
        raise FatalError(
            "an iterative sensitivity solver needs one dense group of unknowns. Compile the model "
            "with a direct sensitivity solver",
            lib.NEML2_ERROR_UNSUPPORTED,
            self.operator.name,
        )

    def _by_columns(self, a: Sequence[Array], b: Sequence[Array]) -> Array:
        """-A^-1 B by the package of the Newton step, one run for each given component."""
        if self.step_solve is None or not (self.unknowns.dense and self.givens.dense):
            raise FatalError(
                "the tangent through substeps needs the derivatives of all unknowns with respect "
                "to all givens. Compile the model with neml2-compile -d : for all pairs",
                lib.NEML2_ERROR_UNSUPPORTED,
                self.operator.name,
            )
        groups = len(self.givens.groups)
        columns = []
        for j in range(groups):
            of_group = [b[k * groups + j] for k in range(len(self.residuals.groups))]
            for c in range(of_group[0].shape[-1]):
                right = [-block[..., c] for block in of_group]
                columns.append(flat(self.step_solve(len(right[0]), [*a, *right])))
        return np.stack(columns, axis=-1)
