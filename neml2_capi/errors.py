"""Errors by what the caller can do: cut the step and retry, or mend the request."""

from neml2_capi._ffi.errors import (
    AggregateConvergenceError,
    AggregateError,
    AggregateFatalError,
    ConvergenceError,
    Error,
    FatalError,
    UnknownNameError,
)

__all__ = [
    "AggregateConvergenceError",
    "AggregateError",
    "AggregateFatalError",
    "ConvergenceError",
    "Error",
    "FatalError",
    "UnknownNameError",
]
