"""An implicit segment: the unknowns that make a residual vanish, and their derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.engine import krylov
from neml2_capi.engine.blocks import Block, Pairs, split
from neml2_capi.engine.description import Promoted, Scope, Values, point_shape
from neml2_capi.engine.newton import Newton, norms
from neml2_capi.engine.package import Package
from neml2_capi.engine.packing import Packing, flat
from neml2_capi.engine.results import Batch, Outcome


class ImplicitSegment:
    """Solves for its unknowns by Newton's method, in one step."""

    def __init__(self, described: Any, scope: Scope) -> None:
        self.described = described
        self.unknowns, self.givens = Packing(described.unknowns), Packing(described.givens)
        self.residuals = Packing(described.residuals)
        self.outputs = [v.name for v in self.unknowns.variables]
        self.parameters = [Promoted(name) for name in described.parameters]
        self.dtype = scope.dtype
        for v in (*self.givens.variables, *self.unknowns.variables):
            scope.shapes[v.name] = point_shape(v)
        load = scope.load
        self.residual = scope.package(described.residual_package)
        self.jacobian, self.solve = load(described.jacobian_package), load(described.solve_package)
        self.step, self.matvec = load(described.step_package), load(described.matvec_package)
        self.setup = load(described.preconditioner_setup_package)
        self.apply = load(described.preconditioner_apply_package)
        predictor = described.predictor
        self.predictor = load(predictor.package) if predictor else None
        if predictor and self.predictor:
            scope.note(predictor.inputs, self.predictor.inputs)
            scope.note(predictor.outputs, self.predictor.outputs)
        by_values, by_parameters = described.given_sensitivity, described.parameter_sensitivity
        # None if no derivatives were compiled.
        self.by_values = by_values and Sensitivity(self, by_values, scope)
        self.by_parameters = by_parameters and Sensitivity(self, by_parameters, scope, True)

    def run(self, batch: Batch) -> list[Block]:
        """Solve; returns the derivatives that the batch asks for, as far as they were compiled."""
        outcome, blocks = self.solve_all(batch)
        # An iterate that failed must not pass for a solution.
        failed = outcome.status != lib.NEML2_OK
        for name, value in self.unknowns.unpack(outcome.u).items():
            at_failed = failed.reshape(-1, *[1] * (value.ndim - 1))
            batch.unknowns[name] = np.where(at_failed, value, np.nan)
            batch.values[name] = np.where(at_failed, np.nan, value)
        batch.add(outcome)
        return blocks

    def solve_all(self, batch: Batch) -> tuple[Outcome, list[Block]]:
        """Solve for all points, and differentiate."""
        values, newton = self.predict(batch.values), self.newton_of(batch)
        if batch.guesses is not None:
            ordinary = Systems(self, values, newton)
            newton = replace(newton, reference=norms(ordinary.residual(ordinary.guess())))
            for name in self.outputs:
                guess = batch.guesses[name]
                values[name] = np.where(np.isnan(guess), values[name], guess)
        batch.values = values
        outcome = self.solve_from(values, newton)
        return outcome, self.differentiate(outcome, values, batch)

    def newton_of(self, batch: Batch) -> Newton:
        """The solver of a batch of points."""
        return batch.newton

    def predict(self, given: Values) -> Values:
        """Add the initial guess: what is there of the unknowns, or zero; then the predictor's."""
        points = len(next(iter(given.values())))
        values = dict(given)
        for v in self.unknowns.variables:
            values.setdefault(v.name, np.zeros((points, *point_shape(v)), self.dtype))
        if self.predictor is None:
            return values
        predictor, loop = self.described.predictor, self.described.feedback
        if loop:
            values[loop.input] = np.zeros((points, *point_shape(loop)), self.dtype)
        for _ in range(loop.iterations if loop else 1):
            keys = [*predictor.inputs, *map(Promoted, predictor.parameters)]
            returned = self.predictor(points, [values[key] for key in keys])
            values.update(zip(predictor.outputs, returned, strict=True))
            if loop:
                values[loop.input] = values[loop.output]
        return values

    def solve_from(self, values: Values, newton: Newton) -> Outcome:
        """Solve from the initial guess in `values`."""
        system = Systems(self, values, newton)
        replace(newton, hook=system.note)(system)
        return system.outcome

    def arguments(self, u: Array, values: Values) -> list[Array]:
        """What a package of the residual takes, for the unknowns `u`, (points, size)."""
        parameters = [values[key] for key in self.parameters]
        return [*self.unknowns.split(u), *self.givens.pack(values), *parameters]

    def differentiate(
        self, outcome: Outcome, values: Values, batch: Batch, every: bool = False
    ) -> list[Block]:
        """The derivatives that the batch asks for, at a solution; NaN at points that have none.

        `every`: of all unknowns with respect to all givens, if that is possible, in any case.
        """
        arguments = self.arguments(outcome.u, values)
        blocks: list[Block] = []
        if self.by_values and (batch.by_values or every):
            blocks += self.by_values.blocks(arguments, every)
        if self.by_parameters and batch.by_parameters:
            blocks += self.by_parameters.blocks(arguments)
        failed = (outcome.status != lib.NEML2_OK).reshape(-1, 1, 1, 1)
        return [Block(shape, np.where(failed, np.nan, found)) for shape, found in blocks]


