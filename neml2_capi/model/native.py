"""The library as what evaluates a model."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import Any

from neml2_capi._ffi.errors import check, read_text
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.kinds import TORCH, Kind
from neml2_capi._ffi.library import c_string, ffi, lib
from neml2_capi._ffi.logs import drain
from neml2_capi._ffi.options import read_options
from neml2_capi._ffi.runtime import load, load_for, runtime_of
from neml2_capi._ffi.tensor import DTYPE_NAMES, wrap
from neml2_capi._ffi.variables import read_derivatives, read_histories, read_variables
from neml2_capi.model import tensors
from neml2_capi.model.evaluation import Evaluation, Operation, implicit_segments
from neml2_capi.model.options import Options
from neml2_capi.model.repeats import Repeats
from neml2_capi.model.scheduler import Scheduler
from neml2_capi.model.signature import Signature
from neml2_capi.model.source import Source

# Setting a parameter is rare, and a change of its batch is seen by all that is repeated at once.
_SETTING = threading.Lock()


class Native(Handle):
    """A neml2_model: what Model(path) has."""

    name = "native"
    _called = "Model"

    def __init__(self, source: Source, kind: Kind) -> None:
        """Load it. `kind` is that of the results, NUMPY for that of the arguments."""
        super().__init__(_loaded(source))
        owner = self._open()
        self.signature = _read_signature(owner[0])
        on_cpu = self.signature.device[0] == lib.NEML2_DEVICE_CPU
        self.kind = kind if on_cpu else TORCH
        # A call is over arrays of the host.
        self._repeatable = source.devices is not None or self.runtime != "tensors"
        self._repeats = Repeats()
        self._known_options = read_options(owner[0])
        if "NEML2_CAPI_THREADS" not in os.environ:
            check(lib.neml2_model_option_set_number(owner[0], b"threads", 0.0))
        drain()

    def close(self) -> None:
        """Free the model. Arrays that were handed out stay valid. Closing twice is allowed."""
        super().close()
        self._repeats = Repeats()

    @property
    def runtime(self) -> str:
        """The name of what the compiled graphs call."""
        return runtime_of(lib.neml2_model_runtime, self._open())

    @property
    def options(self) -> Options:
        """The solver options as a live mapping."""
        # Made on demand: a mapping kept here would be a reference cycle.
        return Options(self, self._known_options)

    @cached_property
    def implicit_segments(self) -> list[tuple[str, set[str]]]:
        """The implicit segments; none where nobody has asked before the model was closed."""
        return [] if self.closed else implicit_segments(self.describe())

    def describe(self) -> dict[str, Any]:
        """Return what the artifact holds."""
        handle = self._open()
        document: dict[str, Any] = json.loads(read_text(lib.neml2_model_describe, handle[0]))
        return document

    def points_evaluated(self, device: int) -> int:
        """Return how many points a device of the scheduler has evaluated."""
        owner, count = self._open(), ffi.new("int64_t *")
        check(lib.neml2_model_points_evaluated(count, owner[0], device))
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
        source = wrap(tensor, value, parameters.labels[index], parameter.dtype)
        with _SETTING:
            # Where the batch stays, what is remembered of evaluations stays true.
            shape = () if isinstance(value, float) else getattr(value, "shape", None)
            stays = shape == self.parameter(index).shape
            with nullcontext() if stays else self._repeats.forgotten():
                check(lib.neml2_model_parameter_set(owner[0], parameter.name.encode(), tensor[0]))
        del source

    def results(
        self,
        operation: Operation,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any] | None,
        directions: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return what the function of Model returns; ConvergenceError where points failed."""
        if overrides is None:
            again = self._repeats.functions.get(operation.name)
            found = again(inputs, directions) if again else None
            if found is not None:
                return found
        evaluation = self.evaluate(operation, inputs, overrides, directions)
        return operation.returned(self.signature, evaluation)

    def evaluate(
        self,
        operation: Operation,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any] | None,
        directions: Mapping[str, Any] | None = None,
    ) -> Evaluation:
        """Evaluate over tensors, and remember how it went."""
        # Another thread may close the model meanwhile, and have it forget.
        repeats = self._repeats if overrides is None and self._repeatable else None
        pools = repeats.pools(operation) if repeats else None
        evaluation = tensors.evaluate(self, operation, inputs, overrides, directions)
        if repeats and pools is not None and evaluation.status <= lib.NEML2_NON_FINITE:
            repeats.learn(pools, self, operation, inputs, directions, evaluation)
        return evaluation

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
    owner = owned("model")
    if source.devices is None:
        *target, runtime = source[:-1]
        load(lib.neml2_model_load_with, runtime, owner, *map(c_string, target))
        return owner
    scheduler = Scheduler(source.devices)._open()
    names = [c_string(name) for name in (source.path, source.name, source.dtype)]
    load_for(
        [device.runtime for device in source.devices],
        lambda: lib.neml2_model_load_scheduled(owner, *names, scheduler[0]),
    )
    return owner


def _read_signature(model: Any) -> Signature:
    inputs = read_variables(model, lib.NEML2_INPUT)
    outputs = read_variables(model, lib.NEML2_OUTPUT)
    parameters = read_variables(model, lib.NEML2_PARAMETER)
    dtype, device = ffi.new("int32_t *"), ffi.new("int32_t[2]")
    check(lib.neml2_model_dtype(dtype, model))
    check(lib.neml2_model_device(device, device + 1, model))
    return Signature(
        inputs=inputs,
        outputs=outputs,
        parameters=parameters,
        unknowns=read_variables(model, lib.NEML2_UNKNOWN),
        derivatives=read_derivatives(model, outputs, inputs),
        parameter_derivatives=read_derivatives(model, outputs, parameters),
        histories=read_histories(model, inputs, outputs),
        dtype=DTYPE_NAMES[dtype[0]],
        device=(device[0], device[1]),
    )
