"""Solve the nonlinear systems of a model yourself, or with Newton's method in plain numpy.

    from neml2_capi.solvers import Newton

    outputs = model.forward(inputs, solver=Newton(rtol=1e-10, hook=print))

A solver is any callable that takes a System and ends with `system.accept(u)`. Whoever wants the
loop over the implicit segments, too, takes it from `model.solve(inputs)`:

    with model.solve(inputs) as solve:
        for system in solve:
            u = system.guess()
            for _ in range(10):
                u = u + system.step(u)[0]
            system.accept(u)
        outputs = solve.end()
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neml2_capi._ffi.arguments import Arguments, free, results, take
from neml2_capi._ffi.errors import FatalError, check, complete
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.kinds import Kinds
from neml2_capi._ffi.library import ffi, lib
from neml2_capi.model.evaluation import (
    Evaluation,
    NativeReport,
    fill,
    fill_resolved,
    kind_of_results,
)

if TYPE_CHECKING:
    from neml2_capi.model import Model

Array = NDArray[np.float64]
Integers = NDArray[np.int32]
Solver = Callable[["System"], Any]

#: The status of a point, for System.accept().
OK: int = lib.NEML2_OK
NOT_CONVERGED: int = lib.NEML2_NOT_CONVERGED
SINGULAR: int = lib.NEML2_SINGULAR


class Solve(Handle):
    """An evaluation that hands out the nonlinear systems of its implicit segments, one by one.

    All points form one batch, so that a parameter inside an implicit segment must be one value
    for all of them. A segment that would substep gives the system of the whole increment.

    Threads take turns with a Solve and its systems; one that closes it waits for a call that runs.
    """

    _instead = "begin another one"

    def __init__(
        self,
        model: Model,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin; the arguments are those of Model.forward(), and are copied."""
        handle, owner, kinds = model._open(), owned("solve"), Kinds()
        with (
            Arguments(len(model.inputs), kinds) as given,
            Arguments(len(model.parameters), kinds) as replaced,
        ):
            fill(given, model.inputs, inputs, "inputs")
            if param_overrides is not None:
                fill_resolved(replaced, model.parameters, param_overrides)
            check(lib.neml2_solve_begin(owner, handle[0], given.handles, replaced.handles))
            self._hand_out = kind_of_results(model, kinds.kind).hand_out
        super().__init__(owner)
        self._model = model
        self._current: System | None = None
        self._lock = threading.RLock()

    def next(self) -> System | None:
        """The next system, None where there is none left. The one before must be accepted."""
        with self._lock:
            owner, system = self._open(), ffi.new("neml2_system **")
            complete(lib.neml2_solve_next(system, owner[0]))
            self._current = System(self, system[0]) if system[0] else None
            return self._current

    def __iter__(self) -> Iterator[System]:
        while (system := self.next()) is not None:
            yield system

    def end(self) -> dict[str, Any]:
        """The outputs, once next() has given None; as Model.forward() returns and raises them."""
        names, report = self._model.outputs.names, NativeReport(self._model)
        outputs = results(len(names))
        try:
            with self._lock:
                status = check(lib.neml2_solve_end(outputs, report.owner, self._open()))
                self.close()
            report.hand_out = self._hand_out
            named = {name: self._hand_out(take(outputs, i)) for i, name in enumerate(names)}
        finally:
            free(outputs, len(names))
        Evaluation(status, named, [], report).raise_if_failed()
        return named

    def close(self) -> None:
        """Abandon the evaluation, unless it is at its end. Closing twice is allowed."""
        with self._lock:
            super().close()
            self._current = None


