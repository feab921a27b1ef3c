"""Whole steps, many at once: blocks of points go through all of them in the library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import check, last_message
from neml2_capi._ffi.handle import Handle
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.logs import drain, listening
from neml2_capi.driver.forces import Force, Table, write, write_ends
from neml2_capi.driver.increment import Increment
from neml2_capi.driver.record import Record
from neml2_capi.driver.series import Roles
from neml2_capi.model.binding import Place
from neml2_capi.model.places import Places

if TYPE_CHECKING:
    from neml2_capi.model import Model

#: The steps that are tried first, and by how many times more the next ones are.
_FIRST, _GROWTH = 8, 16
#: The most numbers of a force that are laid out for steps.
_MOST_NUMBERS = 1 << 23
#: The most steps that are left to increments, after one that a block could not make.
_LONGEST_PAUSE = 64

_STEP_STRIDES = {
    "inputs": lib.neml2_call_step_stride_set,
    "outputs": lib.neml2_call_step_stride_set,
    "derivatives": lib.neml2_call_derivative_step_stride_set,
    "report": lib.neml2_call_report_step_stride_set,
}


class Blocks(Handle):
    """A call of the library over rows: forces, results and history of many steps.

    Results are written where they are recorded, and history is read there. Before and after the
    steps it is where the increments have it.
    """

    _instead = "drive again"

    def __init__(
        self,
        model: Model,
        roles: Roles,
        forces: Mapping[str, Force],
        increment: Increment,
        record: Record,
    ) -> None:
        super().__init__(model._engine.new_call())
        self._roles, self._forces = roles, forces
        self._call, self._record = increment.call, record
        self._places = Places(model._signature, self._pointer[0])
        self._made = ffi.new("int64_t *")
        self._window, self._pause, self._left = _FIRST, 0, 0
        self._most = self._most_steps(model)
        for name, value in self._call.parameters.items():
            self._bind(self._places.at("parameters", name), np.asarray(value))

    def run(self, step: int, steps: int) -> tuple[int, bool]:
        """Make whole steps, from `step` on, of `steps` that there are.

        Returns how many were made, and whether all that were tried: else the next one is to be made
        by increments, which tell what is wrong there.
        """
        if self._left:
            self._left -= 1
            return 0, False
        count = min(self._window, self._most, steps - step)
        self._record.put_forces(step, count)
        arrays = list(self._arrays(step, count))  # which live until they are written
        for place, array, has_steps in arrays:
            self._bind(place, array, has_steps=has_steps)
        owner = self._open()
        status: int = lib.neml2_call_run_steps(self._made, owner[0], self._call.points, count)
        if status < 0:
            check(status)
        if status or listening:  # of the step that failed, the increments tell again
            rows = f" Step 0 of this call is row {step} of the results." if count > 1 else ""
            drain(but=last_message() if status else None, bounds=rows)
        made = int(self._made[0])
        self._record.made(step, made, count)
        if made:
            self._carry(step + made - 1, made)
        self._window = count * _GROWTH if made == count else 1
        self._pause = 0 if made else min(2 * self._pause + 1, _LONGEST_PAUSE)
        self._left = self._pause
        return made, made == count

    def _most_steps(self, model: Model) -> int:
        outputs = self._call.outputs
        for series in self._roles.series:
            if series.depth > 1 and series.name in outputs and series.name not in self._record.rows:
                return 1  # there is room for its last value alone
        sizes = [math.prod(variable.point_shape) for variable in model.inputs]
        fitting = _MOST_NUMBERS // max(1, self._call.points * max(sizes, default=1))
        return max(1, min([fitting, *(force.most_steps for force in self._forces.values())]))

    def _arrays(self, step: int, count: int) -> Iterator[tuple[Place, Array, bool]]:
        """The arrays of so many steps, and whether they have a row for each."""
        call, record, at = self._call, self._record, self._places.at
        steps = slice(step, step + count)

        def recorded(key: str, place: Place, value: Any) -> tuple[Place, Array, bool]:
            if key in record.rows:
                return place, record.rows[key][steps], True
            return place, np.asarray(value), False

        for name, value in call.inputs.items():
            if name in record.forces:
                yield recorded(name, at("inputs", name), value)
            elif name in self._forces and self._varies(name):
                yield at("inputs", name), self._ends(name, step, count), True
            else:
                yield at("inputs", name), np.asarray(value), False
        for name, value in call.outputs.items():
            yield recorded(name, at("outputs", name), value)
        for output, blocks in record.derivatives.items():
            for name in blocks:
                yield recorded(f"{output}:{name}", at("derivatives", output, name), None)
        for name in {*record.reported, "status"}:
            yield recorded(f"report.{name}", at("report", name), call.report[name])

    def _varies(self, name: str) -> bool:
        """Whether the array that increments read is not the value of a force in all steps."""
        remembered = any(series.name == name for series in self._roles.series)
        return not self._forces[name].constant or remembered or name in self._call.outputs

    def _ends(self, name: str, step: int, count: int) -> Array:
        """The values of a force at the ends of steps, as the increments have one."""
        force, like = self._forces[name], np.asarray(self._call.inputs[name])
        if isinstance(force, Table) and not force.constant:
            rows = force.ends(step, count)
            fits = rows.dtype == like.dtype and rows.shape[1:] == like.shape
            if fits and rows.flags.c_contiguous:
                return rows  # where they were given
        rows = np.empty((count, *like.shape), like.dtype)
        write_ends(rows, force, step)
        return rows

    def _bind(self, place: Place, array: Array, *, has_steps: bool = False) -> None:
        first = array[:1].reshape(array.shape[1:]) if has_steps else array
        place.attach(self._pointer[0], place.bound(first, first, self._call.batch))
        if has_steps and len(array) > 1:
            stride = array.strides[0] // array.itemsize
            check(_STEP_STRIDES[place.key[0]](self._pointer[0], *place.leading, stride))

    def _carry(self, last: int, made: int) -> None:
        """Put history where increments read it, after `made` steps up to the last one."""
        inputs = self._call.inputs
        for series in self._roles.series:
            for age in range(series.depth, 0, -1):
                older = np.asarray(inputs[series.ages[age]])
                if age <= made:
                    self._put(series.name, last + 1 - age, older)
                else:
                    np.copyto(older, np.asarray(inputs[series.ages[age - made]]))
        for name in self._roles.guesses:
            self._put(name, last, np.asarray(inputs[name]))

    def _put(self, name: str, step: int, target: Array) -> None:
        """The value of a variable at the end of a step that was made."""
        if name in self._record.rows:
            np.copyto(target, self._record.rows[name][step])
        elif name in self._forces:
            write(target, self._forces[name].at(step, 1.0), self._forces[name].label)
        else:
            np.copyto(target, np.asarray(self._call.outputs[name]))
