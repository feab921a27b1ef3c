"""The nonlinear systems of implicit segments: where the Newton step comes from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neml2_capi._ffi.tensor import Array
from neml2_capi.engine import krylov
from neml2_capi.engine.artifact import Krylov
from neml2_capi.engine.operands import Operands
from neml2_capi.engine.package import Package
from neml2_capi.engine.packing import Packing, flat


@dataclass
class _System:
    package: Package
    operands: Operands

    def residual(self, u: Array, rows: Array) -> Array:
        return flat(self.package(len(rows), self.operands.of_rows(rows).at(u)))


@dataclass
class DirectSystem(_System):
    """The operator from one package, and the solve by another."""

    jacobian: Package
    solve: Package
    residuals: Packing

    def step(self, u: Array, residual: Array, rows: Array) -> tuple[Array, Array]:
        groups = self.residuals.split(residual)
        operator = self.jacobian(len(rows), self.operands.of_rows(rows).at(u))[: -len(groups)]
        du, singular = self.solve.solve(len(rows), [*operator, *groups])
        return flat(du), singular


@dataclass
class StepSystem(_System):
    """The step from one package, as before schema 12."""

    steps: Package
    is_taken: bool  # it returns the unknowns after the step

    def step(self, u: Array, residual: Array, rows: Array) -> tuple[Array, Array]:
        groups = len(self.operands.unknowns.groups)
        returned, singular = self.steps.solve(len(rows), self.operands.of_rows(rows).at(u))
        du = flat(returned[:groups])
        return du - u if self.is_taken else du, singular


@dataclass
class KrylovSystem(_System):
    """An iterative solve over products of the operator with vectors."""

    matvec: Package
    setup: Package | None
    apply: Package | None
    settings: Krylov
    together: bool  # no point stops before all have converged

    def __post_init__(self) -> None:
        self.state: list[Array] = []  # of the preconditioner
        self.outdated = np.ones(len(self.operands.givens[0]), dtype=bool)
        self.singular = np.zeros_like(self.outdated)

    def step(self, u: Array, residual: Array, rows: Array) -> tuple[Array, Array]:
        arguments = self.operands.of_rows(rows).at(u)

        def matvec(v: Array) -> Array:
            return flat(self.matvec(len(rows), [*arguments, *self.operands.unknowns.split(v)]))

        def precondition(r: Array) -> Array:
            if self.apply is None:
                return r
            return self.apply(len(rows), [*(s[rows] for s in self.state), r])[0]

        if self.setup is not None:
            self._set_up(self.setup, u, rows)
        du, iterations = krylov.solve(
            self.settings, matvec, precondition, residual, together=self.together
        )
        if self.together:
            iterations = np.full_like(iterations, iterations.max(initial=0))
        if self.settings.cache == "none":
            self.outdated[rows] = True
        elif self.settings.cache == "max_its":
            self.outdated[rows] = iterations > self.settings.cache_max_its
        return du, self.singular[rows]

    def _set_up(self, setup: Package, u: Array, rows: Array) -> None:
        old = self.outdated[rows]
        due = rows[old]
        arguments = self.operands.of_rows(due).at(u[old])[: len(setup.inputs)]
        state, self.singular[due] = setup.solve(len(due), arguments)
        for k, fresh in enumerate(state):
            if k == len(self.state):
                self.state.append(np.empty((len(self.outdated), *fresh.shape[1:]), fresh.dtype))
            self.state[k][due] = fresh
        self.outdated[due] = False
