"""Signature of a model: what it takes and returns."""

from __future__ import annotations

from dataclasses import dataclass

from neml2_capi._ffi.bounds import Bound
from neml2_capi._ffi.variables import Derivative, History, Variables


@dataclass(frozen=True)
class Signature:
    """The variables and derivatives of a model, and where and in which numbers it computes."""

    inputs: Variables
    outputs: Variables
    parameters: Variables
    unknowns: Variables
    derivatives: tuple[Derivative, ...]
    parameter_derivatives: tuple[Derivative, ...]
    histories: tuple[History, ...]
    bounds: tuple[Bound, ...]
    #: The element type of floating-point values, "float64" for example.
    dtype: str
    #: Kind and number of the device, as in DLPack.
    device: tuple[int, int]

    @property
    def compiled(self) -> dict[str, tuple[Derivative, ...]]:
        """The derivatives with respect to "inputs" and "parameters"."""
        return {"inputs": self.derivatives, "parameters": self.parameter_derivatives}
