"""Values that hold from the beginning: initial values, and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neml2_capi._ffi import labels
from neml2_capi._ffi.errors import unknown_name
from neml2_capi._ffi.kinds import Kind, kind_of
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import lib
from neml2_capi.driver.forces import Force, Shape, Table, as_array, typed, write
from neml2_capi.driver.series import Roles
from neml2_capi.model.evaluation import check_mapping

if TYPE_CHECKING:
    from neml2_capi._ffi.variables import Variable, Variables
    from neml2_capi.model import Model


class Given(NamedTuple):
    """A value of a variable, (*batch, *point shape)."""

    label: Label
    variable: Variable
    value: Array
    kind: Kind | None

    @property
    def batch(self) -> Shape:
        return self.label.batch_of(self.value.shape, self.variable.point_shape)

    def finite(self) -> Given:
        """The same in the element type of the variable; FatalError unless it is finite."""
        return self._replace(value=typed(self.value, self.label, self.variable.dtype))

    def filled(self, batch: Shape, *, everywhere: bool = False) -> Array:
        """A new array of this value in a common batch; one value can stay one."""
        own = batch if self.batch or everywhere else ()
        array: Array = np.empty(own + self.variable.point_shape, self.variable.dtype)
        write(array, self.value, self.label)
        return array


def initial_values(
    model: Model, roles: Roles, values: Mapping[str, Any], clock: Table
) -> dict[str, Given]:
    """Read initial values by name: `x` at the first time, `x~1` one step before."""
    check_mapping("initial", values)
    older = {name: s.name for s in roles.series for name in s.ages[1:-1]}
    known = [*model.outputs.names, *older]
    given = {}
    for name, value in values.items():
        if name in roles.forces and name != roles.time and name not in known:
            point = "".join(f", {n}" for n in model.inputs[name].point_shape)
            raise Label("initial value", name).refuse(
                "is prescribed, or found from what is: its value at the first time is the one in "
                f"`forces`. To begin with another, give an array ({clock.steps}, *batch{point}) in "
                "`forces`: its first row has all components, those that a control finds among them",
                lib.NEML2_ERROR_ARGUMENT,
            )
        if name not in known:
            raise unknown_name("initial value", name, known)
        base = older.get(name, name)
        variables = model.outputs if base in model.outputs.index_of else model.inputs
        variable = variables[variables.index_of[base]]
        given[name] = _given(Label("initial value", name), variable, value).finite()
    return given


def parameter_values(known: Variables, values: Mapping[str, Any]) -> dict[str, Given]:
    """Read values of known parameters, by the names as they were given."""
    check_mapping("parameters", values)
    given = {}
    for name, value in values.items():
        variable = known[known.resolve(name)]
        given[name] = _given(Label("parameter", variable.name), variable, value)
    return given


def common_batch(
    model: Model, given: Iterable[Force | Given], parameters: Mapping[str, Given]
) -> Shape:
    """Broadcast the batches of all arrays and of the stored parameters.

    FatalError names the first that does not.
    """
    batches = {value.label: value.batch for value in (*given, *parameters.values())}
    stored = {}
    for name, value in model.named_parameters().items():
        label, shape = Label("parameter", name), model.parameters[name].point_shape
        if label not in batches:
            stored[label] = label.batch_of(value.shape, shape)
    return labels.with_stored(labels.common_batch(batches.items()), stored.items())


def _given(label: Label, variable: Variable, value: Any) -> Given:
    array = _at_sites(as_array(value, label), variable)
    label.batch_of(array.shape, variable.point_shape)
    return Given(label, variable, array, kind_of(value))


def _at_sites(array: Array, variable: Variable) -> Array:
    """A value without sites, or with axes of size 1 in their place, at all sites."""
    sites, base = variable.sub_batch_shape, variable.base_shape
    if not sites:
        return array
    if array.shape == base:
        return np.broadcast_to(array, sites + base)
    split = array.ndim - len(sites + base)
    own = array.shape[split : split + len(sites)] if split >= 0 else ()
    if own and all(size in (1, wanted) for size, wanted in zip(own, sites, strict=True)):
        last = array.shape[split + len(sites) :]
        return np.broadcast_to(array, (*array.shape[:split], *sites, *last))
    return array
