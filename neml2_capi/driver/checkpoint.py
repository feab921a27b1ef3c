"""A driven model in a file: what makes the rest of its steps the same, to the last bit."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.outside import require_writable
from neml2_capi.driver.arguments import check_whole, file_name
from neml2_capi.driver.forces import Force, Table
from neml2_capi.driver.given import Given
from neml2_capi.driver.increment import Increment
from neml2_capi.driver.pace import Pace
from neml2_capi.driver.record import Record
from neml2_capi.model.state_file import read_state, require_same, write_state

if TYPE_CHECKING:
    from neml2_capi.model import Model


class Checkpoint:
    """A file that holds the state after a step, and the records of all steps until then.

    Arrays of the state have the names of inputs, so that other programs continue from it, too; the
    driver's own have a "/" in their names.
    """

    def __init__(
        self,
        path: Any,
        every: Any,
        model: Model,
        increment: Increment,
        record: Record,
        clock: Table,
        pace: Pace,
        given: Iterable[Force | Given],
    ) -> None:
        self._path = file_name("checkpoint", path)
        require_writable(self._path, "the checkpoint")
        self._every = check_whole("checkpoint_steps", every, 1, "a number of steps")
        self._identity, self._model = model._identity(), model
        self._given = {f"given/{each.label}": each for each in given}
        self._increment, self._record, self._clock, self._pace = increment, record, clock, pace

    def until(self, step: int) -> int:
        """The step after the next that is kept, where `step` is the next to be made."""
        return min(self._clock.steps, step + self._every - (step - 1) % self._every)

    def keep(self, step: int) -> None:
        """Write the state at the end of a step."""
        arrays = {**self._state(), **self._fixed(step)}
        arrays |= {f"result/{n}": rows for n, rows in self._record.arrays(step + 1).items()}
        arrays |= {f"control/{n}": value for n, value in enumerate(self._increment.found)}
        times = self._clock.rows[step]
        told = {
            **self._identity,
            "npoints": str(self._increment.call.points),
            "step": str(step),
            "time": repr(float(times.max()) if times.size else 0.0),
            "pace": json.dumps(self._pace.state),
        }
        write_state(self._path, arrays, told)

    def restore(self) -> int:
        """Take the state of a file, and return the step that is next; 0 if there is no file."""
        if not os.path.exists(self._path):  # noqa: PTH110
            return 0
        arrays, told = read_state(self._path)
        require_same(self._path, told, self._identity)
        try:
            step, pace = int(told["step"]), tuple(json.loads(told["pace"]))
        except (KeyError, ValueError, TypeError) as error:
            raise self._refuse("holds a state, but is not a checkpoint of drive()") from error
        if not 0 <= step < self._clock.steps:
            raise self._refuse(f"is of step {step}, and this run has {self._clock.steps - 1}")
        wanted: Mapping[str, Array] = {
            **self._state(),
            **{f"result/{n}": rows for n, rows in self._record.arrays(step + 1).items()},
        }
        for name, value in wanted.items():
            found = arrays.get(name)
            if found is None or (found.shape, found.dtype) != (value.shape, value.dtype):
                raise self._refuse(
                    f"is of another run: its {name!r} is "
                    f"{'missing' if found is None else found.shape}; expected {value.shape}"
                )
        fixed = self._fixed(step)
        for name in dict.fromkeys([*fixed, *(n for n in arrays if n.startswith("given/"))]):
            self._same(name, arrays.get(name), fixed.get(name))
        for name, value in wanted.items():
            value[...] = arrays[name]
        controls = (f"control/{number}" for number in range(3))
        self._increment.found = tuple(arrays[name] for name in controls if name in arrays)
        self._pace.state = pace
        return step + 1

    def _state(self) -> dict[str, Array]:
        """Return the inputs that a step takes from the steps before it."""
        inputs = self._increment.call.inputs
        return {name: np.asarray(inputs[name]) for name in self._increment.carried}

    def _fixed(self, step: int) -> dict[str, Array]:
        """Return the data that must be the same when a run is continued, or their digests."""
        replaced = self._increment.call.parameters
        found = {"given/the times": self._clock.rows[: step + 1]}
        for name, value in self._model.named_parameters().items():
            found[f"given/parameter {name!r}"] = np.asarray(replaced.get(name, value))
        for name, each in self._given.items():
            found[name] = _digest(each.value if isinstance(each, Given) else _until(each, step))
        return found

    def _same(self, name: str, found: Array | None, expected: Array | None) -> None:
        if found is None or expected is None or not np.array_equal(found, expected):
            raise self._refuse(
                f"is of another run: {name.removeprefix('given/')} differs from what is given"
            )

    def _refuse(self, why: str) -> FatalError:
        return FatalError(
            f"the checkpoint {self._path} {why}. Name another file, or remove it to begin again",
            lib.NEML2_ERROR_ARGUMENT,
            "checkpoint",
        )


def _until(force: Force, step: int) -> Array:
    """Values until the end of a step; of a function the last, since it may be called once only."""
    return force.ends(0, step + 1) if force.most_steps > 1 else force.at(step, 1.0)


def _digest(values: Array) -> Array:
    """SHA-256 of an array's type, shape and bytes, (4,) of int64."""
    digest = hashlib.sha256(f"{values.dtype} {values.shape} ".encode())
    digest.update(np.ascontiguousarray(values).data)
    return np.frombuffer(digest.digest(), "<i8")
