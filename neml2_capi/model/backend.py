"""Backends that evaluate a model: the library, or the same orchestration in Python."""

from __future__ import annotations

from typing import Any, Protocol

from neml2_capi._ffi.kinds import Kind
from neml2_capi._ffi.options import Options
from neml2_capi.model.evaluation import Evaluation, Given, Operation
from neml2_capi.model.signature import Signature


class Backend(Protocol):
    """Interface of what evaluates a model.

    A method raises a FatalError if the backend is closed, or cannot do what is asked for.
    """

    @property
    def name(self) -> str:
        """The argument `engine` of Model() that names it."""

    @property
    def signature(self) -> Signature:
        """The variables and derivatives; they stay when it is closed."""

    @property
    def kind(self) -> Kind:
        """The kind of the results; NUMPY: the kind of the arguments."""

    @property
    def runtime(self) -> str:
        """The name of what the compiled graphs call."""

    @property
    def options(self) -> Options:
        """The solver options, a live mapping."""

    @property
    def closed(self) -> bool:
        """Whether close() was called."""

    def close(self) -> None:
        """Free the model."""

    def _open(self) -> Any:
        """Return what holds the model; FatalError if it is closed."""

    def describe(self) -> dict[str, Any]:
        """Return what the artifact holds."""

    @property
    def implicit_segments(self) -> list[tuple[str, set[str]]]:
        """The implicit segments, as of implicit_segments(); empty if that is not known."""

    def points_evaluated(self, device: int) -> int:
        """Return how many points a device of the scheduler has evaluated."""

    def parameter(self, index: int) -> Any:
        """Return an array over the memory of a stored parameter."""

    def set_parameter(self, index: int, value: Any) -> None:
        """Store a copy of `value`."""

    def results(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Any:
        """Return what the function of Model returns; ConvergenceError if points failed."""

    def evaluate(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Evaluation:
        """Evaluate, and report of every point."""

    def new_call(self) -> Any:
        """Return the owner of a new neml2_call."""

    def begin_solve(self, inputs: Any, overrides: Any) -> Any:
        """Return the owner of a neml2_solve that has begun with these tensors."""
