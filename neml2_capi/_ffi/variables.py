"""Variables of a model: names, shapes and types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from neml2_capi._ffi.dtypes import DTYPE_NAMES
from neml2_capi._ffi.errors import unknown_name
from neml2_capi._ffi.inspection import counted, inspected
from neml2_capi._ffi.labels import Label
from neml2_capi._ffi.library import lib, text


@dataclass(frozen=True)
class Variable:
    """An input, an output or a parameter of a model.

    An array of it has the shape (*B, *sub_batch_shape, *base_shape), with B the batch of points.
    """

    #: As the artifact has it, "stress~1" for example.
    name: str
    #: The mathematical type as NEML2 names it, "SR2" or "Scalar"; "" for a parameter.
    type: str
    #: The shape of one value: () of a Scalar, (6,) of an SR2.
    base_shape: tuple[int, ...]
    #: The axes of one point before that, the grains of a polycrystal for example; () mostly.
    sub_batch_shape: tuple[int, ...]
    #: The element type, "float64" for example.
    dtype: str

    @property
    def point_shape(self) -> tuple[int, ...]:
        """The shape of the value at one point."""
        return self.sub_batch_shape + self.base_shape


@dataclass(frozen=True)
class Derivative:
    """A derivative of an output with respect to an input or a parameter."""

    #: The name of the output.
    output: str
    #: The name of the input or the parameter.
    variable: str
    #: The shape of its block at one point.
    shape: tuple[int, ...]
    #: Whether each point has its own; else one block is for all points.
    batched: bool


@dataclass(frozen=True)
class History:
    """An input `x~age`: the value of `x` some steps before."""

    #: The name of the input, "stress~1" for example.
    input: str
    #: How many steps before: 1 for `x~1`.
    age: int
    #: The output that it becomes, or None.
    output: str | None
    #: The input that it becomes, if `x` is a force, or None.
    current: str | None


class Variables(Sequence[Variable]):
    """The variables of one kind, in the order of the model."""

    def __init__(self, kind: str, variables: Iterable[Variable]) -> None:
        #: "input", for example.
        self.kind = kind
        self._variables = tuple(variables)
        #: The names, in order.
        self.names = [variable.name for variable in self]
        #: The position of each name.
        self.index_of = {name: index for index, name in enumerate(self.names)}
        #: Names in messages.
        self.labels = [Label(self.kind, name) for name in self.names]
        self._guessed: dict[str, Variable] = {}

    def note_guesses(self, unknowns: Iterable[Variable]) -> None:
        """Take the names of unknowns among the inputs, if they are not inputs.

        NEML2's runtime takes such an input as the guess of Newton's method, and its predictor
        replaces it: what a guess changes is an input of its own.

        Parameters
        ----------
        unknowns
            The unknowns of the model.
        """
        self._guessed = {v.name: v for v in unknowns if v.name not in self.index_of}

    def is_replaced_guess(self, name: str, value: Any) -> bool:
        """Tell whether a name that is not among these is such a guess.

        Parameters
        ----------
        name
            Of what a caller gave.
        value : array
            What that is.

        Returns
        -------
        bool
            Whether it is one.

        Raises
        ------
        FatalError
            It is, and its shape is wrong.
        """
        variable = self._guessed.get(name)
        if variable is not None and value is not None:
            Label("guess", name).batch_of(np.shape(value), variable.point_shape)
        return variable is not None

    @overload
    def __getitem__(self, index: int | str) -> Variable: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Variable, ...]: ...
    def __getitem__(self, index: int | str | slice) -> Variable | tuple[Variable, ...]:
        return self._variables[self.resolve(index) if isinstance(index, str) else index]

    def __len__(self) -> int:
        return len(self._variables)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._variables)

    def resolve(self, name: str) -> int:
        """Find a variable by its name, or by its last component if it is the only one of it.

        Parameters
        ----------
        name
            "elasticity.E", or "E".

        Returns
        -------
        int
            Its position in the order of the model.

        Raises
        ------
        UnknownNameError
            There is no such variable, or several end so.
        """
        index = self.index_of.get(name)
        if index is not None:
            return index
        matches = [full for full in self.names if full.endswith(f".{name}")]
        if len(matches) == 1:
            return self.index_of[matches[0]]
        error = unknown_name(self.kind, name, self.names)
        if matches:
            error.args = (f"{self.kind} {name!r} is ambiguous; it can be: {', '.join(matches)}",)
        raise error

    def _ipython_key_completions_(self) -> list[str]:
        return self.names

    def __repr__(self) -> str:
        return repr(self._variables)


def variable_of(variables: Variables, name: str) -> Variable:
    """The variable of exactly this name; UnknownNameError if there is none."""
    if name not in variables.index_of:
        raise unknown_name(variables.kind, name, variables.names)
    return variables[variables.index_of[name]]


def read_variables(model: Any, kind: int) -> Variables:
    """The variables of one kind, NEML2_INPUT for example, of a model handle."""
    positions = counted(lib.neml2_model_variable_count, model, kind)
    return Variables(_KINDS[kind], (_read(model, kind, index) for index in positions))


_KINDS = {
    lib.NEML2_INPUT: "input",
    lib.NEML2_OUTPUT: "output",
    lib.NEML2_PARAMETER: "parameter",
    lib.NEML2_UNKNOWN: "unknown",
}


def _read(model: Any, kind: int, index: int) -> Variable:
    info = inspected("neml2_variable_info", lib.neml2_model_variable_inspect, model, kind, index)
    sizes = tuple(info.shape[0 : info.ndim])
    return Variable(
        name=text(info.name),
        type=text(info.type),
        base_shape=sizes[info.sub_ndim :],
        sub_batch_shape=sizes[: info.sub_ndim],
        dtype=DTYPE_NAMES[info.dtype],
    )


def read_derivatives(
    model: Any, outputs: Variables, variables: Variables
) -> tuple[Derivative, ...]:
    """The derivatives of a model with respect to `variables`, its inputs or its parameters."""
    kind = lib.NEML2_PARAMETER if variables.kind == "parameter" else lib.NEML2_INPUT
    derivatives = []
    for index in counted(lib.neml2_model_derivative_count, model, kind):
        info = inspected(
            "neml2_derivative_info", lib.neml2_model_derivative_inspect, model, kind, index
        )
        derivatives.append(
            Derivative(
                outputs.names[info.output],
                variables.names[info.variable],
                tuple(info.shape[0 : info.ndim]),
                bool(info.batched),
            )
        )
    return tuple(derivatives)


def read_histories(model: Any, inputs: Variables, outputs: Variables) -> tuple[History, ...]:
    """The history inputs of a model."""
    histories = []
    for index in counted(lib.neml2_model_history_count, model):
        info = inspected("neml2_history_info", lib.neml2_model_history_inspect, model, index)
        histories.append(
            History(
                inputs.names[info.input],
                info.age,
                outputs.names[info.output] if info.output >= 0 else None,
                inputs.names[info.current] if info.current >= 0 else None,
            )
        )
    return tuple(histories)
