"""States of a model: the history of points, and its files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Label, common_batch
from neml2_capi._ffi.library import lib
from neml2_capi.model.described import Described
from neml2_capi.model.evaluation import check_mapping
from neml2_capi.model.state import State, batch_of
from neml2_capi.model.state_file import read_state, require_same, write_state


class States(Described):
    """States of a model."""

    def state(
        self, batch: int | tuple[int, ...] = (), initial: Mapping[str, Any] | None = None
    ) -> State:
        """The history of points, which is carried from step to step.

            state = steel.state(100)
            outputs = steel.forward(state.inputs(strain=strain, t=1.0))
            state.advance(outputs)

        Parameters
        ----------
        batch : int or tuple of int
            How many points; () for one without batch axes.
        initial : mapping of str to array, optional
            Values of outputs and inputs before the first step, which broadcast to (*B, *point
            shape), and are copied; zero otherwise.

        Returns
        -------
        State
            Its inputs() are the next step's.

        Raises
        ------
        UnknownNameError
            An initial value is of nothing that becomes history.
        FatalError
            The batch is no number of points, or an initial value is of another shape or not finite.
        """
        initial = {} if initial is None else initial
        check_mapping("initial", initial)
        return State(self._signature, batch_of(batch), initial)

    def save_state(
        self, path: str | os.PathLike[str], state: State, *, step: int = 0, time: float = 0.0
    ) -> None:
        """Write a state to a file, by which a run continues to the last bit.

            steel.save_state("run.state", state, step=10, time=1.0)
            state, step, time = steel.load_state("run.state")

        The file is one of safetensors, the same as neml2_call_state_save() writes in C, C++ and
        Fortran. It has a checksum of the artifact and of itself, and replaces the one before when
        it is whole.

        Parameters
        ----------
        path
            The file.
        state
            Of this model.
        step
            Where the run stands; yours, and given back.
        time
            Where the run stands; yours, and given back.

        Raises
        ------
        FatalError
            The file cannot be written, the state is of another model, or `step` is no whole number
            or `time` not a finite one.
        """
        arrays = state.arrays() if isinstance(state, State) else {}
        if not isinstance(state, State) or arrays.keys() != self.state().arrays().keys():
            held = f", which has {', '.join(arrays)}" if arrays else ""
            raise _refused("state", f"must be a State of this model's state(); got {state!r}{held}")
        if not isinstance(step, Integral) or not -(2**63) <= step < 2**63:
            raise _refused("step", f"must be a whole number of 64 bits; got {step!r}")
        if not isinstance(time, Real) or not math.isfinite(time):
            raise _refused("time", f"must be a finite number; got {time!r}")
        points = {name: self._point(name) for name in arrays}
        batch = common_batch(
            (Label("state", name), Label("state", name).batch_of(array.shape, points[name]))
            for name, array in arrays.items()
        )
        # One value for all points is written for each: other languages read no other.
        arrays = {n: np.broadcast_to(array, batch + points[n]) for n, array in arrays.items()}
        told = {"npoints": math.prod(batch), "step": int(step), "time": float(time)}
        write_state(path, arrays, self._identity() | {k: repr(v) for k, v in told.items()})

    def load_state(self, path: str | os.PathLike[str]) -> tuple[State, int, float]:
        """Read what save_state(), or neml2_call_state_save() in another language, wrote.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        tuple
            The state, in the batch that it was saved in, the step and the time.

        Raises
        ------
        FatalError
            The file is damaged or truncated, is of another artifact, of one that was opened with
            another hypothesis, strain measure or material axes, or of other variables.
        """
        arrays, told = read_state(path)
        require_same(path, told, self._identity())
        own = {name: array for name, array in arrays.items() if "/" not in name}
        empty = self.state().arrays()
        if missing := [name for name in empty if name not in own]:
            raise FatalError(
                f"{os.fspath(path)} lacks {', '.join(missing)}; it holds {', '.join(own)}",
                lib.NEML2_ERROR_NAME,
                missing[0],
            )
        batches = {a.shape[: max(a.ndim - len(self._point(n)), 0)] for n, a in own.items()} - {()}
        batch = max(batches, default=())
        state = self.state(batch, {name: own[name] for name in empty})
        return state, int(told["step"]), float(told["time"])

    def _identity(self) -> dict[str, str]:
        """Entries of a file by which a state belongs to one artifact, as it was opened."""
        views = self._source.view.of_state
        return {"artifact": self.checksum, **({"views": views} if views else {})}

    def _point(self, name: str) -> tuple[int, ...]:
        """The point shape of an input."""
        known = self._signature.inputs.index_of
        return self._signature.inputs[known[name]].point_shape if name in known else ()


def _refused(argument: str, problem: str) -> FatalError:
    return FatalError(f"{argument} {problem}", lib.NEML2_ERROR_ARGUMENT, argument)
