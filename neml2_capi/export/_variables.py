"""What a model is declared with: variables, promoted parameters and derivatives."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.labels import Array, Label, listed
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import host_array
from neml2_capi.driver.forces import typed
from neml2_capi.model.evaluation import check_mapping

#: The base shapes of NEML2's types.
SHAPES: dict[str, tuple[int, ...]] = {
    "Scalar": (),
    "Vec": (3,),
    "Rot": (3,),
    "WR2": (3,),
    "SR2": (6,),
    "R2": (3, 3),
    "SSR4": (6, 6),
}
#: What a shape is called if no type was given.
_TYPES = {(): "Scalar", (3,): "Vec", (6,): "SR2", (3, 3): "R2", (6, 6): "SSR4"}

#: The most characters of a name that the library reads.
_LONGEST = 1024

Declarations = Mapping[str, str | Sequence[int]]


@dataclass(frozen=True)
class Variable:
    """A variable at one point."""

    name: str
    type: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Parameter:
    """A promoted parameter, whose value can be set when the model runs."""

    name: str
    values: np.ndarray[Any, np.dtype[np.float64]]

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.values.shape
        return shape

    @property
    def size(self) -> int:
        return self.values.size


def declared(kind: str, declarations: Declarations | None) -> list[Variable]:
    """The variables of a mapping from names to types or shapes; FatalError if it is no mapping."""
    if not declarations or not isinstance(declarations, Mapping):
        raise FatalError(
            f"{kind} are {'no mapping' if declarations else 'missing'}: give a mapping from names "
            'to types or shapes, such as {"strain": "SR2", "features": (4,)}',
            lib.NEML2_ERROR_ARGUMENT,
        )
    return [_variable(kind, name, of) for name, of in declarations.items()]


def _variable(kind: str, name: str, of: str | Sequence[int]) -> Variable:
    _require_name(kind, name)
    if isinstance(of, str):
        if of not in SHAPES:
            raise FatalError(
                f"{of!r}, the type of {name!r} among the {kind}, is not one of "
                f"{', '.join(SHAPES)}; give the shape of a point instead, such as (4,)",
                lib.NEML2_ERROR_ARGUMENT,
                name,
            )
        return Variable(name, of, SHAPES[of])
    shape = _shape(of)
    if 0 in shape:
        raise FatalError(
            f"{of!r}, the shape of {name!r} among the {kind}, is none of a point; give whole "
            "numbers from 1 on, such as (4,), or () for one number",
            lib.NEML2_ERROR_SHAPE,
            name,
        )
    return Variable(name, _TYPES.get(shape, "Tensor"), shape)


def _shape(sizes: Any) -> tuple[int, ...]:
    """The sizes of axes; (0,) if they are none."""
    try:
        shape = tuple(0 if isinstance(size, bool) else operator.index(size) for size in sizes)
    except TypeError:
        return (0,)
    return shape if min(shape, default=1) > 0 else (0,)


def _require_name(kind: str, name: Any) -> None:
    """FatalError unless the library reads it as a name."""
    good = isinstance(name, str) and 0 < len(name) <= _LONGEST and "\0" not in name
    if not good or name != name.encode(errors="replace").decode():
        raise FatalError(
            f"{name!r:.80}, among the {kind}, is no name; give a text of 1 to {_LONGEST} "
            "characters",
            lib.NEML2_ERROR_NAME,
            str(name),
        )


def promoted(parameters: Mapping[str, Any] | None, dtype: str) -> list[Parameter]:
    """Promoted parameters with their initial values: numbers or arrays, of one point.

    FatalError unless they are finite numbers, in the element type of the model too.
    """
    parameters = {} if parameters is None else parameters
    check_mapping("parameters", parameters)
    return [Parameter(name, _initial(name, value, dtype)) for name, value in parameters.items()]


def _initial(name: str, value: Any, dtype: str) -> Array:
    """A copy of the value of a parameter, without its gradient."""
    _require_name("parameters", name)
    label = Label("parameter", name)
    array = typed(host_array(value, label, "float64"), label, "float64")
    typed(array, label, dtype)
    if array.size == 0:
        raise label.refuse(
            f"has the shape {array.shape}; expected a number, or an array of some",
            lib.NEML2_ERROR_SHAPE,
        )
    return np.array(array)


def require_different_names(*groups: Sequence[Variable | Parameter]) -> None:
    """FatalError if two inputs, unknowns, outputs or parameters have one name."""
    names = [entry.name for group in groups for entry in group]
    for name in names:
        if names.count(name) > 1:
            raise FatalError(
                f"two variables or parameters are called {name!r}; rename one",
                lib.NEML2_ERROR_NAME,
                name,
            )


Pairs = list[tuple[str, str]]


def requested(
    derivatives: bool | Iterable[str],
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    parameters: Sequence[Parameter],
) -> tuple[Pairs, Pairs]:
    """The pairs (output, input) and (output, parameter) to compile.

    True is all of them. "OUT:IN" is one, as `neml2-compile -d` has it: if OUT or IN is missing
    it is all, except ":", which leaves out the parameters.
    """
    wanted = [":", *(f":{p.name}" for p in parameters)] if derivatives is True else derivatives
    by_input, by_parameter = set(), set()
    names = [output.name for output in outputs]
    inner = [input.name for input in inputs]
    outer = [parameter.name for parameter in parameters]
    for text in _pairs(wanted):
        out, _, given = text.partition(":")
        if out and out not in names:
            raise unknown_name("output", out, names)
        if given and given not in inner and given not in outer:
            raise unknown_name("input or parameter", given, [*inner, *outer])
        for name in [out] if out else names:
            if given in outer:
                by_parameter.add((name, given))
            else:
                by_input |= {(name, i) for i in ([given] if given else inner)}
    return (
        [(o, i) for o in names for i in inner if (o, i) in by_input],
        [(o, p) for o in names for p in outer if (o, p) in by_parameter],
    )


def _pairs(wanted: Any) -> list[str]:
    """The pairs that are asked for, of which one may stand alone."""
    try:
        pairs = listed(wanted or ())
    except TypeError:
        pairs = [wanted]
    if not all(isinstance(pair, str) for pair in pairs):
        raise FatalError(
            f'derivatives are True, False or pairs such as ["stress:strain", ":E"]; got {wanted!r}',
            lib.NEML2_ERROR_ARGUMENT,
            "derivatives",
        )
    return pairs
