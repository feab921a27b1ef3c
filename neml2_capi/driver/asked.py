"""Variables of the derivatives of a driven model: parameters, initial values, prescribed values."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import lib
from neml2_capi.driver.forces import Force, Function, Parts
from neml2_capi.driver.history import History
from neml2_capi.driver.linearized import Column

#: Before the name of an output, or of its older value: it is its initial value.
INITIAL = "initial:"


class Asked(NamedTuple):
    """Variable of one derivative."""

    name: str
    #: "parameter", "initial", "force" or "target".
    kind: str
    #: Of the parameter or the variable.
    variable: str
    #: The shape of one point.
    shape: tuple[int, ...]
    #: The batch axes of what was given.
    batch: tuple[int, ...]
    columns: tuple[Column, ...]
    #: What is prescribed, and by what its components are stored times.
    force: Force | None = None
    factor: float = 1.0

    @property
    def size(self) -> int:
        """How many numbers one point has."""
        return math.prod(self.shape)


def asked(history: History, name: str) -> Asked:
    """Read the name of a parameter, "initial:x", a prescribed variable, or a component of one."""
    model = history.model
    if name.startswith(INITIAL):
        return _initial(history, name)
    if name in history.forces and name != history.found:
        return _force(history, name, name, None)
    variable, _, part = name.partition(".")
    if part and variable in history.forces:
        return _force(history, name, variable, part)
    control = history.control
    if control and part and variable == control.output.name:
        if part not in control.components:
            raise unknown_name(
                "prescribed component", name, [f"{variable}.{each}" for each in control.components]
            )
        place = control.components.index(part)
        column = Column("target", variable, 0, (int(control.free[place]),))
        force = control.forces[place]
        return _over_time(name, "target", variable, force, (column,), control.factors[place])
    if name in model.parameters.index_of or not _is_prescribed(history, name):
        parameter = model.parameters[model.parameters.resolve(name)]
        size = tuple(range(math.prod(parameter.point_shape)))
        given = history.given_parameters.get(parameter.name)
        if given:
            own = given.batch
        else:
            stored = np.shape(model.named_parameters()[parameter.name])
            own = stored[: len(stored) - len(parameter.point_shape)]
        return Asked(
            name,
            "parameter",
            parameter.name,
            parameter.point_shape,
            own,
            (Column("parameter", parameter.name, 0, size),),
        )
    raise Label("derivatives", name).refuse(
        f"is found or prescribed by components: expected one of them, '{name}.xx' for example",
        lib.NEML2_ERROR_ARGUMENT,
    )


def _is_prescribed(history: History, name: str) -> bool:
    control = history.control
    return name == history.found or bool(control and name == control.output.name)


def _initial(history: History, name: str) -> Asked:
    value = name.removeprefix(INITIAL)
    outputs = history.model.outputs
    older = {
        age: series.name
        for series in history.roles.series
        for age in (series.name, *series.ages[1:-1])
        if series.name in outputs.index_of
    }
    label = Label("initial value", value)
    if any(value in series.ages[1:-1] for series in history.roles.series) and value not in older:
        raise label.refuse(
            "is before the first time, and there are no derivatives by what is prescribed then: "
            "leave it out of the derivatives, and give it without a gradient, tensor.detach()",
            lib.NEML2_ERROR_UNSUPPORTED,
        )
    if value in outputs.index_of and value not in older:
        raise label.refuse(
            "is in the first row of the results, and nothing else depends on it, since the model "
            "has no history of it: leave it out of the derivatives, and give it without a "
            "gradient, tensor.detach()",
            lib.NEML2_ERROR_UNSUPPORTED,
        )
    if value not in older:
        raise unknown_name("initial value", value, older)
    variable = outputs[outputs.index_of[older[value]]]
    given = history.initial.get(value)
    batch = given.batch if given else history.batch
    return Asked(name, "initial", value, variable.point_shape, batch, ())


def _force(history: History, name: str, variable: str, part: str | None) -> Asked:
    force = history.forces[variable]
    if isinstance(force, Parts):
        if part is None:
            raise Label("derivatives", name).refuse(
                "is prescribed by components: expected one of "
                f"{', '.join(f'{name}.{each}' for each in force.parts)}",
                lib.NEML2_ERROR_ARGUMENT,
            )
        if part not in force.parts:
            known = [f"{variable}.{each}" for each in force.parts]
            raise unknown_name("prescribed component", name, known)
        place, factor, own = force.parts[part]
        places: tuple[int, ...] = (int(place),)
    elif part is not None:
        raise Label("derivatives", name).refuse(
            f"is prescribed as a whole: expected '{variable}'", lib.NEML2_ERROR_ARGUMENT
        )
    else:
        factor, own, places = 1.0, force, tuple(range(math.prod(force.shape)))
    depth = 0
    if variable != history.found:
        depth = max((s.depth for s in history.roles.series if s.name == variable), default=0)
    ages = range(depth + 1)
    columns = tuple(Column("force", variable, age, places) for age in ages)
    return _over_time(name, "force", variable, own, columns, factor)


def _over_time(
    name: str,
    kind: str,
    variable: str,
    force: Force,
    columns: tuple[Column, ...],
    factor: float,
) -> Asked:
    if isinstance(force, Function):
        raise FatalError(
            f"{name} is a function of time, which derivatives cannot be by: give its values at the "
            "times, an array",
            lib.NEML2_ERROR_ARGUMENT,
            name,
        )
    return Asked(name, kind, variable, force.shape, force.batch, columns, force, factor)


def summed(values: Array, batch: tuple[int, ...], own: tuple[int, ...]) -> Array:
    """Sum what was repeated over the batch: (..., *batch, size) to (..., *own, size)."""
    axes = values.ndim - 1 - len(batch)
    missing = (1,) * (len(batch) - len(own)) + own
    for axis, (whole, part) in enumerate(zip(batch, missing, strict=True)):
        if part == 1 and whole != 1:
            values = values.sum(axis=axes + axis, keepdims=True)
    lead = values.shape[:axes]
    return values.reshape(*lead, *own, values.shape[-1])
