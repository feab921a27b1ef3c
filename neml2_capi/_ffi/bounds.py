"""Bounds of inputs and parameters: where a law is valid, and which values have a meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.inspection import counted, inspected
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.variables import Variables


@dataclass(frozen=True)
class Bound:
    """The bounds of an input or a parameter, component by component."""

    #: The name of the input or the parameter.
    variable: str
    #: Whether a value beyond has no meaning; else the law is not valid there.
    physical: bool
    #: The least values, of the shape of one point; -inf if there is no bound.
    lower: NDArray[np.float64] = field(compare=False)
    #: The greatest values, of the same shape; inf if there is no bound.
    upper: NDArray[np.float64] = field(compare=False)

    def beyond(self, values: Any) -> Any:
        """Tell which values are beyond the bounds.

        Parameters
        ----------
        values : array
            Of shape (*B, *point shape), results["temperature"] of a driver for example.

        Returns
        -------
        array of bool
            Of shape (*B): whether a component is beyond. A value on a bound is not, nor is NaN;
            float32 is compared with the bound rounded to float32, as in the library.
        """
        values = np.asarray(values)
        kind = values.dtype if values.dtype.kind == "f" else np.float64
        with np.errstate(over="ignore"):  # beyond all numbers of the type there is no bound
            lower, upper = self.lower.astype(kind), self.upper.astype(kind)
        outside = (values < lower) | (values > upper)
        axes = tuple(range(values.ndim - self.lower.ndim, values.ndim))
        return outside.any(axis=axes)


def read_bounds(model: Any, inputs: Variables, parameters: Variables) -> tuple[Bound, ...]:
    """The bounds of a model handle."""
    bounds = []
    for index in counted(lib.neml2_model_bound_count, model):
        info = inspected("neml2_bound_info", lib.neml2_model_bound_inspect, model, index)
        variables = parameters if info.kind == lib.NEML2_PARAMETER else inputs
        variable = variables[info.variable]
        sides = []
        for side in (info.lower, info.upper):
            values = np.frombuffer(ffi.buffer(side, 8 * info.ncomponents), np.float64).copy()
            values = values.reshape(variable.point_shape)
            values.setflags(write=False)
            sides.append(values)
        bounds.append(Bound(variable.name, bool(info.physical), *sides))
    return tuple(bounds)
