"""An implicit segment: the unknowns that make a residual vanish, and their derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.engine import krylov
from neml2_capi.engine.blocks import Block, Pairs
from neml2_capi.engine.description import Promoted, Values, point_shape
from neml2_capi.engine.newton import Newton
from neml2_capi.engine.package import Package
from neml2_capi.engine.packing import Packing, flat
from neml2_capi.engine.results import Batch, Outcome
from neml2_capi.engine.scope import Scope
from neml2_capi.engine.substep import Substepping


class ImplicitSegment:
    """Solves for its unknowns by Newton's method, in one step or in substeps."""

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
        self.by_values = Sensitivity(self, described.given_sensitivity, scope, False)
        self.by_parameters = Sensitivity(self, described.parameter_sensitivity, scope, True)

    def run(self, batch: Batch) -> list[Block]:
        """Solve; returns the derivatives that the batch asks for, as far as they were compiled."""
        if self.described.max_substepping_level > 0:
            outcome, blocks = Substepping(self, batch).run()
        else:
            batch.values = self.predict(batch.values)
            outcome = self.solve_from(batch.values, batch.newton)
            blocks = self.differentiate(outcome, batch.values, batch.by_values, batch.by_parameters)
        # An iterate that failed must not pass for a solution.
        failed = outcome.status != lib.NEML2_OK
        for name, value in self.unknowns.unpack(outcome.u).items():
            at_failed = failed.reshape(-1, *[1] * (value.ndim - 1))
            batch.unknowns[name] = np.where(at_failed, value, np.nan)
            batch.values[name] = np.where(at_failed, np.nan, value)
        batch.add(outcome)
        return blocks

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
        norms: list[Array] = []
        system = Systems(self, values, newton.whole_batch)
        replace(newton, hook=lambda _, u, norm: norms.append(norm))(system)
        return system.outcome(np.stack(norms, axis=1), newton.miters)

    def arguments(self, u: Array, values: Values) -> list[Array]:
        """What a package of the residual takes, for the unknowns `u`, (points, size)."""
        parameters = [values[key] for key in self.parameters]
        return [*self.unknowns.split(u), *self.givens.pack(values), *parameters]

    def differentiate(
        self,
        outcome: Outcome,
        values: Values,
        by_values: bool,
        by_parameters: bool,
        every: bool = False,
    ) -> list[Block]:
        """The derivatives at a solution; NaN at points that have none.

        `every`: of all unknowns with respect to all givens, if that is possible.
        """
        arguments = self.arguments(outcome.u, values)
        blocks = self.by_values.blocks(arguments, every) if by_values else []
        blocks += self.by_parameters.blocks(arguments) if by_parameters else []
        failed = (outcome.status != lib.NEML2_OK).reshape(-1, 1, 1, 1)
        return [Block(shape, np.where(failed, np.nan, found)) for shape, found in blocks]


class Systems:
    """The systems of a segment, for the points of `values`: what Newton solves.

    Packages return -r, and the step that solves A du = -r with A = dr/du.
    """

    def __init__(self, segment: ImplicitSegment, values: Values, together: bool) -> None:
        self.segment, self.values = segment, values
        self.together = together  # no point stops before all have converged
        self.points = len(next(iter(values.values())))
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

    def accept(self, u: Array, status: Array, iterations: Array) -> None:
        self.accepted = u, status.astype(np.int32), iterations

    def outcome(self, norms: Array, miters: int) -> Outcome:
        """What became of each point, with |r| of each iterate, (points, iterates)."""
        u, status, iterations = self.accepted
        history = np.full((self.points, miters), np.nan)
        made = np.arange(norms.shape[1]) <= iterations[:, np.newaxis]
        history[:, : norms.shape[1]] = np.where(made, norms, np.nan)
        return Outcome(
            u,
            status,
            iterations,
            first_norm=norms[:, 0],
            norm=np.take_along_axis(norms, iterations[:, np.newaxis], axis=1)[:, 0],
            history=history,
        )


class Sensitivity:
    """Derivatives of the unknowns at a solution, by the implicit function theorem.

    With r(u, g, p) = 0 and A = dr/du: du/dg = -A^-1 dr/dg, and likewise for parameters p.
    """

    def __init__(
        self, segment: ImplicitSegment, described: Any, scope: Scope, of_parameters: bool
    ) -> None:
        """`described`: None if no derivatives were compiled."""
        self.segment, self.of_parameters = segment, of_parameters
        self.compiled = described is not None
        if not self.compiled:
            self.pairs = Pairs([], None, scope)
            return
        self.krylov = described.krylov
        self.block = scope.load(described.block_package)  # all in one, as before schema 12
        self.operator = scope.load(described.operator_package)
        self.solve = scope.load(described.solve_package)
        self.pairs = Pairs(described.pairs, self.block or self.solve, scope, of_parameters)
        self.all_pairs = Pairs(list(self._all()), None, scope)

    def _all(self) -> Any:
        """Each unknown by each given, side by side in a matrix."""
        row = 0
        for unknown in self.segment.unknowns.variables:
            column = 0
            for given in self.segment.givens.variables:
                yield _Place(unknown.name, given.name, row, column)
                column += int(np.prod(point_shape(given)))
            row += int(np.prod(point_shape(unknown)))

    def blocks(self, arguments: list[Array], every: bool = False) -> list[Block]:
        """Of the compiled pairs; or of `every` unknown by every given."""
        if not self.compiled:
            return []
        points = len(arguments[0])
        if self.block:
            return self.pairs.among(self.block(points, arguments))
        assert self.operator is not None
        b = self.operator(points, arguments)
        if self.of_parameters:
            a, b = b[:1], b[1:]
        else:
            assert self.segment.jacobian is not None
            groups = len(self.segment.residuals.groups)
            a = self.segment.jacobian(points, arguments)[:-groups]
        every = every and len(self.pairs.pairs) < len(self.all_pairs.pairs)
        pairs = self.all_pairs if every else self.pairs
        if self.krylov:
            right = np.concatenate(b, axis=-1)
            return pairs.within(-krylov.solve_columns(self.krylov, self._dense(a), right))
        if every:
            return pairs.within(self._by_columns(a, b))
        assert self.solve is not None
        return pairs.among(self.solve(points, [*a, *b]))

    def _dense(self, a: list[Array]) -> Array:
        if len(a) == 1 and a[0].ndim == 3:
            return a[0]
        raise self._unsupported(
            "an iterative sensitivity solver needs one dense group of unknowns. Compile the model "
            "with a direct sensitivity solver"
        )

    def _by_columns(self, a: list[Array], b: list[Array]) -> Array:
        """-A^-1 B by the package of the Newton step, one run for each given component."""
        s = self.segment
        if s.solve is None or not (s.unknowns.dense and s.givens.dense):
            raise self._unsupported(
                "the tangent through substeps needs the derivatives of all unknowns with respect "
                "to all givens. Compile the model with neml2-compile -d : for all pairs"
            )
        groups = len(s.givens.groups)
        columns = []
        for j in range(groups):
            of_group = b[j::groups]
            for c in range(of_group[0].shape[-1]):
                right = [-block[..., c] for block in of_group]
                columns.append(flat(s.solve(len(right[0]), [*a, *right])))
        return np.stack(columns, axis=-1)

    def _unsupported(self, why: str) -> FatalError:
        assert self.operator is not None
        return FatalError(why, lib.NEML2_ERROR_UNSUPPORTED, self.operator.name)


class _Place(NamedTuple):
    """A pair that is a part of one matrix."""

    output: str
    input: str
    row: int
    column: int
    matrix: None = None
