"""The places of a call where arrays can be bound, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.strings import c_string
from neml2_capi._ffi.tensor import Label
from neml2_capi._ffi.variables import Derivative, Variable, Variables
from neml2_capi.model.binding import Place
from neml2_capi.model.evaluation import check_mapping
from neml2_capi.model.reports import REPORTS
from neml2_capi.model.signature import Signature


class Places:
    """The places of a call: for each kind of array a method that looks a name up."""

    def __init__(self, model: Signature, call: Any) -> None:
        self._model, self._call = model, call
        self._known: dict[tuple[str, ...], Place] = {}

    def at(self, group: str, *names: str) -> Place:
        """The place of a kind ("inputs", "derivatives") at a name, or at two."""
        key = (group, *names)
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = getattr(self, group)(*names)
        return place

    def inputs(self, name: str) -> Place:
        return self._of("inputs", self._model.inputs, name, lib.NEML2_INPUT)

    def outputs(self, name: str) -> Place:
        return self._of("outputs", self._model.outputs, name, lib.NEML2_OUTPUT)

    def parameters(self, name: str) -> Place:
        parameters = self._model.parameters
        full = parameters.names[parameters.resolve(name)]
        return self._of("parameters", parameters, full, lib.NEML2_PARAMETER)

    def tangents(self, name: str) -> Place:
        inputs = self._model.inputs
        return self._of("tangents", inputs, name, lib.NEML2_TANGENT, "tangent of ")

    def cotangents(self, name: str) -> Place:
        outputs = self._model.outputs
        return self._of("cotangents", outputs, name, lib.NEML2_COTANGENT, "cotangent of ")

    def jvps(self, name: str) -> Place:
        outputs = self._model.outputs
        place = self._of("jvps", outputs, name, lib.NEML2_JVP, "derivative of ")
        return self._compiled(place, name in (d.output for d in self._model.derivatives))

    def adjoints(self, name: str) -> Place:
        kind, variables, derivatives = self._differentiated(name)
        full = variables.names[variables.resolve(name)]
        role = lib.NEML2_ADJOINT if kind == lib.NEML2_INPUT else lib.NEML2_PARAMETER_ADJOINT
        place = self._of("adjoints", variables, full, role, "adjoint of ")
        return self._compiled(place, full in (d.variable for d in derivatives))

    def derivatives(self, output: str, name: str) -> Place:
        kind, variables, derivatives = self._differentiated(name)
        variable = variables.names[variables.resolve(name)]
        _find(self._model.outputs, output)
        shapes = {(d.output, d.variable): d.shape for d in derivatives}
        place = Place(
            ("derivatives", output, variable),
            Label("derivative", f"{output}:{variable}"),
            shapes.get((output, variable), ()),
            np.dtype(self._model.dtype),
            lib.neml2_call_bind_derivative,
            (kind, c_string(output), c_string(variable)),
        )
        return self._compiled(place, (output, variable) in shapes)

    def report(self, name: str) -> Place:
        if name not in REPORTS:
            raise unknown_name("report", name, REPORTS)
        kind, dtype = REPORTS[name]
        label, binds = Label("report", name), lib.neml2_call_bind_report
        return Place(("report", name), label, (), np.dtype(dtype), binds, (kind,))

    def _of(
        self, group: str, variables: Variables, name: str, role: int, prefix: str = ""
    ) -> Place:
        variable = _find(variables, name)
        return Place(
            (group, name),
            Label(prefix + variables.kind, name),
            variable.point_shape,
            np.dtype(variable.dtype),
            lib.neml2_call_bind,
            (role, c_string(name)),
        )

    def _differentiated(self, name: str) -> tuple[int, Variables, Iterable[Derivative]]:
        """The inputs or the parameters, if `name` is one, and their derivatives."""
        model = self._model
        if name in model.inputs.index_of or not len(model.parameters):
            _find(model.inputs, name)
            return lib.NEML2_INPUT, model.inputs, model.derivatives
        return lib.NEML2_PARAMETER, model.parameters, model.parameter_derivatives

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
            _find(model.outputs, output)
            blocks = {d.variable: True for d in model.derivatives if d.output == output}
        check_mapping(f"derivatives[{output!r}]", blocks)
        for name, value in blocks.items():
            yield places.at("derivatives", output, name), value


def _find(variables: Variables, name: str) -> Variable:
    if name not in variables.index_of:
        raise unknown_name(variables.kind, name, variables.names)
    return variables[variables.index_of[name]]
