"""The places of a call where arrays can be bound, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.labels import Label
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.strings import c_string
from neml2_capi._ffi.variables import Variables, variable_of
from neml2_capi.model.binding import Place
from neml2_capi.model.described import Described
from neml2_capi.model.evaluation import check_mapping
from neml2_capi.model.reports import ALWAYS, REPORTS
from neml2_capi.model.signature import Signature

#: Of a kind of array: whose it is, its role for the library, and what stands before its name.
_ROLES = {
    "inputs": ("inputs", lib.NEML2_INPUT, ""),
    "outputs": ("outputs", lib.NEML2_OUTPUT, ""),
    "parameters": ("parameters", lib.NEML2_PARAMETER, ""),
    "tangents": ("inputs", lib.NEML2_TANGENT, "tangent of "),
    "cotangents": ("outputs", lib.NEML2_COTANGENT, "cotangent of "),
    "jvps": ("outputs", lib.NEML2_JVP, "derivative of "),
}
_ADJOINTS = {
    "inputs": ("inputs", lib.NEML2_ADJOINT, "adjoint of "),
    "parameters": ("parameters", lib.NEML2_PARAMETER_ADJOINT, "adjoint of "),
}


class Places:
    """The places of a call, which are looked up by name."""

    def __init__(self, model: Signature, call: Any) -> None:
        self._model, self._call = model, call
        self._known: dict[tuple[str, ...], Place] = {}

    def at(self, group: str, *names: str) -> Place:
        """The place of a kind ("inputs", "derivatives") at a name, or at two."""
        key = (group, *names)
        place = self._known.get(key)
        if place is None:
            if group == "derivatives":
                place = self._block(*names)
            elif group == "report":
                place = self._report(*names)
            else:
                place = self._array(group, *names)
            self._known[key] = place
        return place

    def _array(self, group: str, name: str) -> Place:
        model = self._model
        by = self._differentiated(name) if group == "adjoints" else ""
        of, role, prefix = _ADJOINTS[by] if by else _ROLES[group]
        variables: Variables = getattr(model, of)
        if of == "parameters":
            name = variables.names[variables.resolve(name)]
        variable = variable_of(variables, name)
        place = Place(
            (group, name),
            Label(prefix + variables.kind, name),
            variable.point_shape,
            np.dtype(variable.dtype),
            lib.neml2_call_bind,
            (role, c_string(name)),
        )
        if by:
            return self._compiled(place, name in (d.variable for d in model.compiled[by]))
        is_there = group != "jvps" or name in (d.output for d in model.derivatives)
        return self._compiled(place, is_there)

    def _block(self, output: str, name: str) -> Place:
        by = self._differentiated(name)
        variables: Variables = getattr(self._model, by)
        variable = variables.names[variables.resolve(name)]
        variable_of(self._model.outputs, output)
        shapes = {(d.output, d.variable): d.shape for d in self._model.compiled[by]}
        kind = lib.NEML2_INPUT if by == "inputs" else lib.NEML2_PARAMETER
        place = Place(
            ("derivatives", output, variable),
            Label("derivative", f"{output}:{variable}"),
            shapes.get((output, variable), ()),
            np.dtype(self._model.dtype),
            lib.neml2_call_bind_derivative,
            (kind, c_string(output), c_string(variable)),
        )
        return self._compiled(place, (output, variable) in shapes)

    def _report(self, name: str) -> Place:
        if name not in REPORTS:
            raise unknown_name("report", name, REPORTS)
        kind, dtype = REPORTS[name]
        label, binds = Label("report", name), lib.neml2_call_bind_report
        return Place(("report", name), label, (), np.dtype(dtype), binds, (kind,))

    def _differentiated(self, name: str) -> str:
        """Of what a derivative by `name` is: "inputs" or, if it is one, "parameters"."""
        model = self._model
        if name in model.inputs.index_of or not len(model.parameters):
            variable_of(model.inputs, name)
            return "inputs"
        return "parameters"

    def _compiled(self, place: Place, compiled: bool) -> Place:
        """`place`; the library's own error if that derivative was not compiled."""
        if not compiled:
            place.attach(self._call, None)
        return place


def requests(
    model: Signature, places: Places, groups: Mapping[str, Any]
) -> Iterator[tuple[Place, Any]]:
    """Yield what to bind where: an array, True for a new one, or None to take a binding back."""
    for group, values in groups.items():
        if group == "derivatives":
            yield from _block_requests(model, places, values)
        elif values is not None:
            check_mapping(group, values)
            for name, value in values.items():
                known = group != "inputs" or name in model.inputs.index_of
                if known or not model.inputs.is_replaced_guess(name, value):
                    yield places.at(group, name), value


def _block_requests(model: Signature, places: Places, values: Any) -> Iterator[tuple[Place, Any]]:
    if values is True:
        values = dict.fromkeys((derivative.output for derivative in model.derivatives), True)
    if values is None or values is False:
        return
    check_mapping("derivatives", values)
    for output, blocks in values.items():
        if blocks is True:
            variable_of(model.outputs, output)
            blocks = {d.variable: True for d in model.derivatives if d.output == output}
        check_mapping(f"derivatives[{output!r}]", blocks)
        for name, value in blocks.items():
            yield places.at("derivatives", output, name), value


def with_defaults(model: Described, groups: Mapping[str, Any]) -> dict[str, Any]:
    """`groups`, with new arrays for the outputs, and for what else is asked for by and by.

    Outputs that are not named are allocated all the same; what a tangent or a cotangent leads to is
    if nothing is named; and the status always.
    """
    check_mapping("inputs", groups["inputs"])
    report, derivatives = groups["report"], model.derivatives
    completed = dict(groups)
    for group, names, given in (
        ("outputs", model.outputs.names, groups["outputs"]),
        ("report", ALWAYS if report is True else ["status"], None if report is True else report),
    ):
        check_mapping(group, given or {})
        completed[group] = {**dict.fromkeys(names, True), **(given or {})}
    if groups["tangents"] is not None and groups["jvps"] is None:
        completed["jvps"] = dict.fromkeys((d.output for d in derivatives), True)
    if groups["cotangents"] is not None and groups["adjoints"] is None:
        completed["adjoints"] = dict.fromkeys((d.variable for d in derivatives), True)
    return completed


def missing(place: Place) -> FatalError:
    return place.label.refuse(
        f"is missing; every input must be bound. Its shape is batch axes and then {place.shape}",
        lib.NEML2_ERROR_MISSING,
    )
