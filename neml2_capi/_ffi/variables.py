"""What a model's variables are called, and what shape and type they have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from neml2_capi._ffi.errors import check, unknown_name
from neml2_capi._ffi.library import ffi, lib, text
from neml2_capi._ffi.tensor import DTYPE_NAMES, Label


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


@dataclass(frozen=True)
class Derivative:
    """A derivative of an output with respect to an input or a parameter."""

    #: The name of the output.
    output: str
    #: The name of the input or the parameter.
    variable: str
    #: The shape of its block at one point.
    shape: tuple[int, ...]
    #: Whether each point has its own; else one block is that of all points.
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
    #: The input that it becomes, where `x` is a force, or None.
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
        #: What messages call them.
        self.labels = [Label(self.kind, name) for name in self.names]

    @overload
    def __getitem__(self, index: int) -> Variable: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Variable, ...]: ...
    def __getitem__(self, index: int | slice) -> Variable | tuple[Variable, ...]:
        return self._variables[index]

    def __len__(self) -> int:
        return len(self._variables)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._variables)

    def resolve(self, name: str) -> int:
        """The position of the variable `name`, or of the only one whose last component it is."""
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

    def __repr__(self) -> str:
        return repr(self._variables)


def read_variables(model: Any, kind: int) -> Variables:
    """The variables of one kind, NEML2_INPUT for example, of a model handle."""
    count = ffi.new("int64_t *")
    check(lib.neml2_model_variable_count(count, model, kind))
    return Variables(_KINDS[kind], (_read(model, kind, index) for index in range(count[0])))


_KINDS = {
    lib.NEML2_INPUT: "input",
    lib.NEML2_OUTPUT: "output",
    lib.NEML2_PARAMETER: "parameter",
    lib.NEML2_UNKNOWN: "unknown",
}


def _read(model: Any, kind: int, index: int) -> Variable:
    name, type_ = ffi.new("const char **"), ffi.new("const char **")
    check(lib.neml2_model_variable_name(name, type_, model, kind, index))
    ndim, shape, sub_ndim = ffi.new("int64_t *"), ffi.new("const int64_t **"), ffi.new("int64_t *")
    check(lib.neml2_model_variable_shape(ndim, shape, sub_ndim, model, kind, index))
    dtype = ffi.new("int32_t *")
    check(lib.neml2_model_variable_dtype(dtype, model, kind, index))
    sizes = tuple(shape[0][0 : ndim[0]])
    return Variable(
        name=text(name[0]),
        type=text(type_[0]),
        base_shape=sizes[sub_ndim[0] :],
        sub_batch_shape=sizes[: sub_ndim[0]],
        dtype=DTYPE_NAMES[dtype[0]],
    )


def read_derivatives(
    model: Any, outputs: Variables, variables: Variables
) -> tuple[Derivative, ...]:
    """The derivatives of a model with respect to `variables`, its inputs or its parameters."""
    kind = lib.NEML2_PARAMETER if variables.kind == "parameter" else lib.NEML2_INPUT
    count = ffi.new("int64_t *")
    check(lib.neml2_model_derivative_count(count, model, kind))
    numbers, batched = ffi.new("int64_t[3]"), ffi.new("int32_t *")
    shape = ffi.new("const int64_t **")
    derivatives = []
    for index in range(count[0]):
        where = (numbers, numbers + 1, batched, numbers + 2, shape)
        check(lib.neml2_model_derivative_info(*where, model, kind, index))
        output, variable, ndim = numbers
        derivatives.append(
            Derivative(
                outputs.names[output],
                variables.names[variable],
                tuple(shape[0][0:ndim]),
                bool(batched[0]),
            )
        )
    return tuple(derivatives)


def read_histories(model: Any, inputs: Variables, outputs: Variables) -> tuple[History, ...]:
    """The history inputs of a model."""
    count = ffi.new("int64_t *")
    check(lib.neml2_model_history_count(count, model))
    numbers = ffi.new("int64_t[4]")
    histories = []
    for index in range(count[0]):
        where = (numbers + position for position in range(4))
        check(lib.neml2_model_history_info(*where, model, index))
        given, age, output, current = numbers
        histories.append(
            History(
                inputs.names[given],
                age,
                outputs.names[output] if output >= 0 else None,
                inputs.names[current] if current >= 0 else None,
            )
        )
    return tuple(histories)
