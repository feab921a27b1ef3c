"""The history of points, carried from step to step."""

from __future__ import annotations

import copy
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.kinds import alike
from neml2_capi._ffi.labels import Array, Label, common_batch
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Tensor, carries_gradient, host_array, is_torch
from neml2_capi._ffi.variables import Variable
from neml2_capi.model.evaluation import check_mapping
from neml2_capi.model.signature import Signature


class State:
    """What a model remembers of its points: the inputs `x~1`, `x~2` of a step.

        state = model.state(100)
        for time, strain in path:
            inputs = state.inputs(strain=strain, t=time)
            outputs, tangent = model.jacobian(inputs)  # as often as a host iterates
            state.advance(outputs)  # at the end of the step

    It begins at zero, or at `initial`. Arrays are kept as copies, and never written; numpy's
    cannot be. copy() is a step to which a host can return.
    """

    def __init__(
        self, model: Signature, batch: tuple[int, ...], initial: Mapping[str, Any]
    ) -> None:
        """Use Model.state()."""
        self._carried = [h for h in model.histories if h.output or h.current]
        self._inputs = {v.name: v for v in model.inputs}
        # History of what the model does not have is zero, as in NEML2, unless it is given.
        orphans = [h.input for h in model.histories if not (h.output or h.current)]
        self._absent = {name: _frozen(_zeros((), self._inputs[name])) for name in orphans}
        self._values: dict[str, Any] = {}
        for history in self._carried:
            variable = self._inputs[history.input]
            self._values[variable.name] = _zeros(batch, variable)
        known = [name.partition("~")[0] for name in self._values]
        for name, value in initial.items():
            older = [h.input for h in self._carried if name in (h.input, h.output, h.current)]
            if not older:
                raise unknown_name("initial value", name, [*dict.fromkeys(known)])
            self._values |= {key: _initial(name, value, self._values[key]) for key in older}
        self._values = {name: _frozen(value) for name, value in self._values.items()}
        # Forces that inputs() was given for the step that follows; None if it was not called.
        self._forces: dict[str, Any] | None = None

    def inputs(self, forces: Mapping[str, Any] | None = None, **named: Any) -> dict[str, Any]:
        """All inputs of the step that follows.

        Parameters
        ----------
        forces : mapping of str to array, optional
            The inputs that are not history, (*B, *point shape). A history `x~1` of an `x` that the
            model does not have is zero, if it is left out.
        named
            The same by keywords.

        Returns
        -------
        dict of str to array
            These and the history, as the functions of a model take them.

        Raises
        ------
        FatalError
            Inputs are missing or unknown; all are named.
        """
        forces = {} if forces is None else forces
        check_mapping("forces", forces)
        given = {**forces, **named}
        free = [name for name in self._inputs if name not in self._values]
        for name in given:
            if name in self._values:
                raise FatalError(
                    f"{name!r} is history, which the state carries", lib.NEML2_ERROR_ARGUMENT, name
                )
            if name not in free:
                raise unknown_name("input", name, free)
        missing = [name for name in free if name not in given and name not in self._absent]
        if missing:
            shapes = ", ".join(f"{n!r} {_shape(self._inputs[n].point_shape)}" for n in missing)
            raise FatalError(
                f"inputs are missing: {shapes}. Give every input that is not history",
                lib.NEML2_ERROR_MISSING,
                missing[0],
            )
        self._forces = given
        return {**self._absent, **given, **self._values}

    def advance(self, outputs: Mapping[str, Any]) -> None:
        """Make the last inputs and their outputs history.

        Parameters
        ----------
        outputs : mapping of str to array
            What the model gave for what inputs() returned last.

        Raises
        ------
        FatalError
            An output that becomes history is missing or is no value of it, or inputs() was not
            called since the last step. Nothing changed.
        """
        check_mapping("outputs", outputs)
        forces = self._forces
        if forces is None:
            raise FatalError(
                "inputs() was not called since the last step: call it for each step, and advance() "
                "once, at its end",
                lib.NEML2_ERROR_MISSING,
            )
        values, batches = {}, []
        for history in self._carried:
            name = history.output or history.current or ""
            newer = f"{name}~{history.age - 1}"
            source = outputs if history.output else forces
            if history.age > 1:
                values[history.input] = self._values[newer]
            elif name in source:
                label = Label("output" if history.output else "input", name)
                batch = _batch(source[name], label, self._inputs[history.input])
                batches.append((label, batch))
                values[history.input] = _kept(source[name])
            else:
                where = "outputs" if history.output else "what inputs() was given"
                raise FatalError(
                    f"{name!r} becomes history, and is missing in {where}",
                    lib.NEML2_ERROR_MISSING,
                    name,
                )
        common_batch(batches)
        self._values, self._forces = values, None

    def arrays(self) -> dict[str, Array]:
        """All values by the names of the inputs of the next step, "stress~1".

        Returns
        -------
        dict of str to array
            As numpy arrays, (*B, *point shape); numpy's own are not copied.
        """
        return {name: Tensor(value).numpy() for name, value in self._values.items()}

    def copy(self) -> State:
        """The same state, which goes its own way from here.

        Returns
        -------
        State
            It shares the arrays, which are never written.
        """
        other = object.__new__(State)
        other.__dict__.update(self.__dict__)
        return other

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Pickles and deep copies of arrays can be written; a state's cannot."""
        self.__dict__.update(attributes)
        self._absent = {name: _frozen(value) for name, value in self._absent.items()}
        self._values = {name: _frozen(value) for name, value in self._values.items()}

    def __getitem__(self, name: str) -> Any:
        """A value at the end of the last step: "stress", or "stress~1" for one that is older."""
        name, _, age = str(name).partition("~")
        key = f"{name}~{int(age or 0) + 1}" if not age or (age.isdecimal() and len(age) < 9) else ""
        if key not in self._values:
            raise unknown_name("state", name, self._ipython_key_completions_())
        return self._values[key]

    def _ipython_key_completions_(self) -> list[str]:
        return [name.removesuffix("~1") for name in self._values if name.endswith("~1")]

    def __repr__(self) -> str:
        shapes = (f"{name} {np.shape(self[name])}" for name in self._ipython_key_completions_())
        return f"<State: {', '.join(shapes)}>"


