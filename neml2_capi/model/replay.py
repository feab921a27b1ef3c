"""Evaluations of arrays like those before: bound once, then copied in and out.

One point can be evaluated in less time than it takes to check the arguments, wrap them in tensors
and hand tensors out. So what went well that way is remembered by the shapes of its arguments. When
these come a second time, arrays of our own are bound in a call, and from then on the values are
copied in, evaluated in place, and copied out: as long as they are few, which is where it counts.
Everything else, points that fail for example, is left to the general way, which tells of errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.handle import Handle, new_call
from neml2_capi._ffi.logs import listening
from neml2_capi._ffi.tensor import Array, is_torch
from neml2_capi.model.binding import Key, Place, Shape
from neml2_capi.model.evaluation import (
    JVP,
    OPERATIONS,
    PARAM_JACOBIAN,
    PARAM_VJP,
    VJP,
    Evaluation,
    Operation,
)
from neml2_capi.model.places import Places
from neml2_capi.model.unrolled import unrolled

if TYPE_CHECKING:
    from neml2_capi.model.model import Model

#: The most bytes in the arrays of a call: beyond, the copies cost more than they save.
_LARGEST = 1 << 18
#: The most sets of shapes that are remembered.
_MOST = 32
#: Lists of slots by the shapes of arguments.
Pools = dict[Any, list[Any]]
#: The list of shapes that are not worth it.
_NEVER: list[Any] = []


class Replays:
    """What a model remembers of its functions."""

    # By the names of the functions: what they return, or None where they must be asked.
    forward: Callable[[Any], dict[str, Any] | None]
    jvp: Callable[[Any, Any], tuple[dict[str, Any], dict[str, Any]] | None]
    vjp: Callable[[Any, Any], tuple[dict[str, Any], dict[str, Any]] | None]
    jacobian: Callable[[Any], tuple[dict[str, Any], dict[str, dict[str, Any]]] | None]
    param_jacobian: Callable[[Any], tuple[dict[str, Any], dict[str, dict[str, Any]]] | None]
    param_vjp: Callable[[Any, Any], dict[str, Any] | None]

    def __init__(self) -> None:
        self._replays: dict[str, Replay] = {}
        self._suspended = False
        for operation in OPERATIONS:
            setattr(self, operation.name, _nothing)

    def of(self, operation: Operation, model: Model) -> Replay | None:
        """Where to remember evaluations that begin now; None where they must not be."""
        if self._suspended or listening:
            return None
        replay = self._replays.get(operation.name)
        if replay is None:
            replay = self._replays[operation.name] = Replay(model, operation)
        return replay

    def learn(
        self,
        replay: Replay,
        pools: Pools,
        model: Model,
        inputs: Mapping[str, Any],
        directions: Mapping[str, Any] | None,
        evaluation: Evaluation,
    ) -> None:
        """Remember an evaluation that went well; `pools` are those of `replay` from before it."""
        if replay.learn(pools, model, inputs, directions, evaluation):
            setattr(self, replay.name, replay.function())

    @contextmanager
    def forgotten(self) -> Iterator[None]:
        """Forget everything, and replay nothing meanwhile: the batch may become another."""
        self._suspended = True
        for replay in list(self._replays.values()):
            replay.memory.pools = None
        try:
            yield
        finally:
            for replay in list(self._replays.values()):
                replay.memory.pools = {}
            self._suspended = False


def _nothing(*_: Any) -> None:
    return None


class Memory:
    """Slots by the shapes of the arguments, see unrolled(); None where nothing is replayed."""

    __slots__ = ("pools",)

    def __init__(self) -> None:
        self.pools: Pools | None = {}


class Replay:
    """What is remembered of one function of a model."""

    def __init__(self, model: Model, operation: Operation) -> None:
        self.name = operation.name
        self.memory = Memory()
        variables = list(model.inputs)
        self._read: list[Key] = [("inputs", name) for name in model.inputs.names]
        if operation.directions:
            directed = getattr(model, operation.directions[1])
            variables += directed
            group = f"{operation.directions[0].split()[0]}s"
            self._read += [(group, name) for name in directed.names]
        self._dtypes = [np.dtype(variable.dtype) for variable in variables]
        self._written = _others(model, operation)
        if operation is not PARAM_VJP:  # which returns no outputs
            self._written[:0] = [("outputs", name) for name in model.outputs.names]
        self._function: Callable[..., Any] | None = None

    def function(self) -> Callable[..., Any]:
        """The function that replays."""
        if self._function is None:
            self._function = unrolled(self.memory, _like, self._read, self._dtypes, self._written)
        return self._function

    def learn(
        self,
        pools: Pools,
        model: Model,
        inputs: Mapping[str, Any],
        directions: Mapping[str, Any] | None,
        evaluation: Evaluation,
    ) -> bool:
        """Whether there is something to replay now: arguments of these shapes came before."""
        values = [
            (inputs if group == "inputs" else directions or {}).get(name)
            for group, name in self._read
        ]
        try:
            shapes = tuple(
                None if value is None else _like(value, dtype)[1]
                for value, dtype in zip(values, self._dtypes, strict=True)
            )
        except LookupError:
            return False
        key = shapes if len(shapes) != 1 else shapes[0]
        pool = pools.get(key)
        if pool is None:
            if len(pools) >= _MOST:
                pools.clear()
            pools[key] = []
        elif pool is not _NEVER:
            try:
                pool.append(self._slot(model, [value is not None for value in values], evaluation))
                return True
            except FatalError:
                pools[key] = _NEVER
        return False

    def _slot(self, model: Model, given: Sequence[bool], evaluation: Evaluation) -> Any:
        """A call that does what the evaluation did, as unrolled() wants it.

        FatalError where no call can, or the arrays are large.
        """
        owner = new_call(model)
        places = Places(model, owner[0])
        outputs = list(evaluation.outputs.values())
        batch = places.at("outputs", model.outputs.names[0]).batch_of(outputs[0])
        buffers = [
            _buffer(owner, places.at(*key), batch) if there else None
            for key, there in zip(self._read, given, strict=True)
        ]
        results = outputs if self._written[0][0] == "outputs" else []
        results = results + [result for result in evaluation.results if result is not None]
        copies = []
        for key, result in zip(self._written, results, strict=True):
            place, shape = places.at(*key), tuple(result.shape)
            if key[0] == "derivatives" and shape == place.shape:  # one block for all points
                buffer = _buffer(owner, place, batch).reshape(-1, *shape)[0, ...]
            else:
                buffer = _buffer(owner, place, batch, shape)
            buffers.append(buffer)
            copies.append(_copier(buffer, result))
        if sum(buffer.nbytes for buffer in buffers if buffer is not None) > _LARGEST:
            raise FatalError("these arrays are large")
        call = Handle(owner)
        return (call, call._pointer, math.prod(batch), *buffers[: len(self._read)], *copies)


def _buffer(owner: Any, place: Place, batch: Shape, shape: Shape | None = None) -> Array:
    """A new array that is bound; `shape` is for a sum over the points."""
    array = np.empty(batch + place.shape if shape is None else shape, place.dtype)
    if array.size == 0:
        raise FatalError("there are no points")
    place.attach(owner[0], place.bound(array, array, batch))
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


def _others(model: Model, operation: Operation) -> list[Key]:
    """What a function returns beside the outputs."""
    of_parameters = operation in (PARAM_JACOBIAN, PARAM_VJP)
    derivatives = model.parameter_derivatives if of_parameters else model.derivatives
    ends = {d.output for d in derivatives}, {d.variable for d in derivatives}
    if operation is JVP:
        return [("jvps", name) for name in model.outputs.names if name in ends[0]]
    if operation is VJP:
        return [("adjoints", name) for name in model.inputs.names if name in ends[1]]
    if operation is PARAM_VJP:
        return [("adjoints", name) for name in model.parameters.names if name in ends[1]]
    return [("derivatives", d.output, d.variable) for d in derivatives] if operation.results else []
