"""Which variable of an artifact is which argument of a host, guessed from names and histories."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.refusals import Refusal
from neml2_capi._ffi.variables import Variable, Variables
from neml2_capi.model import Model
from neml2_capi.umat.properties import ENERGIES, KINDS, Mapping, Parameter, State, size_of

TIMES = ("t", "time")
TEMPERATURES = ("T", "temperature")
#: Words of a name that is no strain or stress, as capi/model/tensor_pair.cpp has them.
_CHANGES = ("rate", "rates", "dot", "increment", "increments", "inc", "delta")
_JOINED = ("strainrate", "stressrate", "dstrain", "dstress")


class DraftError(Refusal, ValueError):
    """The artifact cannot be driven by a host as it is, or what its variables mean is unclear."""


def in_double(path: str | os.PathLike[str], refusal: type[Exception]) -> Model:
    """The model of an artifact in the numbers of hosts; an artifact of others is refused."""
    try:
        return Model(path)
    except FatalError as error:
        if error.subject != "cpu/float64" or "cpu/float32" not in str(error):
            raise
        raise refusal(
            f"The artifact {path} computes in float32, and hosts and pages in float64: compile it "
            "for that, by --dtype float64 or by dtype='float64' of export.model()."
        ) from error


def guess(
    model: Model,
    strain: str = "",
    stress: str = "",
    time: str = "",
    temperature: str = "",
    host: str = "",
) -> Mapping:
    """Guess the variables by the arguments of a host, from their names and what they become.

    Messages name the host, if one is given: a plug-in is for all, UMAT's and MGIS'.
    """
    who = f"The host {host}" if host else "A host"
    histories = {history.input: history for history in model.histories}
    for history in histories.values():
        if history.age > 1:
            raise DraftError(
                f"The input {history.input!r} is the value {history.age} steps before. {who} keeps "
                "values of one step, `x~1`."
            )
        if history.output is None and history.current is None:
            raise DraftError(
                f"The input {history.input!r} is a history without an output "
                f"{history.input.removesuffix('~1')!r}, so that nothing says what it is at the "
                "next step. Let the model give it out."
            )
    stress, strain = _tangent(model, stress, strain, who)
    given: dict[str, Any] = {
        "strain": strain,
        "time": _scalar(model, time, TIMES),
        "temperature": _scalar(model, temperature, TEMPERATURES),
    }
    if given["time"] and given["time"] == given["temperature"]:
        raise DraftError(
            f"The input {given['time']!r} cannot be both the time and the temperature: name others."
        )
    states = [
        history.output
        for history in histories.values()
        if history.output not in (None, stress, strain)
    ]
    known = {*given.values(), *histories, *states}
    unknown = [variable for variable in model.inputs if variable.name not in known]
    for variable in unknown:
        if size_of(variable) > 1:
            raise DraftError(
                f"The input {variable.name!r} has {size_of(variable)} values (type "
                f"{variable.type}), and is neither the strain nor a history. {who} has nothing of "
                "the kind for a material."
            )
    outputs = {variable.name: variable for variable in model.outputs}
    for name in (stress, *states):
        if name and type_of(outputs[name]) not in KINDS:
            raise DraftError(
                f"The state {name!r} is of type {outputs[name].type}: how a rotation turns it is "
                f"not known. A plug-in turns {', '.join(KINDS)}. Give the state in one of these, "
                "an orientation as the rotation matrix (R2), for example."
            )
    energies: dict[str, Any] = {
        name: name for name in ENERGIES if name in outputs and size_of(outputs[name]) == 1
    }
    return Mapping(
        stress=stress,
        **given,
        **energies,
        states=[
            State(variable, kind=KINDS[type_of(variable)][0], statev=first)
            for variable, first in _in_sequence(outputs[name] for name in states if name)
        ],
        parameters=[
            Parameter(variable, props=first) for variable, first in _in_sequence(model.parameters)
        ],
        unknown=unknown,
    )


def _tangent(model: Model, stress: str, strain: str, who: str) -> tuple[str, str]:
    """The stress and the strain: a pair with a derivative."""
    stresses = _symmetric(model.outputs, stress, "stress")
    strains = _symmetric(model.inputs, strain, "strain")
    compiled = [(pair.output, pair.variable) for pair in model.derivatives]
    pairs = [pair for pair in compiled if pair[0] in stresses and pair[1] in strains]
    if not pairs:
        raise DraftError(
            f"The artifact has no derivative of the stress with respect to the strain. {who} asks "
            f"for it. Compile it with: neml2-compile -d {stresses[0]}:{strains[0]}; "
            "export a law in torch again, with derivatives=True"
        )
    if len(pairs) > 1 and ("stress", "strain") in pairs:
        return "stress", "strain"
    if len(pairs) > 1:
        raise DraftError(
            "Which is the stress, and which the strain? It can be "
            + ", or ".join(f"{output} and {variable}" for output, variable in pairs)
            + ". Say it with --stress and --strain."
        )
    return pairs[0]


def _symmetric(variables: Variables, name: str, word: str) -> list[str]:
    """List what can be the stress or the strain: `name`, or what has that word in its name."""
    found = [
        variable.name
        for variable in variables
        if type_of(variable) == "SR2" and not variable.sub_batch_shape
        if (variable.name == name if name else word in variable.name.lower())
        if "~" not in variable.name
    ]
    if not found:
        called = f"is called {name}" if name else f"has {word!r} in its name"
        raise DraftError(
            f"No {variables.kind} can be the {word}: a symmetric tensor (SR2) without sites that "
            f"{called}. There are: {', '.join(variables.names)}. Say which it is with --{word}."
        )
    whole = [each for each in found if name or not is_change(each)]
    if not whole:
        remedy = (
            "Write the law with the inputs 'strain' and 'strain~1', and let it take the rate from "
            "them (SR2VariableRate in NEML2)"
            if word == "strain"
            else "Let the law give out the stress, which it integrates from the input 'stress~1'"
        )
        passed = "pass strains" if word == "strain" else "take stresses"
        raise DraftError(
            f"The {variables.kind} {found[0]!r} is a rate or an increment by its name, and hosts "
            f"{passed}. {remedy}. If it is a {word} nevertheless, say so with --{word}."
        )
    return whole


def is_change(name: str) -> bool:
    """Whether a name says that a variable is a rate or an increment of what it speaks of."""
    words = re.findall("[a-z]+", name.lower())
    return any(word in _CHANGES or word.startswith(_JOINED) for word in words)


def _scalar(model: Model, name: str, usual: Sequence[str]) -> str:
    """The input `name`, or the one of a usual name; "" if there is none."""
    scalars = [variable.name for variable in model.inputs if size_of(variable) == 1]
    if name and name not in scalars:
        raise DraftError(f"The artifact has no scalar input {name!r}; it has {', '.join(scalars)}.")
    return name or next((scalar for scalar in usual if scalar in scalars), "")


def type_of(variable: Variable) -> str:
    """Return the type of a variable, which older artifacts may not say."""
    shapes = {(): "Scalar", (3,): "Vec", (6,): "SR2", (3, 3): "R2"}
    return variable.type or shapes.get(variable.base_shape, "")


def _in_sequence(variables: Iterable[Variable]) -> Iterator[tuple[Variable, int]]:
    """Variables one after another, and where each begins, counted from 1."""
    first = 1
    for variable in variables:
        yield variable, first
        first += size_of(variable)
