"""Read forces, controls, initial values and parameters of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Model
from neml2_capi._document import Node
from neml2_capi._ffi.components import components
from neml2_capi._ffi.variables import Variable
from neml2_capi.cli.signals import KINDS, WITH_FILE, column, equally_long, kind_of, signal
from neml2_capi.driver.control import NAMED, UNIAXIAL, conjugates

Array = NDArray[np.float64]


def prescribed(model: Model, time: str) -> list[Variable]:
    """The inputs that a file must prescribe."""
    histories = {history.input for history in model.histories if history.output or history.current}
    optional = {time, *histories, *model.outputs.names}
    return [variable for variable in model.inputs if variable.name not in optional]


def found(model: Model, control: dict[str, Any] | None) -> list[str]:
    """The inputs whose components are found."""
    return [conjugates(model, key)[1].name for key in control or ()]


def control(node: Node, model: Model, times: Array) -> dict[str, Any] | None:
    """Read the table [control], as drive() takes it."""
    entries = node.table()
    if not entries:
        return None
    if len(entries) > 1:
        raise node.refuse(f"has {len(entries)} outputs; expected one, such as 'stress'")
    ((key, entry),) = entries.items()
    with entry.blamed():
        output, _ = conjugates(model, key)
    if not entry.is_table:
        name = entry.text(f"components over time, or one of {', '.join(NAMED)}")
        entry.must_be_in(NAMED, name, "control")
        return {key: name}
    known = [*(component.name for component in components(output)), UNIAXIAL]
    parts: dict[str, Any] = {}
    for name, part in entry.table(known, "component").items():
        made, _ = signal(part, times)
        parts[name] = made
    if not parts:
        raise entry.expected(f"components over time, or one of {', '.join(NAMED)}")
    return {key: parts}


def forces(node: Node, model: Model, times: Array, time: str, found: list[str]) -> dict[str, Any]:
    """Read the table [forces], as drive() takes it; `found` are inputs that a control finds."""
    histories = {history.input for history in model.histories if history.output or history.current}
    known = {v.name: v for v in model.inputs if v.name not in {time, *histories}}
    for name, entry in node.table().items():
        if name == time:
            raise entry.refuse("is the time: prescribe it by [times]")
        if name in histories:
            raise entry.refuse("is history, which is carried: give values in [initial]")
        entry.must_be_in(known, name, "force")
    for variable in prescribed(model, time):
        if variable.name in found:
            continue
        node.required(variable.name, f"prescribe it, {_described(variable)}")
    return {name: _force(node[name], known[name], times) for name in node.value}


def _force(node: Node, variable: Variable, times: Array) -> Any:
    """An array if it is constant, else a function of time."""
    if not node.is_table:
        return _over_time(_values(node, variable), variable)
    kind = kind_of(node)
    if kind == "constant" and "direction" not in node:
        node.table(("constant",))
        return _over_time(_values(node["constant"], variable), variable)
    if kind == "file" and "direction" not in node:
        node.table(WITH_FILE)
        return column(node, times, variable)
    if kind:
        made, constant = signal(node, times, "direction")
        direction = _direction(node, variable)

        def force(time: float) -> Array:
            return np.multiply.outer(made(time), direction)

        return _over_time(force(times[0]), variable) if constant else force
    return _of_components(node, variable, times)


def _of_components(node: Node, variable: Variable, times: Array) -> Any:
    """A signal for each component; those that are not named are zero."""
    known = {component.name: component for component in components(variable)}
    parts, constants = [], []
    for name, entry in node.table().items():
        entry.must_be_in([*filter(None, known), *KINDS], name, "key")
        unit = np.zeros(variable.point_shape)
        unit[known[name].place] = known[name].factor
        made, constant = signal(entry, times)
        parts.append((unit, made))
        constants.append(constant)

    def force(time: float) -> Array:
        zeros = np.zeros(variable.point_shape)
        return sum((np.multiply.outer(made(time), unit) for unit, made in parts), start=zeros)

    with equally_long(node):
        first = force(float(times[0]))
    return _over_time(first, variable) if all(constants) else force


def _direction(node: Node, variable: Variable) -> Array:
    """Read the array that the signal of a whole variable multiplies."""
    shape = variable.point_shape
    if "direction" not in node:
        if shape:
            raise node.refuse(
                f"'direction' is missing: the components of {variable.name} that one signal "
                f"drives, for example direction = {{ {components(variable)[0].name} = 1.0 }}"
            )
        return np.ones(())
    if not shape:
        raise node["direction"].refuse(f"{variable.name} is a scalar, and has no direction")
    return _values(node["direction"], variable, batched=False)


def _over_time(value: Array, variable: Variable) -> Array:
    """A constant as drive() takes it: with an axis of times, if there is one value per point."""
    return value if value.shape == variable.point_shape else value[np.newaxis]


def _values(node: Node, variable: Variable, *, batched: bool = True) -> Array:
    """An array as it is stored, or a table of components; one, or one for each point."""
    shape = variable.point_shape
    if node.is_table:
        known = {component.name: component for component in components(variable)}
        value = np.zeros(shape)
        for name, entry in node.table(known, "component").items():
            value[known[name].place] = known[name].factor * entry.number()
        return value
    value = node.numbers(_described(variable))
    split = value.ndim - len(shape)
    if value.shape[max(split, 0) :] != shape or split < 0 or split > int(batched):
        raise node.expected(_described(variable) + (", or a list of them" if batched else ""))
    return value


def _described(variable: Variable) -> str:
    """Describe a value of the variable, for messages."""
    names = [component.name for component in components(variable)]
    if names == [""]:
        return "a number"
    size = " x ".join(map(str, variable.point_shape))
    shown = ", ".join(names[:9]) + (", ..." if len(names) > 9 else "")
    mandel = " in Mandel notation" if variable.type == "SR2" else ""
    return f"{size} numbers{mandel}, or a table of the components {shown}"


def initial_values(node: Node, model: Model) -> dict[str, Array]:
    """Read the table [initial]."""
    histories = {history.input for history in model.histories}
    older = {f"{h.output or h.current}~{h.age - 1}" for h in model.histories if h.age > 1}
    known = {v.name: v for v in model.outputs}
    known |= {v.name: v for v in model.inputs if v.name in older & histories}
    entries = node.table(known, "initial value")
    return {name: _values(entry, known[name]) for name, entry in entries.items()}


def parameters(node: Node, model: Model) -> dict[str, Array]:
    """Read the table [parameters], by the names that the model has for them."""
    values = {}
    for name, entry in node.table().items():
        with entry.blamed():
            index = model.parameters.resolve(name)
        variable = model.parameters[index]
        values[variable.name] = _values(entry, variable)
    return values