class System:
    """The nonlinear systems r(u) = 0 of one implicit segment, one per point.

    Vectors are arrays (points, size) of float64: the batch of the inputs is flattened, and each
    point has its unknowns side by side. The system is there until the solve goes on.
    """

    #: How many points there are.
    points: int
    #: How many numbers each has in a vector.
    size: int

    def __init__(self, solve: Solve, handle: Any) -> None:
        self._solve, self._handle = solve, handle
        sizes = ffi.new("int64_t[3]")
        check(lib.neml2_system_size(sizes, sizes + 1, sizes + 2, handle))
        self.points, self.size, count = sizes
        self._places = [_read_place(handle, index) for index in range(count)]

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a System cannot be copied or pickled: it is there until the solve goes on")

    def guess(self) -> Array:
        """The initial guess, from the model's predictor."""
        u = self._vectors()
        self._call(lib.neml2_system_guess, [_out(u)])
        return u

    def residual(self, u: ArrayLike) -> Array:
        """r(u)."""
        r = self._vectors()
        self._call(lib.neml2_system_residual, [_out(r)], [self._in(u)])
        return r

    def step(self, u: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
        """The Newton step at `u`, by the model's linear solver, and where dr/du is singular."""
        du, singular = self._vectors(), np.zeros(self.points, dtype=np.int32)
        flags = ffi.from_buffer("int32_t[]", singular, require_writable=True)
        self._call(lib.neml2_system_step, [_out(du), flags], [self._in(u)])
        return du, singular != 0

    def jacobian(self, u: ArrayLike) -> Array:
        """dr/du at `u`, (points, size, size).

        FatalError where the artifact does not have it: matrix-free solvers, NEML2 before 3.0.7,
        unknowns that keep sub-batch axes.
        """
        a = np.empty((self.points, self.size, self.size))
        self._call(lib.neml2_system_jacobian, [_out(a)], [self._in(u)])
        return a

    def matvec(self, u: ArrayLike, v: ArrayLike) -> Array:
        """dr/du v at `u`: for matrix-free solvers too, and else where jacobian() is there."""
        y = self._vectors()
        self._call(lib.neml2_system_matvec, [_out(y)], [self._in(u), self._in(v)])
        return y

    def accept(
        self, u: ArrayLike, status: ArrayLike | None = None, iterations: ArrayLike | None = None
    ) -> None:
        """Take `u` as the solution.

        `status` says for each point OK, NOT_CONVERGED or SINGULAR, and `iterations` is for the
        report; each is one integer per point, or one for all. Without a status all is well, but
        for points whose residual is not finite.
        """
        numbers = [self._integers("status", status), self._integers("iterations", iterations)]
        self._call(lib.neml2_system_accept, [], [self._in(u), *numbers])

    def by_name(self, u: ArrayLike) -> dict[str, Array]:
        """The unknowns of a vector, or their residuals, by name: (points, *point shape)."""
        vectors = self._checked(u)
        values = {}
        for place in self._places:
            unknown = self._solve._model.unknowns[place.unknown]
            shape = (*unknown.sub_batch_shape, *unknown.base_shape)
            values[unknown.name] = vectors[:, place.columns].reshape(len(vectors), *shape)
        return values

    def _call(self, function: Any, before: list[Any], after: list[Any] | None = None) -> None:
        """Call the library with the arguments before and after the handle, while it is there."""
        with self._solve._lock:
            owner = self._solve._open()  # kept for the length of the call
            if self._solve._current is not self:
                raise FatalError(
                    "this System is gone: its solve went on to the next", lib.NEML2_ERROR_ARGUMENT
                )
            complete(function(*before, self._handle, *(after or [])))
            del owner

    def _vectors(self) -> Array:
        return np.empty((self.points, self.size))

    def _checked(self, vectors: ArrayLike) -> Array:
        array = np.asarray(vectors)
        if array.shape != (self.points, self.size) or array.dtype.kind not in "fiub":
            raise FatalError(
                f"a vector of this System is real, {(self.points, self.size)}; "
                f"got {array.dtype}, {array.shape}",
                lib.NEML2_ERROR_SHAPE,
            )
        return np.ascontiguousarray(array, dtype=np.float64)

    def _in(self, vectors: ArrayLike) -> Any:
        return ffi.from_buffer("double[]", self._checked(vectors))

    def _integers(self, name: str, values: ArrayLike | None) -> Any:
        if values is None:
            return ffi.NULL
        array = np.asarray(values)
        small = array.dtype.kind in "iub" and (np.abs(array) < 2**31).all()
        if not small or array.shape not in ((), (self.points,)):
            raise FatalError(
                f"the {name} of accept() is one integer per point, {(self.points,)}, or one for "
                f"all; got {array.dtype}, {array.shape}",
                lib.NEML2_ERROR_ARGUMENT,
                name,
            )
        array = np.ascontiguousarray(np.broadcast_to(array, self.points), dtype=np.int32)
        return ffi.from_buffer("int32_t[]", array)


@dataclass(frozen=True)
class Newton:
    """Newton's method with line search, for all points side by side.

    It is the library's own iteration, written to be read: the same options, the same iterates. A
    point has converged when |r| < atol, |r| / |r0| < rtol or r = 0, and is then left alone; with
    `whole_batch`, all points iterate until all have converged, and one that fails fails all.
    """

    #: A point has converged when |r| is less,
    atol: float = 1e-10
    #: or |r| / |r0|, with r0 the residual at the initial guess.
    rtol: float = 1e-8
    #: At most miters - 1 steps are made.
    miters: int = 25
    #: "BACKTRACKING" or "STRONG_WOLFE".
    ls_type: str = "BACKTRACKING"
    #: At most ls_max_iters - 1 trials; 1: no line search.
    ls_max_iters: int = 1
    #: The step length is divided by it after a trial that failed.
    ls_cutback: float = 2.0
    #: The fraction of the expected decrease that a trial must reach.
    ls_c: float = 1e-3
    #: Whether all points iterate until all have converged.
    whole_batch: bool = False
    #: Called as hook(iteration, u, norms) with the initial guess and after each step: the iterates
    #: of all points and their |r|. They are to be read only.
    hook: Callable[[int, Array, Array], Any] | None = None

    def __post_init__(self) -> None:
        """FatalError for what makes no iteration."""
        for name, sound, wanted in (
            ("atol", self.atol >= 0, "0 or more"),
            ("rtol", self.rtol >= 0, "0 or more"),
            ("miters", self.miters >= 1, "1 or more"),
            (
                "ls_type",
                self.ls_type in ("BACKTRACKING", "STRONG_WOLFE"),
                "BACKTRACKING or STRONG_WOLFE",
            ),
            ("ls_max_iters", self.ls_max_iters >= 1, "1 or more"),
            ("ls_cutback", self.ls_cutback > 1, "more than 1"),
            ("ls_c", self.ls_c >= 0, "0 or more"),
        ):
            if not sound:
                raise FatalError(
                    f"{name} of Newton's method is {getattr(self, name)!r}; it must be {wanted}",
                    lib.NEML2_ERROR_ARGUMENT,
                    name,
                )

    @classmethod
    def like(cls, model: Model, hook: Callable[[int, Array, Array], Any] | None = None) -> Newton:
        """With the options that the model has now."""
        options = model.options
        return cls(
            atol=options["atol"],
            rtol=options["rtol"],
            miters=int(options["miters"]),
            ls_type=options["ls_type"],
            ls_max_iters=int(options["ls_max_iters"]),
            ls_cutback=options["ls_cutback"],
            ls_c=options["ls_c"],
            whole_batch=options["convergence"] == "batch",
            hook=hook,
        )

    def __call__(self, system: System) -> None:
        """Solve a system, and accept what was found."""
        u = system.guess()
        r = system.residual(u)
        norm = first_norm = norms(r)
        iterations = np.zeros(system.points, dtype=np.int32)
        converged = np.zeros(system.points, dtype=bool)
        singular, active = converged.copy(), ~converged
        for iteration in range(self.miters):
            if iteration > 0:
                du, without_step = system.step(u)
                singular |= active & without_step
                u, r = self._advance(system, u, r, du, active)
                norm = norms(r)
            if self.hook is not None:
                self.hook(iteration, u, norm)
            iterations[active] = iteration
            with np.errstate(divide="ignore", invalid="ignore"):
                converged = (norm < self.atol) | (norm == 0) | (norm / first_norm < self.rtol)
            failed = singular | ~np.isfinite(norm)
            converged &= ~failed
            if self.whole_batch:
                active[:] = not (converged.all() or failed.any())
            else:
                active &= ~(converged | failed)
            if not active.any():
                break
        if self.whole_batch and not converged.all():
            converged[:] = False
        status = np.where(converged, OK, np.where(singular, SINGULAR, NOT_CONVERGED))
        system.accept(u, status, iterations)

    def _advance(
        self, system: System, u: Array, r: Array, du: Array, active: NDArray[np.bool_]
    ) -> tuple[Array, Array]:
        """The next iterate and its residual; points that are not active stay where they are.

        With a line search the step of a point is cut until its residual has decreased enough; the
        last trial is taken in any case.
        """
        squared, slope = norms(r) ** 2, -np.sum(r * du, axis=1)
        length = np.ones(system.points)
        for _ in range(max(self.ls_max_iters - 1, 1)):
            trial = np.where(active[:, np.newaxis], u + length[:, np.newaxis] * du, u)
            residual = system.residual(trial)
            norm = norms(residual)
            wolfe = self.ls_type == "STRONG_WOLFE"
            decrease = length * squared if wolfe else 2.0 * length * slope
            enough = (norm**2 <= squared - self.ls_c * decrease) | (norm <= self.atol)
            if np.all(enough | ~active):
                break
            length = np.where(enough, length, length / self.ls_cutback)
        return trial, residual


def norms(vectors: Array) -> Array:
    """The Euclidean norm of the vector of each point."""
    result: Array = np.sqrt(np.sum(vectors**2, axis=1))
    return result


class _Place(NamedTuple):
    """Where an unknown stands in the vector of a point."""

    unknown: int
    columns: NDArray[np.int64]


def _read_place(system: Any, index: int) -> _Place:
    n = ffi.new("int64_t[5]")
    check(lib.neml2_system_layout(n, n + 1, n + 2, n + 3, n + 4, system, index))
    unknown, offset, pieces, stride, size = n
    starts = offset + stride * np.arange(pieces)
    return _Place(unknown, (starts[:, np.newaxis] + np.arange(size)).ravel())


def _out(array: Array) -> Any:
    return ffi.from_buffer("double[]", array, require_writable=True)
