"""Repeated evaluations: values are copied to a call that was made for arguments of their form.

A point is evaluated in less time than it takes to check arguments, wrap them in tensors and hand
tensors out. When arguments of one form come a second time, a call is bound to arrays of its own;
from then on values are copied in, evaluated, and copied out, as long as they are few. What a call
cannot do, and points that fail, go through tensors, which tell of errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError, last_message
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import drain
from neml2_capi._ffi.tensor import Array, is_torch
from neml2_capi._ffi.variables import Derivative
from neml2_capi.model.binding import Key, Shape
from neml2_capi.model.evaluation import OPERATIONS, Evaluation, Operation, warn_of_non_finite
from neml2_capi.model.places import Places

if TYPE_CHECKING:
    from neml2_capi.model.backend import Backend

#: The most bytes in the arrays of a call: beyond, copies cost more than they save.
_LARGEST = 1 << 18
#: The most forms that are remembered, and the most calls that are kept.
_MOST = 32

_Named = tuple[str | None, str, Callable[[], Any]]


class Form(NamedTuple):
    """An argument but for its values."""

    #: 0 of an input, 1 of a direction.
    group: int
    name: str
    kind: type
    shape: Shape
    dtype: np.dtype[Any]


class Slot(NamedTuple):
    """A call over arrays of its own."""

    #: The owner of the call.
    owner: Any
    call: Any
    points: int
    #: Number of inputs.
    arity: int
    #: Number of directions; None where the operation takes none.
    directed: int | None
    #: The fields of a Form each, and the array to copy to.
    given: list[tuple[int, str, type, Shape, np.dtype[Any], Array]]
    #: A name, and what makes the value; empty where the operation returns no outputs.
    outputs: list[tuple[str, Callable[[], Any]]]
    #: Names and makers behind the output of a block, else None; None where there are only outputs.
    others: list[_Named] | None


class Memory:
    """Calls that are kept for one operation."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        #: True while the parameters have their batches.
        self.valid = True
        #: The calls that no thread uses, the last one used at the end.
        self.slots: list[Slot] = []
        # Forms that came, and whether a call can evaluate them.
        self._seen: dict[tuple[Form, ...], bool] = {}

    def learn(
        self,
        backend: Backend,
        inputs: Mapping[str, Any],
        directions: Mapping[str, Any] | None,
        evaluation: Evaluation,
    ) -> None:
        """Remember an evaluation over tensors that went well."""
        try:
            forms = self._forms(backend, inputs, directions or {})
        except LookupError:
            return
        seen = self._seen.get(forms)
        if seen is None:
            if len(self._seen) >= _MOST:
                self._seen.clear()
            self._seen[forms] = True
        elif seen:
            try:
                self.slots.append(_slot(backend, self._operation, forms, evaluation))
            except FatalError:
                self._seen[forms] = False
            del self.slots[:-_MOST]

    def _forms(
        self, backend: Backend, inputs: Mapping[str, Any], directions: Mapping[str, Any]
    ) -> tuple[Form, ...]:
        """The forms of all arguments; LookupError where a call cannot take one."""
        signature, forms = backend.signature, []
        arguments = ((inputs, signature.inputs), (directions, self._operation.along(signature)))
        for group, (values, variables) in enumerate(arguments):
            for name, value in values.items():
                array, dtype = plain(value), np.dtype(variables[variables.index_of[name]].dtype)
                if array.dtype is not dtype or not array.flags.aligned:
                    raise LookupError(name)
                forms.append(Form(group, name, type(value), array.shape, dtype))
        return tuple(forms)


def memories() -> dict[str, Memory]:
    """Memories by operation, of nothing yet."""
    return {operation.name: Memory(operation) for operation in OPERATIONS}


def is_left_to_tensors(status: int, operation: Operation) -> bool:
    """Tell what a run of that status told, but for the warning of one that is made again."""
    again: bool = status != lib.NEML2_NON_FINITE or operation.results is not None
    drain(but=last_message() if again else None)
    if not again:
        warn_of_non_finite(last_message())
    return again


def plain(value: Any) -> Array:
    """The values of an argument as an array; LookupError where tensors must read them."""
    if type(value) is np.ndarray:
        return value
    if type(value) is float:
        return np.asarray(value)
    if is_torch(value):
        try:
            plain: Any = value.detach().numpy()
        except (RuntimeError, TypeError):  # on another device, or without plain memory
            raise LookupError from None
        if type(plain) is np.ndarray:
            return plain
    raise LookupError


def _slot(
    backend: Backend, operation: Operation, forms: tuple[Form, ...], evaluation: Evaluation
) -> Slot:
    """A call that does what the evaluation did; FatalError where none can, or arrays are large."""
    signature, owner = backend.signature, backend.new_call()
    places = Places(signature, owner[0])
    batch = places.at("outputs", signature.outputs.names[0]).batch_of(
        next(iter(evaluation.outputs.values()))
    )
    arrays: list[Array] = []

    def bound(key: Key, shape: Shape | None = None) -> Array:
        """A new array that is bound; `shape` is for a sum over the points."""
        place = places.at(*key)
        array = np.empty(batch + place.shape if shape is None else shape, place.dtype)
        if array.size == 0:
            raise FatalError("there are no points")
        place.attach(owner[0], place.bound(array, array, batch))
        arrays.append(array)
        return array

    def copier(key: Key, result: Any) -> Callable[[], Any]:
        """Return what gives a new array like `result`."""
        shape = tuple(result.shape)
        if key[0] == "derivatives" and shape == places.at(*key).shape:  # one block for all points
            buffer = bound(key).reshape(-1, *shape)[0, ...]
        else:
            buffer = bound(key, shape)
        if not is_torch(result):
            return buffer.copy
        from_numpy = sys.modules["torch"].from_numpy
        return lambda: from_numpy(buffer.copy())

    groups = "inputs", operation.argument
    given = [(*form, bound((groups[form.group], form.name))) for form in forms]
    outputs, others = [], list[_Named]() if operation.results else None
    if operation.with_outputs:
        outputs = [(n, copier(("outputs", n), out)) for n, out in evaluation.outputs.items()]
    if others is not None:
        for end, result in zip(operation.wanted(signature), evaluation.results, strict=True):
            if isinstance(end, Derivative):
                copy = copier((operation.group, end.output, end.variable), result)
                others.append((end.output, end.variable, copy))
            elif result is not None:
                others.append((None, end.name, copier((operation.group, end.name), result)))
    if sum(array.nbytes for array in arrays) > _LARGEST:
        raise FatalError("these arrays are large")
    arity = len(signature.inputs)
    directed = len(forms) - arity if operation.directions else None
    return Slot(owner, owner[0], math.prod(batch), arity, directed, given, outputs, others)
