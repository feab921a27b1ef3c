"""A model of the library, opened: what it has, and how it is set, whatever evaluates it."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

from neml2_capi import examples
from neml2_capi._ffi.bounds import read_bounds
from neml2_capi._ffi.dtypes import DTYPE_NAMES, lossless
from neml2_capi._ffi.errors import FatalError, check, read_text
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.inspection import RUNTIME_NAMES, inspected
from neml2_capi._ffi.kinds import TORCH, Kind
from neml2_capi._ffi.library import ffi, lib, text
from neml2_capi._ffi.logs import drain, listening
from neml2_capi._ffi.options import Options, read_options
from neml2_capi._ffi.runtime import load
from neml2_capi._ffi.source import native_source
from neml2_capi._ffi.strings import c_string
from neml2_capi._ffi.tensor import wrap
from neml2_capi._ffi.variables import read_derivatives, read_histories, read_variables
from neml2_capi.model.evaluation import Evaluation, Given, Operation, Segments, implicit_segments
from neml2_capi.model.scheduler import Scheduler
from neml2_capi.model.signature import Signature
from neml2_capi.model.source import Source


class Opened(Handle):
    """A neml2_model. A subclass evaluates it."""

    #: The argument `engine` of Model() that leads here.
    name: str
    _called = "Model"

    def __init__(self, source: Source, kind: Kind) -> None:
        """Load it. `kind` is the kind of the results, NUMPY for the arguments' kind."""
        super().__init__(_loaded(source))
        owner = self._open()
        self.signature = _read_signature(owner[0])
        on_cpu = self.signature.device[0] == lib.NEML2_DEVICE_CPU
        self.kind = kind if on_cpu else TORCH
        #: The device that runs the text of the kernels, "cuda:0", which takes arrays of the host,
        #: and its own; "" if there is none.
        self.text_device = _with_index(source.device or "") if on_cpu else ""
        self._options = read_options(owner[0])
        if "NEML2_CAPI_THREADS" not in os.environ:
            check(lib.neml2_model_option_set_number(owner[0], b"threads", 0.0))
        if self.signature.bounds:
            listening.add("bounds")
        drain()

    @abstractmethod
    def evaluate(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Evaluation:
        """Evaluate, and report of each point; FatalError if that is refused."""

    def results(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Any:
        """Return what the function of Model returns; ConvergenceError if points failed."""
        evaluation = self.evaluate(operation, inputs, overrides, directions)
        return operation.returned(self.signature, evaluation)

    # --------------------------------------------------------------------------------------------
    # Content
    # --------------------------------------------------------------------------------------------

    @property
    def runtime(self) -> str:
        """The name of what the compiled graphs call."""
        owner = self._open()
        info = inspected("neml2_model_info", lib.neml2_model_inspect, owner[0])
        return RUNTIME_NAMES[info.runtime]

    @cached_property
    def implicit_segments(self) -> Segments:
        """The implicit segments; none if they were not read before the model was closed."""
        return [] if self.closed else implicit_segments(self.describe())

    def describe(self) -> dict[str, Any]:
        """Return what the artifact holds."""
        handle = self._open()
        document: dict[str, Any] = json.loads(read_text(lib.neml2_model_describe, handle[0]))
        return document

    def checksum(self) -> str:
        """Return the SHA-256 of what the artifact computes."""
        return read_text(lib.neml2_model_checksum, self._open()[0])

    def points_evaluated(self, device: int) -> int:
        """Return how many points a device of the scheduler has evaluated."""
        owner, count = self._open(), ffi.new("int64_t *")
        check(lib.neml2_model_points(count, owner[0], device))
        return int(count[0])

    # --------------------------------------------------------------------------------------------
    # Options and parameters
    # --------------------------------------------------------------------------------------------

    @property
    def options(self) -> Options:
        """The solver options as a live mapping."""
        # Made on demand: a mapping kept here would be a reference cycle.
        return Options(self, self._options)

    def option(self, name: str) -> float | str:
        """Return the value of an option that there is."""
        handle = self._open()
        if self._options[name].choices:
            word = ffi.new("const char **")
            check(lib.neml2_model_option_get_text(word, handle[0], c_string(name)))
            return text(word[0])
        number = ffi.new("double *")
        check(lib.neml2_model_option_get_number(number, handle[0], c_string(name)))
        return float(number[0])

    def set_option(self, name: str, value: float | str) -> None:
        """Keep a text or a number; FatalError if it is out of bounds."""
        handle = self._open()
        if isinstance(value, str):
            check(lib.neml2_model_option_set_text(handle[0], c_string(name), c_string(value)))
        else:
            check(lib.neml2_model_option_set_number(handle[0], c_string(name), value))

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
        check(lib.neml2_model_parameter_set(owner[0], parameter.name.encode(), tensor[0]))
        del source

    # --------------------------------------------------------------------------------------------
    # Evaluations in the library
    # --------------------------------------------------------------------------------------------

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


def _with_index(device: str) -> str:
    kind, _, index = device.partition(":")
    return f"{kind}:{index or 0}" if kind in ("opencl", "cuda") else ""


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
    owner, devices = owned("model"), source.devices
    scheduler = Scheduler(devices)._open() if devices is not None else [ffi.NULL]
    given = native_source(
        source.path,
        name=source.name,
        dtype=source.dtype,
        device=source.device,
        runtime=source.runtime,
        scheduler=scheduler[0],
        **source.view._asdict(),
    )
    runtimes = [source.runtime] if devices is None else [each.runtime for each in devices]
    load(runtimes, lambda: lib.neml2_model_open(owner, given))
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
        bounds=read_bounds(model, inputs, parameters),
        dtype=DTYPE_NAMES[info.dtype],
        device=(info.device, info.device_index),
    )
