"""The library as what evaluates a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from neml2_capi._ffi import locks
from neml2_capi._ffi.kinds import Kind
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import UNASKED, drain, listening
from neml2_capi.model import tensors
from neml2_capi.model.evaluation import Evaluation, Given, Operation
from neml2_capi.model.opened import Opened
from neml2_capi.model.repeats import is_left_to_tensors, memories, plain
from neml2_capi.model.source import Source

_run = lib.neml2_call_run

# Setting a parameter is rare, and a change of its batch is seen by all that is repeated at once.
_SETTING = locks.new()


class Native(Opened):
    """What Model(path) has: a call that is kept evaluates, or the library over tensors."""

    name = "native"

    def __init__(self, source: Source, kind: Kind) -> None:
        """Load it. `kind` is the kind of the results, NUMPY for the arguments' kind."""
        super().__init__(source, kind)
        self._memories = memories()
        # A call is over arrays of the host.
        self._on_host = source.devices is not None or self.runtime != "tensors"
        self._follow_options()

    def close(self) -> None:
        """Free the model. Arrays that were handed out stay valid. Closing twice is allowed."""
        super().close()
        self._memories = memories()

    def set_option(self, name: str, value: float | str) -> None:
        """Keep a text or a number; FatalError if it is out of bounds."""
        super().set_option(name, value)
        self._follow_options()

    def _follow_options(self) -> None:
        # What fails in a kept call is evaluated again, over tensors: a second capsule.
        self._repeatable = self._on_host and not self.option("capsule")

    def set_parameter(self, index: int, value: Any) -> None:
        """Store a copy of `value`."""
        with _SETTING:
            # Memories stay valid if the batch stays.
            shape = () if isinstance(value, float) else getattr(value, "shape", None)
            stays = shape == self.parameter(index).shape
            if not stays:
                for memory in self._memories.values():
                    memory.valid = False
            try:
                super().set_parameter(index, value)
            finally:
                if not stays:
                    self._memories = memories()

    def results(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Any:
        """Return what the function of Model returns; ConvergenceError if points failed."""
        memory, array = self._memories[operation.name], np.ndarray
        slots = memory.slots
        repeats = overrides is None and self._repeatable and listening <= UNASKED
        left = len(slots) if repeats else -1
        while left >= 0:
            try:
                slot = slots.pop() if left else memory.new(self, inputs, directions)
            except IndexError:  # other threads use them
                left = 0
                continue
            left -= 1
            if slot is None:
                break
            _, call, points, arity, directed, given, outputs, others = slot
            try:
                if len(inputs) != arity or (directed is not None and len(directions) != directed):
                    raise LookupError
                for group, name, kind, shape, dtype, buffer in given:
                    value = directions[name] if group else inputs[name]
                    if type(value) is not kind:
                        raise LookupError
                    if kind is not array:
                        value = plain(value)
                    if value.shape != shape or value.dtype is not dtype or not value.flags.aligned:
                        raise LookupError
                    buffer[...] = value
            except (LookupError, TypeError):
                slots.insert(0, slot)
                continue
            status = _run(call, points)
            if listening and not status:
                drain()
            if (status and is_left_to_tensors(status, operation)) or not memory.valid:
                slots.append(slot)
                break
            results: Any = {}
            for name, copy in outputs:
                results[name] = copy()
            if others is not None:
                named: dict[str, Any] = {}
                for row, name, copy in others:
                    if row is None:
                        named[name] = copy()
                    elif row in named:
                        named[row][name] = copy()
                    else:
                        named[row] = {name: copy()}
                results = (results, named) if outputs else named
            slots.append(slot)
            return results
        return super().results(operation, inputs, overrides, directions)

    def evaluate(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Evaluation:
        """Evaluate over tensors."""
        return tensors.evaluate(self, operation, inputs, overrides, directions)
