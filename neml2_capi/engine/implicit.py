"""An implicit segment: the unknowns that make a residual vanish."""

from __future__ import annotations

import numpy as np

from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.engine import artifact, newton
from neml2_capi.engine.batch import Batch
from neml2_capi.engine.blocks import Block, BlockShape
from neml2_capi.engine.operands import Operands
from neml2_capi.engine.package import Package
from neml2_capi.engine.packing import Packing, flat
from neml2_capi.engine.scope import Scope
from neml2_capi.engine.sensitivity import (
    CompiledSensitivity,
    GivenSensitivity,
    ParameterSensitivity,
)
from neml2_capi.engine.substep import Substepping
from neml2_capi.engine.systems import DirectSystem, KrylovSystem, StepSystem

Values = dict[str, Array]


class ImplicitSegment:
    """Solves for its unknowns by Newton's method, in one step or in substeps."""

    def __init__(self, segment: artifact.ImplicitSegment, scope: Scope) -> None:
        self.segment = segment
        self.unknowns, self.givens = Packing(segment.unknowns), Packing(segment.givens)
        self.residuals = Packing(segment.residuals)
        self.outputs = tuple(v.name for v in self.unknowns.variables)
        self._load(scope)
        scope.require(v.name for v in self.givens.variables)
        scope.provide(self.outputs)
        if segment.feedback:
            scope.provide([segment.feedback.input])
        for v in (*self.givens.variables, *self.unknowns.variables):
            scope.declare(v.name, v.point_shape, scope.dtype, segment.residual_package)
        self.dtype = scope.dtype
        if segment.predictor and self.predictor:
            scope.declare_graph(segment.predictor, self.predictor)
        self.given_sensitivity = self._given_sensitivity(scope)
        self.parameter_sensitivity = self._parameter_sensitivity(scope)

    def _load(self, scope: Scope) -> None:
        self.loaded: dict[str, Package] = {}

        def load(name: str) -> Package | None:
            if name:
                self.loaded[name] = scope.load(name)
            return self.loaded.get(name)

        s = self.segment
        self.residual = scope.load(s.residual_package)
        self.loaded[s.residual_package] = self.residual
        self.jacobian, self.solve = load(s.jacobian_package), load(s.solve_package)
        self.step, self.matvec = load(s.step_package), load(s.matvec_package)
        self.setup = load(s.preconditioner_setup_package)
        self.apply = load(s.preconditioner_apply_package)
        self.predictor = load(s.predictor.package) if s.predictor else None

    def _given_sensitivity(self, scope: Scope) -> GivenSensitivity | CompiledSensitivity | None:
        sensitivity = self.segment.given_sensitivity
        if sensitivity is None:
            return None
        if sensitivity.block_package:
            return CompiledSensitivity(sensitivity, scope.leaf, False, scope.shape_of)
        assert self.jacobian is not None
        packings = (self.unknowns, self.givens, self.residuals)
        return GivenSensitivity(
            sensitivity, scope.leaf, self.jacobian, self.solve, packings, scope.shape_of
        )

    def _parameter_sensitivity(
        self, scope: Scope
    ) -> ParameterSensitivity | CompiledSensitivity | None:
        sensitivity = self.segment.parameter_sensitivity
        if sensitivity is None:
            return None
        if sensitivity.block_package:
            return CompiledSensitivity(sensitivity, scope.leaf, True, scope.shape_of)
        return ParameterSensitivity(sensitivity, scope.leaf, scope.shape_of)

    @property
    def pairs(self) -> list[BlockShape]:
        """The derivatives that were compiled."""
        both = (self.given_sensitivity, self.parameter_sensitivity)
        return [shape for one in both if one for shape in one.pairs.shapes]

    @property
    def packages(self) -> list[Package]:
        return list(self.loaded.values())

    @property
    def uniform_parameters(self) -> list[str]:
        """Parameters that the residual takes as one value for all points of a run."""
        first = len(self.unknowns.groups) + len(self.givens.groups)
        slots = self.residual.inputs[first:]
        names = self.segment.parameters
        return [n for n, slot in zip(names, slots, strict=True) if not slot.batched]

    def run(self, batch: Batch) -> list[Block]:
        """Solve; returns the derivatives that the batch asks for, as far as they were compiled."""
        if self.segment.max_substepping_level > 0:
            outcome, blocks = Substepping(self, batch).run()
        else:
            batch.values = self.predict(batch.values, batch.parameters)
            outcome, operands = self.solve_from(batch.values, batch.parameters, batch.settings)
            wanted = batch.by_values, batch.by_parameters
            blocks = self.differentiate(outcome.u, operands, *wanted, outcome.converged)
        self.finish(outcome, batch)
        return blocks

    def predict(self, given: Values, parameters: Values) -> Values:
        """Add the initial guess: what is there of the unknowns, or zero; then the predictor's."""
        points = len(next(iter(given.values())))
        values = dict(given)
        for v in self.unknowns.variables:
            values.setdefault(v.name, np.zeros((points, *v.point_shape), self.dtype))
        predictor, loop = self.segment.predictor, self.segment.feedback
        if predictor is None or self.predictor is None:
            return values
        if loop:
            shape = (points, *loop.sub_batch_shape, *loop.base_shape)
            values[loop.input] = np.zeros(shape, self.dtype)
        for _ in range(loop.iterations if loop else 1):
            arguments = [values[name] for name in predictor.inputs]
            arguments += [parameters[name] for name in predictor.parameters]
            returned = self.predictor(points, arguments)
            values.update(zip(predictor.outputs, returned, strict=True))
            if loop:
                values[loop.input] = values[loop.output]
        return values

    def solve_from(
        self, values: Values, parameters: Values, settings: newton.Settings
    ) -> tuple[newton.Outcome, Operands]:
        """Solve from the initial guess in `values`."""
        operands = Operands(
            self.unknowns,
            self.givens.pack(values),
            [parameters[name] for name in self.segment.parameters],
        )
        guess = flat(self.unknowns.pack(values))
        return newton.solve(self._system(operands, settings), guess, settings), operands

    def differentiate(
        self,
        u: Array,
        operands: Operands,
        by_values: bool,
        by_parameters: bool,
        rows: Array,
        every: bool = False,
    ) -> list[Block]:
        """The derivatives at a solution at the points `rows`; NaN at the others.

        `every`: of all unknowns with respect to all givens, where that is possible.
        """
        blocks: list[Block] = []
        solution, operands = u[rows], operands.of_rows(rows)
        if by_values and isinstance(self.given_sensitivity, GivenSensitivity):
            blocks += self.given_sensitivity.blocks(solution, operands, every)
        elif by_values and self.given_sensitivity:
            blocks += self.given_sensitivity.blocks(solution, operands)
        if by_parameters and self.parameter_sensitivity:
            blocks += self.parameter_sensitivity.blocks(solution, operands)
        return [_spread(block, rows, len(u)) for block in blocks]

    def finish(self, outcome: newton.Outcome, batch: Batch) -> None:
        """Hand over the unknowns; those of failed points are NaN, lest they pass for a solution."""
        failed = outcome.status != lib.NEML2_OK
        values = self.unknowns.unpack(self.unknowns.split(outcome.u))
        for name, value in values.items():
            batch.unknowns[name] = np.full_like(value, np.nan)
            batch.unknowns[name][failed] = value[failed]
            batch.values[name] = value.copy()
            batch.values[name][failed] = np.nan
        batch.add(outcome)

    def _system(self, operands: Operands, settings: newton.Settings) -> newton.System:
        s = self.segment
        if self.step:
            return StepSystem(self.residual, operands, self.step, s.step_is_taken)
        if s.krylov and self.matvec:
            return KrylovSystem(
                self.residual,
                operands,
                self.matvec,
                self.setup,
                self.apply,
                s.krylov,
                settings.whole_batch,
            )
        assert self.jacobian is not None and self.solve is not None
        return DirectSystem(self.residual, operands, self.jacobian, self.solve, self.residuals)


def _spread(block: Block, rows: Array, points: int) -> Block:
    """A block of the points `rows` as one of all points, NaN at the others."""
    matrices = block.matrices
    whole = np.full((points, *matrices.shape[1:]), np.nan, matrices.dtype)
    whole[rows] = matrices
    return Block(block.shape, whole)
