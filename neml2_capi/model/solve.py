"""The nonlinear systems of a model, handed out to be solved by its user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neml2_capi._ffi import locks
from neml2_capi._ffi.arguments import Arguments
from neml2_capi._ffi.errors import FatalError, check, complete
from neml2_capi._ffi.handle import Handle
from neml2_capi._ffi.inspection import inspected
from neml2_capi._ffi.kinds import Kinds
from neml2_capi._ffi.library import ffi, lib
from neml2_capi.model.evaluation import Evaluation, kind_of_results
from neml2_capi.model.opened import Opened
from neml2_capi.model.tensors import NativeReport, fill, fill_resolved

Array = NDArray[np.float64]
Integers = NDArray[np.int32]
#: What solves one nonlinear system: it is called with a System, and ends with its accept().
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
        backend: Opened,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin; the arguments are the same as of Model.forward(), and are copied."""
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
        self._lock = locks.new()

    def next(self) -> System | None:
        """Go on to the next system; the one before must be accepted.

        Returns
        -------
        System or None
            The system, which is there until the solve goes on; None if there is none left.

        Raises
        ------
        FatalError
            The system before was not accepted, or a package failed.
        """
        with self._lock:
            owner, system = self._open(), ffi.new("neml2_system **")
            complete(lib.neml2_solve_next(system, owner[0]))
            self._current = System(self, system[0]) if system[0] else None
            return self._current

    def __iter__(self) -> Iterator[System]:
        while (system := self.next()) is not None:
            yield system

    def end(self) -> dict[str, Any]:
        """End the evaluation, once next() has given None.

        Returns
        -------
        dict of str to array
            The outputs, as Model.forward() returns them.

        Raises
        ------
        FatalError
            There are systems left, or a package failed.
        ConvergenceError
            Points were accepted with a status, or far above the tolerances of the model.
        """
        names, report = self._backend.signature.outputs.names, NativeReport(self._backend)
        with Arguments(len(names)) as outputs:
            with self._lock:
                status = check(lib.neml2_solve_end(outputs.handles, report.owner, self._open()))
                self.close()
            report.hand_out = self._hand_out
            named = {name: self._hand_out(outputs.take(i)) for i, name in enumerate(names)}
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
        info = inspected("neml2_system_info", lib.neml2_system_inspect, handle)
        self.points, self.size = info.npoints, info.n
        self._places = [_read_place(handle, index) for index in range(info.nunknowns)]

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a System cannot be copied or pickled: it is there until the solve goes on")

    def guess(self) -> Array:
        """Return the initial guess, from the model's predictor.

        Returns
        -------
        array
            The guess u, (points, size).
        """
        u = self._vectors()
        self._call(lib.neml2_system_guess, [_out(u)])
        return u

    def residual(self, u: ArrayLike) -> Array:
        """Evaluate the residual r(u).

        Parameters
        ----------
        u
            The iterate, (points, size).

        Returns
        -------
        array
            The residual, (points, size).
        """
        r = self._vectors()
        self._call(lib.neml2_system_residual, [_out(r)], [self._in(u)])
        return r

    def step(self, u: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
        """Solve for the Newton step, by the model's linear solver.

        Parameters
        ----------
        u
            The iterate, (points, size).

        Returns
        -------
        du : array
            The step, (points, size).
        singular : array of bool
            Where dr/du is singular, (points,).
        """
        du, singular = self._vectors(), np.zeros(self.points, dtype=np.int32)
        flags = ffi.from_buffer("int32_t[]", singular, require_writable=True)
        self._call(lib.neml2_system_step, [_out(du), flags], [self._in(u)])
        return du, singular != 0

    def jacobian(self, u: ArrayLike) -> Array:
        """Evaluate the Jacobian dr/du.

        Parameters
        ----------
        u
            The iterate, (points, size).

        Returns
        -------
        array
            The Jacobian, (points, size, size), with the axis of r first.

        Raises
        ------
        FatalError
            The artifact does not have it: matrix-free solvers, NEML2 before 3.0.7.
        """
        a = np.empty((self.points, self.size, self.size))
        self._call(lib.neml2_system_jacobian, [_out(a)], [self._in(u)])
        return a

    def matvec(self, u: ArrayLike, v: ArrayLike) -> Array:
        """Evaluate the product of the Jacobian dr/du and a vector.

        Parameters
        ----------
        u
            The iterate, (points, size).
        v
            The vector, (points, size).

        Returns
        -------
        array
            The product, (points, size).

        Raises
        ------
        FatalError
            The artifact has neither a matrix-free solver nor what jacobian() needs.
        """
        y = self._vectors()
        self._call(lib.neml2_system_matvec, [_out(y)], [self._in(u), self._in(v)])
        return y

    def accept(
        self, u: ArrayLike, status: ArrayLike | None = None, iterations: ArrayLike | None = None
    ) -> None:
        """Take a vector as the solution.

        Parameters
        ----------
        u
            The solution, (points, size).
        status
            OK, NOT_CONVERGED or SINGULAR, one for each point, (points,), or one for all. Without it
            a point a thousand times above the tolerances of the model, its options atol and rtol,
            is NOT_CONVERGED.
        iterations
            How many were made, for the report: one for each point, (points,), or one for all.
        """
        numbers = [self._integers("status", status), self._integers("iterations", iterations)]
        self._call(lib.neml2_system_accept, [], [self._in(u), *numbers])

    def by_name(self, u: ArrayLike) -> dict[str, Array]:
        """Split a vector of unknowns, or of their residuals, by name.

        Parameters
        ----------
        u
            The vector, (points, size).

        Returns
        -------
        dict of str to array
            Each unknown, (points, *point shape).
        """
        vectors = self._checked(u)
        values = {}
        for place in self._places:
            unknown = self._solve._backend.signature.unknowns[place.unknown]
            values[unknown.name] = vectors[:, place.columns].reshape(-1, *unknown.point_shape)
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
        small = array.dtype.kind in "iub" and ((array > -(2**31)) & (array < 2**31)).all()
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
    """Place of an unknown in the vector of a point."""

    unknown: int
    columns: NDArray[np.int64]


def _read_place(system: Any, index: int) -> _Place:
    info = inspected("neml2_unknown_info", lib.neml2_system_unknown_inspect, system, index)
    starts = info.offset + info.piece_stride * np.arange(info.pieces)
    return _Place(info.unknown, (starts[:, np.newaxis] + np.arange(info.piece_size)).ravel())


def _out(array: Array) -> Any:
    return ffi.from_buffer("double[]", array, require_writable=True)
