"""The nonlinear systems of a model, handed out to be solved by its user."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neml2_capi._ffi.arguments import Arguments, free, results, take
from neml2_capi._ffi.errors import FatalError, check, complete
from neml2_capi._ffi.handle import Handle
from neml2_capi._ffi.kinds import Kinds
from neml2_capi._ffi.library import ffi, lib
from neml2_capi.model.evaluation import Evaluation, kind_of_results
from neml2_capi.model.tensors import NativeReport, fill, fill_resolved

if TYPE_CHECKING:
    from neml2_capi.model.backend import Backend

Array = NDArray[np.float64]
Integers = NDArray[np.int32]
Solver = Callable[["System"], Any]


class Solve(Handle):
    """An evaluation that hands out the nonlinear systems of its implicit segments, one by one.

    All points form one batch, so that a parameter inside an implicit segment must be one value
    for all of them. A segment that would substep gives the system of the whole increment.

    Threads take turns with a Solve and its systems; one that closes it waits for a call that runs.
    """

    _instead = "begin another one"

    def __init__(
        self,
        backend: Backend,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin; the arguments are those of Model.forward(), and are copied."""
        backend._open()
        model, kinds = backend.signature, Kinds()
        with (
            Arguments(len(model.inputs), kinds) as given,
            Arguments(len(model.parameters), kinds) as replaced,
        ):
            fill(given, model.inputs, inputs, "inputs")
            if param_overrides is not None:
                fill_resolved(replaced, model.parameters, param_overrides)
            owner = backend.begin_solve(given.handles, replaced.handles)
            self._hand_out = kind_of_results(backend.kind, kinds.kind).hand_out
        super().__init__(owner)
        self._backend = backend
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
        names, report = self._backend.signature.outputs.names, NativeReport(self._backend)
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
            unknown = self._solve._backend.signature.unknowns[place.unknown]
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
