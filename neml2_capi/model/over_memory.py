"""Evaluations over arrays of a device that runs the text: nothing goes to the host."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from neml2_capi._ffi.errors import ConvergenceError
from neml2_capi._ffi.on_device import is_on_device
from neml2_capi.model.call import Call
from neml2_capi.model.described import Described
from neml2_capi.model.evaluation import Given, Operation
from neml2_capi.model.places_on_device import new_array


def on_device(*groups: Given | None) -> bool:
    """Tell whether some arrays are on a device."""
    mappings = (group for group in groups if isinstance(group, Mapping))
    return any(is_on_device(value) for group in mappings for value in group.values())


def results(
    model: Described,
    operation: Operation,
    inputs: Given,
    overrides: Given | None,
    directions: Given | None,
) -> Any:
    """Return what the function of Model returns; ConvergenceError if points failed."""
    call = bound(model, operation, inputs, overrides, directions)
    try:
        outputs = dict(call())
    except ConvergenceError as error:
        error.derivatives = _named(call, operation)
        raise
    named = _named(call, operation)
    if named is None:
        return outputs
    return (outputs, named) if operation.with_outputs else named


def _named(call: Call, operation: Operation) -> dict[str, Any] | None:
    """The results beside the outputs, by name, as the function of Model returns them."""
    if not operation.results:
        return None
    named = getattr(call, operation.group)
    if operation.group == "derivatives":
        return {name: dict(of) for name, of in named.items()}
    if operation.group == "adjoints":
        return {name: _like_its_variable(call, operation, name) for name in named}
    return dict(named)


def bound(
    model: Described,
    operation: Operation,
    inputs: Given,
    overrides: Given | None,
    directions: Given | None = None,
) -> Call:
    """A call with new arrays for the results of an operation."""
    groups: dict[str, Any] = dict.fromkeys(
        ("tangents", "cotangents", "outputs", "jvps", "adjoints", "derivatives")
    )
    groups |= {"inputs": inputs, "parameters": overrides, "report": True}
    signature = model._signature
    if operation.group == "jvps":
        groups["tangents"] = directions
    elif operation.group == "derivatives":
        blocks: dict[str, Any] = {}
        for pair in operation.wanted(signature):
            blocks.setdefault(pair.output, {})[pair.variable] = True
        groups["derivatives"] = blocks
    elif operation.group == "adjoints":
        groups |= {"cotangents": directions, "adjoints": {}}
    call = Call(model, groups)
    if operation.group == "adjoints":
        compiled = {pair.variable for pair in signature.compiled[operation.by]}
        named = (v for v in operation.wanted(signature) if v.name in compiled)
        call.bind(adjoints={v.name: _of_all_points(call, v.name) for v in named})
    return call


def _of_all_points(call: Call, name: str) -> Any:
    """A new array for the adjoint of each point."""
    assert call._memory
    place = call._places.at("adjoints", name)
    return new_array(call._memory, place, call.batch, call._across)


def _like_its_variable(call: Call, operation: Operation, name: str) -> Any:
    """An adjoint, or its sum over the points if the variable is one value for all of them."""
    adjoint = call.adjoints[name]
    shape = call._shape_of(operation.by, name)
    if math.prod(shape) == math.prod(adjoint.shape):
        return adjoint.reshape(shape)
    assert call._memory
    summed: Any = call._memory.summed(adjoint, len(call.batch))
    return summed.reshape(shape)
