"""The library as what evaluates a model."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi import examples
from neml2_capi._ffi import locks
from neml2_capi._ffi.errors import FatalError, check, read_text
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.inspection import RUNTIME_NAMES, inspected
from neml2_capi._ffi.kinds import TORCH, Kind
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.logs import drain, listening
from neml2_capi._ffi.options import read_options
from neml2_capi._ffi.runtime import load
from neml2_capi._ffi.source import NativeSource
from neml2_capi._ffi.tensor import DTYPE_NAMES, lossless, wrap
from neml2_capi._ffi.variables import read_derivatives, read_histories, read_variables
from neml2_capi.model import tensors
from neml2_capi.model.evaluation import Evaluation, Given, Operation, implicit_segments
from neml2_capi.model.options import NativeOptions
from neml2_capi.model.repeats import is_left_to_tensors, memories, plain
from neml2_capi.model.scheduler import Scheduler
from neml2_capi.model.signature import Signature
from neml2_capi.model.source import Source

_run = lib.neml2_call_run

# Setting a parameter is rare, and a change of its batch is seen by all that is repeated at once.
_SETTING = locks.new()


class Native(Handle):
    """A neml2_model: what Model(path) has."""

    name = "native"
    _called = "Model"

    def __init__(self, source: Source, kind: Kind) -> None:
        """Load it. `kind` is the kind of the results, NUMPY for the arguments' kind."""
        super().__init__(_loaded(source))
        owner = self._open()
        self.signature = _read_signature(owner[0])
        on_cpu = self.signature.device[0] == lib.NEML2_DEVICE_CPU
        self.kind = kind if on_cpu else TORCH
        self._memories = memories()
        self._known_options = read_options(owner[0])
        # A call is over arrays of the host.
        self._on_host = source.devices is not None or self.runtime != "tensors"
        self._follow_options()
        if "NEML2_CAPI_THREADS" not in os.environ:
            check(lib.neml2_model_option_set_number(owner[0], b"threads", 0.0))
        drain()

    def close(self) -> None:
        """Free the model. Arrays that were handed out stay valid. Closing twice is allowed."""
        super().close()
        self._memories = memories()

    @property
    def runtime(self) -> str:
        """The name of what the compiled graphs call."""
        owner = self._open()
        info = inspected("neml2_model_info", lib.neml2_model_inspect, owner[0])
        return RUNTIME_NAMES[info.runtime]

    @property
    def options(self) -> NativeOptions:
        """The solver options as a live mapping."""
        # Made on demand: a mapping kept here would be a reference cycle.
        return NativeOptions(self, self._known_options, self._follow_options)

    def _follow_options(self) -> None:
        # What fails in a kept call is evaluated again, over tensors: a second capsule.
        self._repeatable = self._on_host and not self.options["capsule"]

    @cached_property
    def implicit_segments(self) -> list[tuple[str, set[str]]]:
        """The implicit segments; none if they were not read before the model was closed."""
        return [] if self.closed else implicit_segments(self.describe())

    def describe(self) -> dict[str, Any]:
        """Return what the artifact holds."""
        handle = self._open()
        document: dict[str, Any] = json.loads(read_text(lib.neml2_model_describe, handle[0]))
        return document

    def points_evaluated(self, device: int) -> int:
        """Return how many points a device of the scheduler has evaluated."""
        owner, count = self._open(), ffi.new("int64_t *")
        check(lib.neml2_model_points(count, owner[0], device))
        return int(count[0])

    def parameter(self, index: int) -> Any:
        """Return an array over the memory of a stored parameter."""
        handle, owner = self._open(), owned("tensor")
        name = self.signature.parameters.names[index].encode()
        check(lib.neml2_model_parameter_get(owner, handle[0], name))
        return self.kind.hand_out(owner)

    def set_parameter(self, index: int, value: Any) -> None:
        """Store a copy of `value`."""
        owner, parameters = self._open(), self.signature.parameters
        parameter, tensor = parameters[index], owned("tensor")
        # The array stays alive in `source` while the library copies it.
        source = wrap(
            tensor, lossless(value, parameter.dtype), parameters.labels[index], parameter.dtype
        )
        with _SETTING:
            # Memories stay valid if the batch stays.
            shape = () if isinstance(value, float) else getattr(value, "shape", None)
            stays = shape == self.parameter(index).shape
            if not stays:
                for memory in self._memories.values():
                    memory.valid = False
            try:
                check(lib.neml2_model_parameter_set(owner[0], parameter.name.encode(), tensor[0]))
            finally:
                if not stays:
                    self._memories = memories()
        del source

    def results(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Any:
        """Return what the function of Model returns; ConvergenceError if points failed."""
        memory, array = self._memories[operation.name], np.ndarray
        slots = memory.slots
        left = -1 if overrides is not None or listening or not self._repeatable else len(slots)
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
        evaluation = self.evaluate(operation, inputs, overrides, directions)
        return operation.returned(self.signature, evaluation)

    def evaluate(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Evaluation:
        """Evaluate over tensors."""
        return tensors.evaluate(self, operation, inputs, overrides, directions)

    def new_call(self) -> Any:
        """Return the owner of a new neml2_call."""
        owner, held = owned("call"), self._open()  # held: another thread may close it meanwhile
        check(lib.neml2_call_create(owner, held[0]))
        return owner

    def begin_solve(self, inputs: Any, overrides: Any) -> Any:
        """Return the owner of a neml2_solve that has begun with these tensors."""
        owner, held = owned("solve"), self._open()
        check(lib.neml2_solve_begin(owner, held[0], inputs, overrides))
        return owner


def _loaded(source: Source) -> Any:
    """The owner of a new neml2_model."""
    try:
        return _opened(source)
    except FatalError as error:
        if error.status == lib.NEML2_ERROR_FILE and not Path(source.path).exists():
            raise FatalError(
                f"{error} Those that come with the package are neml2_capi.examples.path(NAME), for "
                f"{', '.join(examples.NAMES)}.",
                error.status,
                error.subject,
            ) from None
        raise


def _opened(source: Source) -> Any:
    owner = owned("model")
    if source.devices is None:
        given = NativeSource(
            source.path,
            name=source.name,
            dtype=source.dtype,
            device=source.device,
            runtime=source.runtime,
        )
        load([source.runtime], lambda: lib.neml2_model_open(owner, given.pointer))
        return owner
    scheduler = Scheduler(source.devices)._open()
    given = NativeSource(source.path, name=source.name, dtype=source.dtype, scheduler=scheduler[0])
    runtimes = [device.runtime for device in source.devices]
    load(runtimes, lambda: lib.neml2_model_open(owner, given.pointer))
    return owner


def _read_signature(model: Any) -> Signature:
    inputs = read_variables(model, lib.NEML2_INPUT)
    outputs = read_variables(model, lib.NEML2_OUTPUT)
    parameters = read_variables(model, lib.NEML2_PARAMETER)
    unknowns = read_variables(model, lib.NEML2_UNKNOWN)
    inputs.note_guesses(unknowns)
    info = inspected("neml2_model_info", lib.neml2_model_inspect, model)
    return Signature(
        inputs=inputs,
        outputs=outputs,
        parameters=parameters,
        unknowns=unknowns,
        derivatives=read_derivatives(model, outputs, inputs),
        parameter_derivatives=read_derivatives(model, outputs, parameters),
        histories=read_histories(model, inputs, outputs),
        dtype=DTYPE_NAMES[info.dtype],
        device=(info.device, info.device_index),
    )