class Systems:
    """The systems of a segment, for the points of `values`: what Newton solves.

    Packages return -r, and the step that solves A du = -r with A = dr/du.
    """

    def __init__(self, segment: ImplicitSegment, values: Values, newton: Newton) -> None:
        self.segment, self.values, self.miters = segment, values, newton.miters
        self.together = newton.whole_batch  # no point stops before all have converged
        self.points = len(next(iter(values.values())))
        self.norms: list[Array] = []  # of each iterate
        # Of the preconditioner of an iterative solver.
        self.state: list[Array] = []
        self.outdated = np.ones(self.points, dtype=bool)
        self.singular = np.zeros(self.points, dtype=bool)

    def guess(self) -> Array:
        return flat(self.segment.unknowns.pack(self.values))

    def residual(self, u: Array) -> Array:
        return -flat(self.segment.residual(self.points, self.segment.arguments(u, self.values)))

    def step(self, u: Array) -> tuple[Array, NDArray[np.bool_]]:
        s, arguments = self.segment, self.segment.arguments(u, self.values)
        if s.step:  # one package, as before schema 12
            returned, singular = s.step.solve(self.points, arguments)
            du = flat(returned[: len(s.unknowns.groups)])
            return du - u if s.described.step_is_taken else du, singular
        residual = -self.residual(u)
        if s.described.krylov and s.matvec:
            return self._iterate(s.matvec, arguments, residual), self.singular
        assert s.jacobian is not None and s.solve is not None
        groups = s.residuals.split(residual)
        operator = s.jacobian(self.points, arguments)[: -len(groups)]
        returned, singular = s.solve.solve(self.points, [*operator, *groups])
        return flat(returned), singular

    def _iterate(self, product: Package, arguments: list[Array], residual: Array) -> Array:
        """An iterative solve over products of the operator with vectors."""
        s, settings = self.segment, self.segment.described.krylov

        def matvec(v: Array) -> Array:
            return flat(product(self.points, [*arguments, *s.unknowns.split(v)]))

        def precondition(r: Array) -> Array:
            return s.apply(self.points, [*self.state, r])[0] if s.apply else r

        if s.setup is not None:
            self._set_up(s.setup, arguments)
        du, iterations = krylov.solve(settings, matvec, precondition, residual, self.together)
        if self.together:
            iterations = np.full_like(iterations, iterations.max(initial=0))
        if settings.cache == "none":
            self.outdated[:] = True
        elif settings.cache == "max_its":
            self.outdated = iterations > settings.cache_max_its
        return du

    def _set_up(self, setup: Package, arguments: list[Array]) -> None:
        due = self.outdated
        given = [argument[due] for argument in arguments[: len(setup.inputs)]]
        state, self.singular[due] = setup.solve(int(due.sum()), given)
        self.state = self.state or [np.empty((self.points, *s.shape[1:]), s.dtype) for s in state]
        for kept, fresh in zip(self.state, state, strict=True):
            kept[due] = fresh
        self.outdated = np.zeros_like(due)

    def note(self, iteration: int, u: Array, norms: Array) -> None:
        self.norms.append(norms)

    def accept(self, u: Array, status: Array, iterations: Array) -> None:
        norms, last = np.stack(self.norms, axis=1), iterations[:, np.newaxis]
        history = np.full((self.points, self.miters), np.nan)
        history[:, : norms.shape[1]] = np.where(np.arange(norms.shape[1]) <= last, norms, np.nan)
        norm = np.take_along_axis(norms, last, axis=1)[:, 0]
        status = status.astype(np.int32)
        self.outcome = Outcome(u, status, iterations, norms[:, 0], norm, history)


