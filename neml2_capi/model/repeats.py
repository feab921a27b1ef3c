"""Evaluations over numpy arrays and torch tensors: values are copied to a call for their form.

A point is evaluated in less time than it takes to check arguments, wrap them in tensors and hand
tensors out. So a call is bound to arrays of its own, for arguments of one form; then values are
copied in, evaluated, and copied out, as long as they are few. What a call cannot do, and points
that fail, go through tensors, which tell of errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError, last_message
from neml2_capi._ffi.kinds import TORCH
from neml2_capi._ffi.labels import Array, common_batch
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import drain
from neml2_capi._ffi.tensor import carries_tangent, is_torch
from neml2_capi._ffi.variables import Derivative
from neml2_capi.model.binding import Place, Shape
from neml2_capi.model.evaluation import (
    JVP,
    OPERATIONS,
    Operation,
    warn_of_non_finite,
)
from neml2_capi.model.opened import Opened
from neml2_capi.model.places import Places

#: The most bytes in the arrays of a call: beyond, copies cost more than they save.
_LARGEST = 1 << 18
#: The most forms that are remembered, and the most calls that are kept.
_MOST = 16

_Named = tuple[str | None, str, Callable[[], Any]]


class Form(NamedTuple):
    """An argument without its values."""

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
    #: Number of directions; None if the operation takes none.
    directed: int | None
    #: The fields of a Form each, and the array to copy to.
    given: list[tuple[int, str, type, Shape, np.dtype[Any], Array]]
    #: A name, and what makes the value; empty if the operation returns no outputs.
    outputs: list[tuple[str, Callable[[], Any]]]
    #: Names and makers behind the output of a block, else None; None if there are only outputs.
    others: list[_Named] | None


class Memory:
    """Calls that are kept for one operation."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        #: True while the parameters have their batches.
        self.valid = True
        #: The calls that no thread uses, the last one used at the end.
        self.slots: list[Slot] = []
        # Forms that a call cannot evaluate.
        self._refused: set[tuple[Form, ...]] = set()
        self._places: Places | None = None

    def new(self, backend: Opened, inputs: Mapping[str, Any], directions: Any) -> Slot | None:
        """Make a call for arguments of this form; None if tensors must evaluate them."""
        try:
            forms = self._forms(backend, inputs, {} if directions is None else directions)
        except LookupError:
            return None
        if forms in self._refused:
            return None
        try:
            owner = backend.new_call()
            self._places = self._places or Places(backend.signature, owner[0])
            slot = _slot(backend, self._operation, forms, owner, self._places)
        except FatalError:
            if len(self._refused) >= _MOST:
                self._refused.clear()
            self._refused.add(forms)
            return None
        del self.slots[: 1 - _MOST]
        return slot

    def _forms(
        self, backend: Opened, inputs: Mapping[str, Any], directions: Mapping[str, Any]
    ) -> tuple[Form, ...]:
        """The forms of all arguments; LookupError if a call cannot take one."""
        signature, forms = backend.signature, []
        mapped = isinstance(inputs, Mapping) and isinstance(directions, Mapping)
        if not mapped or len(inputs) != len(signature.inputs):
            raise LookupError("tensors say what is wrong")
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
    """Report what a run of that status reports, except the warning of one that is made again."""
    again: bool = status != lib.NEML2_NON_FINITE or operation.results is not None
    drain(but=last_message() if again else None)
    if not again:
        warn_of_non_finite(last_message())
    return again


def plain(value: Any) -> Array:
    """The values of an argument as an array; LookupError if tensors must read or refuse them."""
    if type(value) is np.ndarray:
        return value
    if type(value) is float:
        return np.asarray(value)
    if is_torch(value) and not carries_tangent(value):
        try:
            plain: Any = value.detach().numpy()
        except (RuntimeError, TypeError):  # on another device, or without plain memory
            raise LookupError from None
        if type(plain) is np.ndarray:
            return plain
    raise LookupError


def _slot(
    backend: Opened, operation: Operation, forms: tuple[Form, ...], owner: Any, places: Places
) -> Slot:
    """A call for arguments of these forms; FatalError if there is none, or arrays are large."""
    signature = backend.signature
    # Blocks of a model of one forward segment may have fewer axes: only results tell.
    if operation.group == "derivatives" and any(v.sub_batch_shape for v in signature.outputs):
        raise FatalError("the axes of blocks are not known")
    groups = "inputs", operation.argument
    given = [(form, places.at(groups[form.group], form.name)) for form in forms]
    own = {place.key: place.label.batch_of(form.shape, place.shape) for form, place in given}
    for index, name in enumerate(signature.parameters.names):
        place = places.at("parameters", name)
        own[place.key] = place.batch_of(backend.parameter(index))
    batch = common_batch((places.at(*key).label, batch) for key, batch in own.items())
    points, left = math.prod(batch), _LARGEST
    if points == 0:
        raise FatalError("there are no points")

    def bound(place: Place, axes: Shape = batch) -> Array:
        """A new array that is bound."""
        nonlocal left
        left -= math.prod(axes + place.shape) * place.dtype.itemsize
        if left < 0:
            raise FatalError("these arrays are large")
        array = np.empty(axes + place.shape, place.dtype)
        place.attach(owner[0], place.bound(array, array, batch))
        return array

    is_of_torch = backend.kind is TORCH or any(
        form.kind not in (np.ndarray, float) for form in forms
    )

    def copier(array: Array) -> Callable[[], Any]:
        """Return what gives a new array of the results' kind."""
        if not is_of_torch:
            return array.copy
        from_numpy = sys.modules["torch"].from_numpy
        return lambda: from_numpy(array.copy())

    def result(end: Any) -> _Named | None:
        """The copier of a derivative, of an output's or of a variable's; None if there is none."""
        if isinstance(end, Derivative):
            place = places.at("derivatives", end.output, end.variable)
            array = bound(place)
            if not end.batched and operation.results == "derivatives":
                array = array.reshape(-1, *place.shape)[0, ...]
            return end.output, end.variable, copier(array)
        if end.name not in compiled:
            return None
        place = places.at(operation.group, end.name)
        # An adjoint is like its variable: the sum over the points, if that is one value.
        axes = batch if operation is JVP else own[operation.by, end.name]
        return None, end.name, copier(bound(place, axes))

    buffers = [(*form, bound(place)) for form, place in given]
    outputs, others = [], None
    if operation.with_outputs:
        named = signature.outputs.names
        outputs = [(name, copier(bound(places.at("outputs", name)))) for name in named]
    if operation.results:
        derivatives = signature.compiled[operation.by]
        compiled = {d.output if operation is JVP else d.variable for d in derivatives}
        if not compiled:
            raise FatalError("no derivatives were compiled")
        others = [made for end in operation.wanted(signature) if (made := result(end))]
    arity = len(signature.inputs)
    directed = len(forms) - arity if operation.directions else None
    return Slot(owner, owner[0], points, arity, directed, buffers, outputs, others)
