"""A model bound to arrays, for tight loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from neml2_capi._ffi import locks
from neml2_capi._ffi.errors import check, last_failure
from neml2_capi._ffi.handle import Handle
from neml2_capi._ffi.kinds import NUMPY, Kinds
from neml2_capi._ffi.labels import Array, common_batch, with_stored
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import listening
from neml2_capi._ffi.on_device import on_host, set_memory, view
from neml2_capi._ffi.tensor import Tensor
from neml2_capi.model.binding import NUMBERS, READ, WRITTEN, Bound, Key, Place, Requested, Shape
from neml2_capi.model.described import Described
from neml2_capi.model.evaluation import failed_segment, kind_of_results
from neml2_capi.model.exchanges import Exchanges
from neml2_capi.model.places import Places, missing, requests, with_defaults
from neml2_capi.model.places_on_device import distance, memory_in, new_array, view_on
from neml2_capi.model.reports import ALWAYS

__all__ = ["Call"]

Arrays = Mapping[str, Any]
_run = lib.neml2_call_run
_NON_FINITE: int = lib.NEML2_NON_FINITE


class Call(Handle):
    """A model bound to arrays, to be evaluated again and again: what Model.bind() returns.

        call = model.bind({"strain": strain}, {"stress": stress})
        for strain[...] in path:
            call()  # reads strain and writes stress, where they are

    When it runs nothing is looked up, converted, copied or allocated. What is bound is kept alive,
    and stands in `inputs`, `outputs` and so on, with the new arrays that were made for results. A
    call does not need its model any longer. Threads take turns with it: bind one call per thread.
    """

    _instead = "bind another one"

    #: The common batch axes of the arrays.
    batch: Shape
    #: How many points that are.
    points: int
    #: What is bound, by name: the very arrays that were given, and those that were made.
    inputs: Arrays
    #: The results, (*batch, *point shape).
    outputs: Arrays
    #: What replaces stored parameters.
    parameters: Arrays
    #: Directions, by input.
    tangents: Arrays
    #: The derivatives of outputs along `tangents`.
    jvps: Arrays
    #: Weights, by output.
    cotangents: Arrays
    #: The gradients of sum(cotangent * output), by input or parameter.
    adjoints: Arrays
    #: {output: {input or parameter: block}}
    derivatives: Mapping[str, Arrays]
    #: Of each point: at least "status", 0 if all is well.
    report: Arrays

    def __init__(self, model: Described, groups: Mapping[str, Any]) -> None:
        """Bind as Model.bind(), whose arguments are `groups`."""
        super().__init__(model._engine.new_call())
        self._model = model
        self._turn = locks.new()
        self._places = Places(model._signature, self._pointer[0])
        self._bound: dict[Key, tuple[Place, Bound]] = {}
        self._exchanges = Exchanges()
        self._values: dict[str, dict[str, Any]] = {group: {} for group in (*READ, *WRITTEN)}
        for group, values in self._values.items():
            setattr(self, group, MappingProxyType(values))
        self._memory = memory_in(groups)
        requested = self._requested(with_defaults(model, groups))
        for variable in model.inputs:
            if requested.get(("inputs", variable.name)) is None:
                raise missing(self._places.at("inputs", variable.name))
        views = self._views(requested)
        kinds = Kinds()
        for place, value in requested.values():
            kinds.add(value, place.label)
        kind = kind_of_results(model._engine.kind, kinds.kind)
        self._kind = kind if kind.mutable else NUMPY  # a run changes its results
        self.batch = self._common_batch(requested, views)
        self.points = math.prod(self.batch)
        self._across = 1
        if self._memory is not None:
            self._across = distance(requested, views)
            set_memory(self._pointer[0], self._memory, self._across)
        self._attach(self._fitted(requested, views))

    def run(self) -> int:
        """Evaluate all points.

        Returns
        -------
        int
            The greatest status of a point, 0 if all is well. 1 (NEML2_NON_FINITE): an explicit
            result is NaN or infinite. 2 and 3 (NEML2_NOT_CONVERGED, NEML2_SINGULAR): the solve
            failed at some points, which `report["status"]` names; their results are left as they
            were, and the others are good. 4 (NEML2_OUT_OF_BOUNDS): some points are beyond bounds
            for which they fail, and were not evaluated. If the arrays are on a device, 0, and
            wait() tells.

        Raises
        ------
        FatalError
            The arrays overlap in a way that cannot be, or a package failed.
        """
        with self._turn:
            status: int = _run(self._pointer[0] or self._open(), self.points)
        return check(status) if status or listening else status

    def wait(self) -> int:
        """Wait for the runs over arrays of a device.

        Returns
        -------
        int
            The greatest status of a point in all runs since the last wait, as of run(); 0
            for a call over arrays of the host.

        Raises
        ------
        FatalError
            The device failed.
        """
        with self._turn:
            status: int = lib.neml2_call_wait(self._open()[0])
        return check(status)

    def __call__(self) -> Arrays:
        """Evaluate all points, as run() and wait(), and raise if some failed.

        Returns
        -------
        mapping of str to array
            The very arrays of `outputs`.

        Raises
        ------
        FatalError
            As in run().
        ConvergenceError
            Points failed. Its outputs are the call's, in which these points are as they
            were.
        """
        # Repeats run(), to call which takes a tenth of a small evaluation.
        with self._turn:
            status: int = _run(self._pointer[0] or self._open(), self.points)
            if self._memory is not None and status == 0:
                status = lib.neml2_call_wait(self._pointer[0])
        if status or listening:
            check(status)
            if status > _NON_FINITE:
                self._raise_failed(status)
        return self.outputs

    def bind(
        self,
        inputs: Arrays | None = None,
        outputs: Arrays | None = None,
        *,
        parameters: Arrays | None = None,
        derivatives: Mapping[str, Any] | bool | None = None,
        tangents: Arrays | None = None,
        jvps: Arrays | None = None,
        cotangents: Arrays | None = None,
        adjoints: Arrays | None = None,
        report: Arrays | bool | None = None,
    ) -> None:
        """Bind other arrays, in a few microseconds each; what is not named stays bound.

        The arrays must fit the batch of the call: for another, bind the model again.

        Parameters
        ----------
        inputs : mapping of str to array, optional
            As in Model.bind(), and so are the others.
        outputs : mapping, optional
            Results, by output.
        parameters : mapping, optional
            Values that replace stored ones; None binds the stored one again.
        derivatives : mapping or bool, optional
            Blocks, by output and input or parameter.
        tangents : mapping, optional
            Directions, by input.
        jvps : mapping, optional
            Derivatives along the tangents, by output.
        cotangents : mapping, optional
            Weights, by output.
        adjoints : mapping, optional
            Gradients, by input or parameter.
        report : mapping or bool, optional
            What is reported of each point.

        Raises
        ------
        FatalError
            An array does not fit, which the message names; none was changed.
        """
        with self._turn:
            self._open()
            requested = self._requested(
                {
                    "inputs": inputs,
                    "outputs": outputs,
                    "parameters": parameters,
                    "derivatives": derivatives,
                    "tangents": tangents,
                    "jvps": jvps,
                    "cotangents": cotangents,
                    "adjoints": adjoints,
                    "report": dict.fromkeys(ALWAYS, True) if report is True else report,
                }
            )
            self._attach(self._fitted(requested, self._views(requested)))
            self._exchanges.clear()

    def swap(self, history: str, current: str) -> None:
        """Exchange the array of an input with the array of an output or another input.

        `call.swap("stress~1", "stress")` at the end of a step makes the new stress the old one, and
        no value moves. From then on `call.inputs["stress~1"]` is the array that was
        `call.outputs["stress"]`, and the other way round.

        Parameters
        ----------
        history
            The input, "stress~1" for example.
        current
            The output, or the input, that it becomes.

        Raises
        ------
        FatalError
            There is no such name, it has no array, or the arrays do not fit in each other's place.
        """
        with self._turn:
            call = self._open()[0]
            if not self._exchanges.repeat(call, self._bound, history, current):
                self._exchange(history, current)

    def close(self) -> None:
        """Let go of the arrays, after a call that runs. Closing twice is allowed."""
        with self._turn:
            super().close()
            self._bound.clear()
            self._exchanges.clear()

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"<Call of {self._model!r}, batch {self.batch}{closed}>"

    def _requested(self, groups: Mapping[str, Any]) -> Requested:
        """List what to bind, by key: a place with an array, True for a new one, or None."""
        requested: Requested = {}
        for place, value in requests(self._model._signature, self._places, groups):
            if place.key in requested:
                raise place.label.refuse("is given twice", lib.NEML2_ERROR_NAME)
            if place.key[0] == "inputs" and value is None:
                raise missing(place)
            if value is True and not place.written:
                raise place.label.refuse("is read: bind an array", lib.NEML2_ERROR_ARGUMENT)
            if place.key == ("report", "status") and value is None:
                value = True  # which is there always
            if self._memory is not None and isinstance(value, NUMBERS) and value is not True:
                value = self._memory.filled((), place.dtype, float(value))
            requested[place.key] = place, value
        return requested

    def _views(self, requested: Requested) -> dict[Key, Array]:
        """The arrays that were given."""
        given = {
            key: (place, value)
            for key, (place, value) in requested.items()
            if value is not None and value is not True
        }
        if self._memory is None:
            return {key: place.view(value) for key, (place, value) in given.items()}
        device = self._model._engine.text_device
        own = self._memory
        return {key: view_on(own, device, place, value) for key, (place, value) in given.items()}

    def _common_batch(self, requested: Requested, views: Mapping[Key, Array]) -> Shape:
        """Return the batch of all arrays that are read, and of the stored parameters."""
        read = [(requested[key][0], view) for key, view in views.items() if key[0] in READ]
        stored = [
            (self._places.at("parameters", name), self._stored(name))
            for name in self._model.parameters.names
            if ("parameters", name) not in views
        ]
        batch = common_batch((place.label, place.batch_of(view)) for place, view in read)
        return with_stored(batch, ((p.label, p.batch_of(value)) for p, value in stored))

    def _fitted(
        self, requested: Requested, views: Mapping[Key, Array]
    ) -> dict[Key, tuple[Place, Bound | None]]:
        """Return what is requested as it can be bound in the batch of the call."""
        fitted: dict[Key, tuple[Place, Bound | None]] = {}
        for key, (place, value) in requested.items():
            if value is None:
                fitted[key] = place, None
                continue
            array = views.get(key)
            if array is None:
                batch = self._batch_of_new(place, views)
                if self._memory is None:
                    array = place.new(batch)
                    value = self._handed_out(array)
                else:
                    value = new_array(self._memory, place, batch, self._across)
                    array = view(value, place.label)
            fitted[key] = place, place.bound(value, array, self.batch, self._across)
        return fitted

    def _batch_of_new(self, place: Place, views: Mapping[Key, Array]) -> Shape:
        """An adjoint is like the array of its variable; all else has the batch of the call."""
        if place.key[0] != "adjoints":
            return self.batch
        name = place.key[1]
        of_input = name in self._model.inputs.index_of
        key = ("inputs" if of_input else "parameters", name)
        if key in views:
            return place.batch_of(views[key])
        if key in self._bound:
            return place.batch_of(self._bound[key][1].array)
        return place.batch_of(self._stored(name))

    def _shape_of(self, group: str, name: str) -> Shape:
        """The shape of an input or a parameter, bound or stored."""
        if (group, name) in self._bound:
            return self._bound[group, name][1].array.shape
        return self._stored(name).shape

    def _stored(self, parameter: str) -> Array:
        """The stored value of a parameter."""
        index = self._model.parameters.index_of[parameter]
        return np.asarray(Tensor(self._model._engine.parameter(index)))

    def _handed_out(self, array: Array) -> Any:
        """A new array as one of the kind of those that were given."""
        return array if self._kind is NUMPY else self._kind.hand_out(Tensor(array)._open(), array)

    def _attach(self, fitted: Mapping[Key, tuple[Place, Bound | None]]) -> None:
        """Bind in the library, and show what is bound."""
        call = self._open()
        for key, (place, bound) in fitted.items():
            place.attach(call[0], bound)
            values = self._values[key[0]]
            if len(key) == 3:
                values = values.setdefault(key[1], {})
            if bound is None:
                self._bound.pop(key, None)
                values.pop(key[-1], None)
            else:
                self._bound[key] = place, bound
                values[key[-1]] = bound.value

    def _exchange(self, history: str, current: str) -> None:
        """Exchange arrays, and remember where they fit."""
        group = "outputs" if current in self._model.outputs.index_of else "inputs"
        before = self._at("inputs", history), self._at(group, current)
        (one, first), (other, second) = before
        requested = {one.key: (one, second.value), other.key: (other, first.value)}
        self._attach(self._fitted(requested, self._views(requested)))
        pairs = (*before, self._bound[one.key], self._bound[other.key])
        keys = one.key, other.key
        self._exchanges.remember((history, current), keys, pairs, self._values)

    def _at(self, group: str, name: str) -> tuple[Place, Bound]:
        """Return what is bound at a name; FatalError if there is no such name, or nothing."""
        bound = self._bound.get((group, name))
        if bound is None:
            raise self._places.at(group, name).label.refuse(
                "has no array to exchange", lib.NEML2_ERROR_MISSING
            )
        return bound

    def _raise_failed(self, status: int) -> NoReturn:
        """ConvergenceError of the last run."""
        status_of = self._bound["report", "status"][1]
        statuses = status_of.array if self._memory is None else on_host(status_of.value)
        good = np.asarray(statuses <= _NON_FINITE)
        raise last_failure(status).unconverged(
            failed_segment(self._model._engine.implicit_segments, good, {}),
            report=self.report,
            converged_mask=self._handed_out(good) if self._memory is None else good,
            outputs=self.outputs,
            derivatives=self.derivatives or self.jvps or self.adjoints or None,
        )