class Sensitivity:
    """Derivatives of the unknowns at a solution, by the implicit function theorem.

    With r(u, g, p) = 0 and A = dr/du: du/dg = -A^-1 dr/dg, and likewise for parameters p.
    """

    def __init__(
        self, segment: ImplicitSegment, described: Any, scope: Scope, of_parameters: bool = False
    ) -> None:
        self.segment, self.of_parameters = segment, of_parameters
        self.krylov = described.krylov
        self.block = scope.load(described.block_package)  # all in one, as before schema 12
        self.operator = scope.load(described.operator_package)
        self.solve = scope.load(described.solve_package)
        self.pairs = Pairs(described.pairs, self.block or self.solve, scope, of_parameters)

    def blocks(self, arguments: list[Array], every: bool = False) -> list[Block]:
        """Of the compiled pairs; or of `every` unknown by every given."""
        points, outputs, inputs = len(arguments[0]), self.segment.unknowns, self.segment.givens
        if self.block:
            return self.pairs.among(self.block(points, arguments))
        assert self.operator is not None
        b = self.operator(points, arguments)
        if self.of_parameters:
            a, b = b[:1], b[1:]
        else:
            assert self.segment.jacobian is not None
            a = self.segment.jacobian(points, arguments)[: -len(self.segment.residuals.groups)]
        every = every and len(self.pairs.pairs) < len(outputs.sizes) * len(inputs.sizes)
        if not self.krylov and not every:
            assert self.solve is not None
            return self.pairs.among(self.solve(points, [*a, *b]))
        matrix, right = self._dense(a), self._dense(b)
        x = (
            krylov.solve_columns(self.krylov, matrix, right)
            if self.krylov
            else solve(matrix, right)
        )
        return split(-x, outputs.sizes, inputs.sizes) if every else self.pairs.within(-x)

    def _dense(self, blocks: list[Array]) -> Array:
        """One matrix of the blocks of all groups, row by row."""
        rows = 1 if self.of_parameters else len(self.segment.residuals.groups)
        if any(block.ndim != 3 for block in blocks):
            assert self.operator is not None
            raise FatalError(
                "an iterative sensitivity solver, and the tangent through substeps of a model that "
                "was not compiled for all pairs, need dense groups of unknowns and givens. Compile "
                "the model with neml2-compile -d : for all pairs, and a direct sensitivity solver",
                lib.NEML2_ERROR_UNSUPPORTED,
                self.operator.name,
            )
        columns = len(blocks) // rows
        return np.block([blocks[row * columns : (row + 1) * columns] for row in range(rows)])


def solve(a: Array, b: Array) -> Array:
    """A^-1 B for each point; NaN if A is singular."""
    singular = np.linalg.slogdet(a)[0] == 0
    a = np.where(singular[:, np.newaxis, np.newaxis], np.nan, a)
    return np.linalg.solve(a, b)
