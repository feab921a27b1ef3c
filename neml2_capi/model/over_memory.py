"""Evaluations over arrays of a device that runs the text: nothing goes to the host."""

from __future__ import annotations

from typing import Any

from neml2_capi._ffi.on_device import is_on_device
from neml2_capi.model.call import Call
from neml2_capi.model.described import Described
from neml2_capi.model.evaluation import Given, Operation


def on_device(inputs: Given) -> bool:
    """Tell whether some arrays are on a device."""
    return any(map(is_on_device, inputs.values()))


def results(
    model: Described,
    operation: Operation,
    inputs: Given,
    overrides: Given | None,
    directions: Given | None,
) -> Any:
    """Return what the function of Model returns; ConvergenceError if points failed."""
    call = bound(model, operation, inputs, overrides, directions)
    outputs = dict(call())
    if not operation.results:
        return outputs
    named = getattr(call, operation.group)
    blocks = operation.group == "derivatives"
    return outputs, {name: dict(of) if blocks else of for name, of in named.items()}


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
    if operation.directions:
        groups[operation.argument] = directions
    elif operation.results:
        groups["derivatives"] = True
    return Call(model, groups)
