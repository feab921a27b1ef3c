"""Description of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from neml2_capi._ffi.bounds import Bound
from neml2_capi._ffi.variables import Derivative, History, Variables
from neml2_capi._ffi.views import device_text
from neml2_capi.model.opened import Opened
from neml2_capi.model.scheduler import Scheduler
from neml2_capi.model.signature import Signature
from neml2_capi.model.source import Source


class Described:
    """The variables of a model, and what it runs on."""

    _engine: Opened
    _source: Source

    @property
    def _signature(self) -> Signature:
        return self._engine.signature

    @property
    def _dtype(self) -> str:
        """The name of the element type, whatever `dtype` is in a subclass."""
        return self._signature.dtype

    @property
    def runtime(self) -> str:
        """What the compiled graphs run on: "builtin", or "libtorch" if one of them does.

        "tensors" if all of the model does. Of a scheduler, the first device's.
        """
        return self._engine.runtime

    @property
    def scheduler(self) -> Scheduler | None:
        """A copy of the scheduler that the model was loaded with; None without one."""
        return None if self._source.devices is None else Scheduler(self._source.devices)

    @property
    def points_evaluated(self) -> tuple[int, ...]:
        """How many points each device of the scheduler has evaluated since the model was loaded.

        It shows what a batch size or a priority is worth. Without a scheduler it is empty.
        """
        devices = range(len(self._source.devices or ()))
        return tuple(self._engine.points_evaluated(device) for device in devices)

    @property
    def inputs(self) -> Variables:
        """The inputs, a sequence of Variable. `x~1` is the value of `x` at the previous step."""
        return self._signature.inputs

    @property
    def outputs(self) -> Variables:
        """The outputs, a sequence of Variable."""
        return self._signature.outputs

    @property
    def parameters(self) -> Variables:
        """The parameters that were promoted at compile time, a sequence of Variable."""
        return self._signature.parameters

    @property
    def unknowns(self) -> Variables:
        """What the implicit segments solve for, a sequence of Variable."""
        return self._signature.unknowns

    @property
    def derivatives(self) -> tuple[Derivative, ...]:
        """The derivatives with respect to inputs that were compiled."""
        return self._signature.derivatives

    @property
    def parameter_derivatives(self) -> tuple[Derivative, ...]:
        """The derivatives with respect to promoted parameters that were compiled."""
        return self._signature.parameter_derivatives

    @property
    def histories(self) -> tuple[History, ...]:
        """The inputs `x~1`, `x~2`, and the outputs that they become at the next step."""
        return self._signature.histories

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds of inputs and parameters: where the law is valid; none if it does not say."""
        return self._signature.bounds

    def describe(self) -> dict[str, Any]:
        """Describe what the artifact holds, in one form for every schema.

        Returns
        -------
        dict
            Segments, packages and settings: what json.loads() makes of the library's description.
        """
        return self._engine.describe()

    @property
    def checksum(self) -> str:
        """The SHA-256 of what the artifact computes, by which files of states know it.

        FatalError if a file of the artifact is missing or damaged.
        """
        return self._engine.checksum()

    @property
    def device(self) -> Any:
        """Where the model runs: "cpu", also with a scheduler, "cuda:0" or "opencl:0"."""
        return self._engine.text_device or device_text(self._signature.device)

    @property
    def dtype(self) -> Any:
        """The element type of the floating-point variables, a numpy.dtype."""
        return np.dtype(self._signature.dtype)