def batch_of(points: Any) -> tuple[int, ...]:
    """The batch axes of so many points; FatalError if `points` is no number, nor several."""
    sizes = points if isinstance(points, tuple | list) else (points,)
    try:
        axes = tuple(-1 if isinstance(size, bool) else operator.index(size) for size in sizes)
    except TypeError:
        axes = (-1,)
    if any(size < 0 for size in axes):
        raise FatalError(
            f"batch must be a number of points, 0 at least, or a tuple of them; got {points!r}",
            lib.NEML2_ERROR_ARGUMENT,
            "batch",
        )
    return axes


def _zeros(batch: tuple[int, ...], variable: Variable) -> Array:
    try:
        return np.zeros(batch + variable.point_shape, variable.dtype)
    except (ValueError, MemoryError) as error:
        raise FatalError(
            f"batch = {batch} is more than there is memory for: {error}; expected fewer points",
            lib.NEML2_ERROR_MEMORY,
            "batch",
        ) from error


def _initial(name: str, value: Any, zeros: Array) -> Any:
    """A copy of an initial value, of the shape and the element type of what is zero else."""
    label = Label("initial value", name)
    array, target = np.asarray(host_array(value, label, zeros.dtype.name)), zeros.copy()
    if array.dtype.kind not in "fiu":
        raise label.refuse(
            f"has the element type {array.dtype}; expected numbers", lib.NEML2_ERROR_DTYPE
        )
    try:
        with np.errstate(over="ignore"):
            target[...] = array
    except ValueError:
        raise label.refuse(
            f"has the shape {array.shape}; expected one that broadcasts to {zeros.shape}, the "
            "batch and then one point",
            lib.NEML2_ERROR_SHAPE,
        ) from None
    if not (good := np.isfinite(target)).all():
        raise label.refuse(
            f"is {target[~good][0]} at index {np.argwhere(~good)[0].tolist()}; expected finite "
            "numbers",
            lib.NEML2_ERROR_ARGUMENT,
        )
    made = alike(value, target)
    return value.to(made).expand(target.shape).clone() if carries_gradient(value) else made


def _shape(point: tuple[int, ...]) -> str:
    """As documents write it: (*B, 6) for a tensor, (*B,) for a number."""
    return f"(*B, {', '.join(map(str, point))})" if point else "(*B,)"


def _batch(value: Any, label: Label, variable: Variable) -> tuple[int, ...]:
    """The batch axes of a value; FatalError if no step could take it."""
    if isinstance(value, np.ndarray) or not hasattr(value, "shape"):
        value = host_array(value, label, variable.dtype)
    return label.batch_of(np.shape(value), variable.point_shape)


def _kept(value: Any) -> Any:
    """A copy: the caller may write to what was given, and to what a model gave."""
    if is_torch(value):
        return value.clone()  # its gradient goes through
    if isinstance(value, Tensor):
        return Tensor(np.array(value.numpy()))
    return _frozen(np.array(value) if isinstance(value, np.ndarray) else copy.deepcopy(value))


def _frozen(value: Any) -> Any:
    """A read-only array that copies of the state share."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value
