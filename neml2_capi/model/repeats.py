"""Evaluations of arrays like those before, by calls of the library that are kept.

One point can be evaluated in less time than it takes to check the arguments, wrap them in tensors
and hand tensors out. So what went well that way is remembered by the shapes of its arguments. When
these come a second time, a call is bound to arrays of its own, and from then on values are copied
in, evaluated in place, and copied out: as long as they are few, which is where it counts. All else,
points that fail for example, is left to tensors, which tell of errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import FatalError, last_message
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import drain, listening
from neml2_capi._ffi.tensor import Array, is_torch
from neml2_capi._ffi.variables import Variables
from neml2_capi.model.binding import Key, Place, Shape
from neml2_capi.model.evaluation import JVP, Evaluation, Operation
from neml2_capi.model.places import Places
from neml2_capi.model.signature import Signature

if TYPE_CHECKING:
    from neml2_capi.model.backend import Backend

#: The most bytes in the arrays of a call: beyond, the copies cost more than they save.
_LARGEST = 1 << 18
#: The most sets of shapes that are remembered.
_MOST = 32
#: The owner of a call, its number of points, an array for each argument (None for a direction that
#: is not given), and what puts new results together.
Slot = tuple[Any, int, list[Any], Callable[[], Any]]
#: Slots that are not in use, by the shapes of arguments.
Pools = dict[Any, list[Slot]]

_run = lib.neml2_call_run
_NON_FINITE: int = lib.NEML2_NON_FINITE
#: The slots of shapes for which there can be none.
_NEVER: list[Slot] = []


class Repeats:
    """What a model remembers of its evaluations."""

    def __init__(self) -> None:
        #: By operation: (inputs, directions) -> what is asked for, or None where it is not known.
        self.functions: dict[str, Callable[[Any, Any], Any]] = {}
        self._memories: dict[str, Memory] = {}
        self._suspended = False

    def pools(self, operation: Operation) -> Pools | None:
        """Where to remember an evaluation that begins now; None where it must not be."""
        if self._suspended or listening:
            return None
        return self._memories.setdefault(operation.name, Memory()).pools

    def learn(
        self,
        pools: Pools,
        backend: Backend,
        operation: Operation,
        inputs: Mapping[str, Any],
        directions: Mapping[str, Any] | None,
        evaluation: Evaluation,
    ) -> None:
        """Remember an evaluation that went well; `pools` are those from before it."""
        given, along = _read(backend.signature, operation)
        try:
            values: list[tuple[Any, Any]] = [_like(inputs[name], dtype) for name, dtype in given]
            for name, dtype in along:
                value = (directions or {}).get(name)
                values.append((None, None) if value is None else _like(value, dtype))
        except LookupError:
            return
        key = tuple([shape for _, shape in values])
        slots = pools.get(key)
        if slots is None:
            if len(pools) >= _MOST:
                pools.clear()
            pools[key] = []
        elif slots is not _NEVER:
            present = [value is not None for value, _ in values]
            try:
                slots.append(_slot(backend, operation, present, evaluation))
            except FatalError:
                pools[key] = _NEVER
                return
            if operation.name not in self.functions:
                memory = self._memories[operation.name]
                self.functions[operation.name] = _function(memory, given, along)

    @contextmanager
    def forgotten(self) -> Iterator[None]:
        """Forget everything, and repeat nothing meanwhile: the batch may become another."""
        self._suspended = True
        for memory in list(self._memories.values()):
            memory.pools = None
        try:
            yield
        finally:
            for memory in list(self._memories.values()):
                memory.pools = {}
            self._suspended = False


class Memory:
    """The slots of one operation; None where nothing is repeated."""

    __slots__ = ("pools",)

    def __init__(self) -> None:
        self.pools: Pools | None = {}


# A name, and what makes its value.
_Entries = list[tuple[str, Callable[[], Any]]]
# A name, and the element type.
_Arguments = list[tuple[str, np.dtype[Any]]]


def _function(memory: Memory, given: _Arguments, along: _Arguments) -> Callable[[Any, Any], Any]:
    """The function that repeats, for inputs that are `given`, and directions `along` some."""
    if len(given) == 1 and not along:
        return _function_of_one(memory, *given[0])
    count, array = len(given), np.ndarray

    def again(inputs: Any, directions: Any) -> Any:
        pools = memory.pools
        if type(inputs) is not dict or len(inputs) != count or listening:
            return None
        values: list[Any] = []
        shapes: list[Any] = []
        try:
            for name, dtype in given:
                value = inputs[name]
                if type(value) is array and value.dtype is dtype and value.flags.aligned:
                    shape = value.shape
                else:
                    value, shape = _like(value, dtype)
                values.append(value)
                shapes.append(shape)
            if along:
                left = len(directions) if type(directions) is dict else -1
                for name, dtype in along:
                    value, shape = directions.get(name), None
                    if value is not None:
                        left -= 1
                        if type(value) is array and value.dtype is dtype and value.flags.aligned:
                            shape = value.shape
                        else:
                            value, shape = _like(value, dtype)
                    values.append(value)
                    shapes.append(shape)
                if left:  # no mapping, or there are other names
                    return None
            slots = pools[tuple(shapes)]  # type: ignore[index]
            slot = slots.pop()
        except (AttributeError, LookupError, TypeError):
            return None
        call, points, buffers, results = slot
        for buffer, value in zip(buffers, values):  # noqa: B905 (of one length, by the shapes)
            if value is not None:
                buffer[...] = value
        status = _run(call[0], points)
        known = not (status and _is_other(status)) and memory.pools is pools
        found = results() if known else None
        slots.append(slot)
        return found

    return again


def _function_of_one(memory: Memory, name: str, dtype: np.dtype[Any]) -> Callable[[Any, Any], Any]:
    """The same for one input without directions: loops would take as long as the evaluation."""
    array = np.ndarray

    def again(inputs: Any, _: Any) -> Any:
        pools = memory.pools
        if type(inputs) is not dict or len(inputs) != 1 or listening:
            return None
        try:
            value = inputs[name]
            if type(value) is array and value.dtype is dtype and value.flags.aligned:
                shape = value.shape
            else:
                value, shape = _like(value, dtype)
            slots = pools[(shape,)]  # type: ignore[index]
            slot = slots.pop()
        except (LookupError, TypeError):
            return None
        call, points, (buffer,), results = slot
        buffer[...] = value
        status = _run(call[0], points)
        known = not (status and _is_other(status)) and memory.pools is pools
        found = results() if known else None
        slots.append(slot)
        return found

    return again


def _is_other(status: int) -> bool:
    """Log what there is of a run; whether it is left to tensors, as is its warning then."""
    other = status != _NON_FINITE
    drain(but=last_message() if other else None)
    return other


def _slot(
    backend: Backend, operation: Operation, present: Sequence[bool], evaluation: Evaluation
) -> Slot:
    """A call that does what the evaluation did, of the arguments that are `present`.

    FatalError where no call can, or the arrays are large.
    """
    signature, call = backend.signature, backend.new_call()
    places = Places(signature, call[0])
    outputs = list(evaluation.outputs.values())
    batch = places.at("outputs", signature.outputs.names[0]).batch_of(outputs[0])
    read = [("inputs", name) for name in signature.inputs.names]
    if operation.directions:
        read += [(operation.argument, name) for name in operation.along(signature).names]
    buffers: list[Any] = [
        _buffer(call, places.at(*key), batch) if there else None
        for key, there in zip(read, present, strict=True)
    ]
    written: list[tuple[Key, Any]] = []
    if operation.with_outputs:
        written += [(("outputs", name), out) for name, out in evaluation.outputs.items()]
    others = [result for result in evaluation.results if result is not None]
    written += zip(_others(signature, operation), others, strict=True)
    kept = [buffer for buffer in buffers if buffer is not None]
    copies = []
    for key, result in written:
        place, shape = places.at(*key), tuple(result.shape)
        if key[0] == "derivatives" and shape == place.shape:  # one block for all points
            buffer = _buffer(call, place, batch).reshape(-1, *shape)[0, ...]
        else:
            buffer = _buffer(call, place, batch, shape)
        kept.append(buffer)
        copies.append((key, _copier(buffer, result)))
    if sum(buffer.nbytes for buffer in kept) > _LARGEST:
        raise FatalError("these arrays are large")
    return call, math.prod(batch), buffers, _results(copies)


def _results(copies: Sequence[tuple[Key, Callable[[], Any]]]) -> Callable[[], Any]:
    """What puts new results together: outputs, other results by name or by pair, or both."""
    outputs: _Entries = []
    others: _Entries = []
    rows: dict[str, _Entries] = {}
    for (group, *names), copy in copies:
        if group == "derivatives":
            rows.setdefault(names[0], []).append((names[1], copy))
        else:
            (outputs if group == "outputs" else others).append((names[0], copy))
    others += [(output, _mapping(row)) for output, row in rows.items()]
    if not outputs or not others:
        return _mapping(outputs or others)
    first, second = _mapping(outputs), _mapping(others)
    return lambda: (first(), second())


def _mapping(entries: _Entries) -> Callable[[], dict[str, Any]]:
    """What makes a new dict; of one entry without a loop, which would take longer than a copy."""
    if len(entries) == 1:
        ((only, make_only),) = entries
        return lambda: {only: make_only()}
    return lambda: {name: make() for name, make in entries}


def _buffer(call: Any, place: Place, batch: Shape, shape: Shape | None = None) -> Array:
    """A new array that is bound; `shape` is for a sum over the points."""
    array = np.empty(batch + place.shape if shape is None else shape, place.dtype)
    if array.size == 0:
        raise FatalError("there are no points")
    place.attach(call[0], place.bound(array, array, batch))
    return array


def _copier(buffer: Array, result: Any) -> Callable[[], Any]:
    """What gives a copy of `buffer`, of the kind of `result`."""
    if not is_torch(result):
        return buffer.copy
    from_numpy = sys.modules["torch"].from_numpy
    return lambda: from_numpy(buffer.copy())


def _like(value: Any, dtype: np.dtype[Any]) -> tuple[Array, Any]:
    """An argument as an array, and its shape, marked where it is torch's; else LookupError."""
    if type(value) is float:
        return np.asarray(value), ()
    array: Any = value
    mark: tuple[str, ...] = ()
    if is_torch(value):
        try:
            plain = value.detach() if value.requires_grad else value
            array, mark = plain.numpy(), ("torch",)
        except (RuntimeError, TypeError):  # on another device, or without plain memory
            raise LookupError from None
    if type(array) is np.ndarray and array.dtype is dtype and array.flags.aligned:
        return array, (*mark, *array.shape)
    raise LookupError


def _read(signature: Signature, operation: Operation) -> tuple[_Arguments, _Arguments]:
    """The inputs, and what directions belong to."""

    def arguments(variables: Variables) -> _Arguments:
        return [(variable.name, np.dtype(variable.dtype)) for variable in variables]

    return arguments(signature.inputs), arguments(operation.along(signature))


def _others(signature: Signature, operation: Operation) -> list[Key]:
    """What an operation returns beside the outputs."""
    wanted = operation.wanted(signature)
    if not isinstance(wanted, Variables):
        return [("derivatives", d.output, d.variable) for d in wanted]
    if operation is JVP:
        known = {d.output for d in signature.derivatives}
        return [("jvps", name) for name in wanted.names if name in known]
    by_inputs = wanted is signature.inputs
    derivatives = signature.derivatives if by_inputs else signature.parameter_derivatives
    known = {d.variable for d in derivatives}
    return [("adjoints", name) for name in wanted.names if name in known]
