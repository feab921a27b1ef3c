"""A model bound to the arrays of one increment of time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import ConvergenceError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.driver.control import Control
from neml2_capi.driver.forces import Force, Shape, Table, write
from neml2_capi.driver.given import Given
from neml2_capi.driver.series import Roles, Series

if TYPE_CHECKING:
    from neml2_capi._ffi.variables import Variable
    from neml2_capi.model import Model
    from neml2_capi.model.call import Call


class Increment:
    """The forces at the end of an increment, the history at its beginning, and what comes of them.

    All arrays are made once. When an increment is accepted, they change places.
    """

    call: Call
    #: The common batch of all that is given.
    batch: Shape

    def __init__(
        self,
        model: Model,
        roles: Roles,
        forces: Mapping[str, Force],
        initial: Mapping[str, Given],
        parameters: Mapping[str, Given],
        batch: Shape,
        *,
        wanted: set[str],
        derivatives: Any,
        control: Control | None = None,
        spreads: bool = False,
    ) -> None:
        """`wanted` are the outputs that are asked for, beside those that become history.

        Forces have the whole batch if it `spreads`: nothing else may tell it to the model.
        """
        self.batch, self._spreads = batch, spreads
        self._control = control
        if control:
            wanted = {*wanted, control.output.name}
        self._forces, self._initial = forces, initial
        remembered = {series.name for series in roles.series}
        kept = {*wanted, *remembered, *roles.guesses}
        outputs = {
            v.name: self._state(v, 0.0 if v.name in remembered else np.nan)
            for v in model.outputs
            if v.name in kept
        }
        #: Outputs of which no value at the first time is known.
        self.unknown = outputs.keys() - remembered - initial.keys()
        #: Forces of which one value serves all points.
        self.shared: set[str] = set()
        inputs = {v.name: self._force(v) for v in model.inputs if v.name in forces}
        for series in roles.series:
            inputs |= self._history(series, (inputs | outputs)[series.name])
        for name in roles.guesses:
            variable = model.inputs[model.inputs.index_of[name]]
            same = f"{name}~1"
            inputs[name] = inputs[same] if name in remembered else self._state(variable, 0.0)
        self.call = model.bind(
            inputs,
            {name: outputs.get(name) for name in model.outputs.names},
            parameters={name: value.filled(batch) for name, value in parameters.items()},
            derivatives=_both(derivatives, control),
            report=True,
        )
        #: The derivatives that are asked for, by output.
        self.recorded = {
            output: [name for name in blocks if _asked(derivatives, output, name)]
            for output, blocks in self.call.derivatives.items()
        }
        #: The inputs that a step reads of those before it.
        self.carried = [*(n for s in roles.series for n in s.ages[1:]), *roles.guesses]
        self._exchanges = [pair for series in roles.series for pair in series.exchanges]
        self._exchanges += [(name, name) for name in roles.guesses if name not in remembered]
        self._followers = [name for name in roles.guesses if name in remembered]
        self._changing = [n for n, f in forces.items() if not f.constant or n in remembered]

    def load(self, step: int, fraction: float) -> None:
        """Put the forces as they are after a fraction of a step."""
        for name in self._changing:
            force = self._forces[name]
            write(self.call.inputs[name], force.at(step, fraction), force.label)

    def evaluate(self, step: int, fraction: float) -> Array:
        """Go to the end of the increment; the iterations of the model, (*B,).

        ConvergenceError has the iterations of its last try.
        """
        self.load(step, fraction)
        if self._control:
            return self._control.solve(self.call, step, fraction)
        self.call()
        status = np.asarray(self.call.report["status"])
        if status.max(initial=0) == lib.NEML2_NON_FINITE and (name := self.not_finite()):
            raise ConvergenceError(
                f"the input {name!r} is not finite",
                lib.NEML2_NON_FINITE,
                name,
                report={name: np.array(value) for name, value in self.call.report.items()},
                converged_mask=status == lib.NEML2_OK,
                outputs={name: np.array(value) for name, value in self.call.outputs.items()},
            )
        return np.asarray(self.call.report["iterations"])

    def not_finite(self) -> str:
        """Return the first input that is not finite at some point; "" if all are."""
        given = self.call.inputs.items()
        return next((name for name, each in given if not np.isfinite(np.asarray(each)).all()), "")

    @property
    def found(self) -> tuple[Array, ...]:
        """Values that the control begins its next search with; empty without a control."""
        return self._control.last if self._control else ()

    @found.setter
    def found(self, value: tuple[Array, ...]) -> None:
        if self._control:
            self._control.last = value

    def rest(self, clock: Table, fraction: float) -> None:
        """Evaluate at the first time, this fraction of the first step after it.

        Points that fail have NaN.
        """
        first, second = clock.rows[0], clock.rows[min(1, clock.steps - 1)]
        for name, force in self._forces.items():
            if force is clock:
                time = first + fraction * (second - first)
                write(self.call.inputs[name], np.asarray(time), clock.label)
        with suppress(ConvergenceError):
            self.call()

    def advance(self) -> None:
        """Make new values history: the arrays change places, and no value moves."""
        for older, newer in self._exchanges:
            self.call.swap(older, newer)
        if self._followers:
            self.call.bind({name: self.call.inputs[f"{name}~1"] for name in self._followers})

    def _state(self, variable: Variable, otherwise: float) -> Array:
        """The value of an output at the first time."""
        given = self._initial.get(variable.name)
        if given is not None:
            return given.filled(self.batch, everywhere=True)
        return np.full(self.batch + variable.point_shape, otherwise, variable.dtype)

    def _force(self, variable: Variable) -> Array:
        """The value of a force at the first time; one for all points if that can be."""
        force = self._forces[variable.name]
        # History changes places with it, and may have an initial value for each point.
        is_found = self._control is not None and self._control.input.name == variable.name
        varies = (
            is_found
            or self._spreads
            or force.batch
            or any(
                name.startswith(f"{variable.name}~") and value.batch
                for name, value in self._initial.items()
            )
        )
        if not varies:
            self.shared.add(variable.name)
        array = np.empty((self.batch if varies else ()) + variable.point_shape, variable.dtype)
        write(array, force.at(0, 1.0), force.label)
        return array

    def _history(self, series: Series, first: Array) -> dict[str, Array]:
        """The arrays of `x~1`, `x~2` and so on in the first step, of which `x~1` is `first`."""
        arrays = {}
        for newer, older in pairwise(series.ages):
            array = arrays[older] = first.copy()
            if newer != series.name and newer in self._initial:
                given = self._initial[newer]
                write(array, given.value, given.label)
            first = array
        return arrays


def _both(derivatives: Any, control: Control | None) -> Any:
    """The derivatives that are asked for, and those that the control takes."""
    if derivatives is True or control is None or not control.derivatives:
        return derivatives
    both = {output: dict(blocks) for output, blocks in (derivatives or {}).items()}
    for output, blocks in control.derivatives.items():
        both[output] = {**blocks, **both.get(output, {})}
    return both


def _asked(derivatives: Any, output: str, name: str) -> bool:
    return derivatives is True or bool((derivatives or {}).get(output, {}).get(name))
