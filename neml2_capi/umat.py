"""Draft the mapping file by which a plug-in drives an artifact as a UMAT.

The command is `neml2-capi umat ARTIFACT`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np

from neml2_capi._ffi.variables import Variable, Variables
from neml2_capi.model import Model

__all__ = ["DraftError", "draft"]

# Kinds of states in the mapping file, and how STATEV holds them, by type.
KINDS = {
    "Scalar": ("scalar", ""),
    "Vec": ("vector", "1, 2, 3"),
    "SR2": ("symmetric", "11, 22, 33, 12, 13, 23; shear not doubled"),
    "R2": ("tensor", "11, 12, 13, 21, 22, 23, 31, 32, 33"),
}
TIMES = ("t", "time")
TEMPERATURES = ("T", "temperature")
#: Energies by the argument of UMAT: outputs of these names.
ENERGIES = {"stored_energy": "SSE", "dissipated_energy": "SPD"}


class DraftError(ValueError):
    """The artifact cannot be driven by UMAT as it is, or what its variables mean is unclear."""


@dataclass(frozen=True)
class Slot:
    """A variable, and where it begins in an array of UMAT, counted from 1."""

    variable: Variable
    first: int

    @property
    def last(self) -> int:
        return self.first + size_of(self.variable) - 1


@dataclass(frozen=True)
class Mapping:
    """Variables of an artifact by the arguments of UMAT; "" if there is none."""

    strain: str
    stress: str
    time: str
    temperature: str
    #: Outputs that are energies per volume.
    energies: dict[str, str] = field(default_factory=dict)
    states: list[Slot] = field(default_factory=list)
    parameters: list[Slot] = field(default_factory=list)
    #: Inputs of which it is not known what they are: perhaps predefined fields.
    unknown: list[str] = field(default_factory=list)

    @property
    def nstatv(self) -> int:
        return max((state.last for state in self.states), default=0)

    @property
    def nprops(self) -> int:
        return max((parameter.last for parameter in self.parameters), default=0)


def draft(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    strain: str = "",
    stress: str = "",
    time: str = "",
    temperature: str = "",
    host: str = "",
) -> str:
    """Draft a mapping file for an artifact, complete and with comments.

    Parameters
    ----------
    path
        The artifact.
    output
        Where the file will be: the material is called as it is, and the artifact's path is relative
        to its folder. By default the material is called as the artifact, and the path is absolute.
    strain
        The input that is the strain; guessed by default, and so are the others.
    stress
        The output that is the stress.
    time
        The input that is time at the end of an increment.
    temperature
        The input that is the temperature.
    host
        The program, "abaqus" or "calculix"; by default the one that behaves so.

    Returns
    -------
    str
        The text of the file, which is not written.

    Raises
    ------
    DraftError
        There can be no mapping, or something must be done first.
    """
    place = Path(output) if output else Path(f"{Path(path).resolve().stem.lower()}.nml")
    if place.name != f"{place.stem.lower()}.nml":
        raise DraftError(
            f"UMAT looks for lower-case names: call the file {place.stem.lower()}.nml."
        )
    with Model(path) as model:
        mapping = guess(model, strain, stress, time, temperature)
        values = [
            value
            for slot in mapping.parameters
            for value in np.ravel(model.named_parameters()[slot.variable.name])
        ]
        history = f"{mapping.stress}~1" in model.inputs.names
    artifact = str(Path(path).resolve())
    if output:
        artifact = os.path.relpath(artifact, place.resolve().parent)
    lines = (
        *_introduction(place, mapping, [float(value) for value in values]),
        *_layout(mapping, history),
        *_groups(artifact, mapping, host),
    )
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------------
# What the variables are
# ------------------------------------------------------------------------------------------------


def guess(
    model: Model, strain: str = "", stress: str = "", time: str = "", temperature: str = ""
) -> Mapping:
    """Guess the variables by the arguments of UMAT, from their names and what they become."""
    histories = {history.input: history for history in model.histories}
    for history in histories.values():
        if history.age > 1:
            raise DraftError(
                f"The input {history.input!r} is the value {history.age} steps before, which "
                "Abaqus does not keep. UMAT takes histories of one step, `x~1`."
            )
        if history.output is None and history.current is None:
            raise DraftError(
                f"The input {history.input!r} is a history without an output "
                f"{history.input.removesuffix('~1')!r}, so that nothing says what it is at the "
                "next step. Let the model give it out."
            )
    stress, strain = _tangent(model, stress, strain)
    given = {
        "strain": strain,
        "time": _scalar(model, time, TIMES),
        "temperature": _scalar(model, temperature, TEMPERATURES),
    }
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
                f"{variable.type}), and is neither the strain nor a history. Abaqus has nothing of "
                "the kind for UMAT."
            )
    outputs = {variable.name: variable for variable in model.outputs}
    for name in (stress, *states):
        if name and _type(outputs[name]) not in KINDS:
            raise DraftError(
                f"The state {name!r} is of type {outputs[name].type}: how DROT turns it is not "
                f"known. UMAT turns {', '.join(KINDS)}. Give the state in one of these, an "
                "orientation as the rotation matrix (R2), for example."
            )
    return Mapping(
        stress=stress,
        **given,
        energies={
            name: name for name in ENERGIES if name in outputs and size_of(outputs[name]) == 1
        },
        states=_slots(outputs[name] for name in states if name),
        parameters=_slots(model.parameters),
        unknown=[variable.name for variable in unknown],
    )


def _tangent(model: Model, stress: str, strain: str) -> tuple[str, str]:
    """The stress and the strain: a pair with a derivative."""
    stresses = _symmetric(model.outputs, stress, "stress")
    strains = _symmetric(model.inputs, strain, "strain")
    compiled = [(pair.output, pair.variable) for pair in model.derivatives]
    pairs = [pair for pair in compiled if pair[0] in stresses and pair[1] in strains]
    if not pairs:
        raise DraftError(
            "The artifact has no derivative of the stress with respect to the strain, which UMAT "
            f"must give Abaqus. Compile it with: neml2-compile -d {stresses[0]}:{strains[0]}; "
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
        if _type(variable) == "SR2" and not variable.sub_batch_shape
        if (variable.name == name if name else word in variable.name.lower())
        if "~" not in variable.name
    ]
    if not found:
        called = f"is called {name}" if name else f"has {word!r} in its name"
        raise DraftError(
            f"No {variables.kind} can be the {word}: a symmetric tensor (SR2) without sites that "
            f"{called}. There are: {', '.join(variables.names)}. Say which it is with --{word}."
        )
    return found


def _scalar(model: Model, name: str, usual: Sequence[str]) -> str:
    """The input `name`, or the one of a usual name; "" if there is none."""
    scalars = [variable.name for variable in model.inputs if size_of(variable) == 1]
    if name and name not in scalars:
        raise DraftError(f"The artifact has no scalar input {name!r}; it has {', '.join(scalars)}.")
    return name or next((scalar for scalar in usual if scalar in scalars), "")


def _type(variable: Variable) -> str:
    """Return the type of a variable, which older artifacts may not say."""
    shapes = {(): "Scalar", (3,): "Vec", (6,): "SR2", (3, 3): "R2"}
    return variable.type or shapes.get(variable.base_shape, "")


def size_of(variable: Variable) -> int:
    """How many numbers a variable has at one point."""
    return prod(variable.sub_batch_shape) * prod(variable.base_shape)


def kind_of(variable: Variable) -> str:
    """The kind of a variable in a mapping file; guess() refuses one of a type without a kind."""
    return KINDS[_type(variable)][0]


def _slots(variables: Iterator[Variable] | Sequence[Variable]) -> list[Slot]:
    """Lay variables one after another."""
    slots: list[Slot] = []
    for variable in variables:
        slots.append(Slot(variable, slots[-1].last + 1 if slots else 1))
    return slots


# ------------------------------------------------------------------------------------------------
# The file
# ------------------------------------------------------------------------------------------------


def _introduction(place: Path, mapping: Mapping, values: Sequence[float]) -> Iterator[str]:
    yield f"! {place.name}: which variable of the artifact is which argument of UMAT."
    yield "! Drafted by neml2_capi from the names; read it, and change what is not so. Then make a"
    yield "! library of both: neml2-capi plugin ARTIFACT --mapping FILE -o libNAME.so"
    yield "!"
    yield "! In the Abaqus input (without UNSYMM if the tangent is known to be symmetric):"
    yield "!"
    yield f"!   *MATERIAL, NAME={place.stem.upper()}"
    if mapping.nstatv:
        yield "!   *DEPVAR"
        yield f"!   {mapping.nstatv},"
    yield f"!   *USER MATERIAL, CONSTANTS={mapping.nprops or 1}, UNSYMM"
    for start in range(0, len(values), 8):
        yield "!   " + ", ".join(f"{value:.12g}" for value in values[start : start + 8])
    if not values:
        yield "!   0."
        yield "!"
        yield "! The one constant is there for Abaqus, and is not used."


def _layout(mapping: Mapping, stress_history: bool) -> Iterator[str]:
    if mapping.parameters:
        yield "!"
        yield "! PROPS, in place of the values that the artifact was compiled with:"
        yield "!"
        for slot in mapping.parameters:
            yield f"!   {_range(slot):10} {slot.variable.name}"
    if mapping.states:
        yield "!"
        yield "! STATEV, zero at the beginning unless *INITIAL CONDITIONS, TYPE=SOLUTION is given:"
        yield "!"
        for slot in mapping.states:
            kind, components = KINDS[_type(slot.variable)]
            sites = prod(slot.variable.sub_batch_shape)
            notes = [kind, components, f"{sites} sites" if sites > 1 else ""]
            text = "; ".join(filter(None, notes))
            yield f"!   {_range(slot):10} {slot.variable.name}: {text}"
    if stress_history:
        yield "!"
        yield "! In plane strain Abaqus does not keep the stresses 13 and 23. If the material is"
        yield "! so anisotropic that they are not zero, keep the whole stress, and add to *DEPVAR:"
        yield "!"
        kind = f"kind = 'symmetric', statev = {mapping.nstatv + 1}"
        yield f"!   &state name = {_quoted(mapping.stress)}, {kind} /"


def _groups(artifact: str, mapping: Mapping, host: str) -> Iterator[str]:
    yield ""
    yield "&material"
    yield f"  artifact = {_quoted(artifact)}  ! absolute, or relative to this file"
    yield f"  stress = {_quoted(mapping.stress)}"
    for key, meaning in (
        ("strain", "STRAN + DSTRAN"),
        ("time", "TIME(2) + DTIME"),
        ("temperature", "TEMP + DTEMP"),
    ):
        name = getattr(mapping, key)
        yield f"  {key} = {_quoted(name)}" + (f"  ! {meaning}" if name else "  ! none")
    for key, name in mapping.energies.items():
        yield f"  {key} = {_quoted(name)}  ! {ENERGIES[key]}"
    if host:
        yield f"  host = {_quoted(host)}"
    yield "/"
    for slot in mapping.states:
        kind = kind_of(slot.variable)
        name = _quoted(slot.variable.name)
        yield f"&state name = {name}, kind = '{kind}', statev = {slot.first} /"
    for slot in mapping.parameters:
        yield f"&parameter name = {_quoted(slot.variable.name)}, props = {slot.first} /"
    for name in mapping.unknown:
        yield ""
        yield f"! TO DO: what is the input {name}? If it is a predefined field of Abaqus, give its"
        yield "! number instead of 0; if a constant, write its value instead of predef: value = -1."
        yield "! If it is time or temperature, name it above, and delete this."
        yield f"&field name = {_quoted(name)}, predef = 0 /"


def _range(slot: Slot) -> str:
    return f"{slot.first}" if slot.first == slot.last else f"{slot.first} to {slot.last}"


def _quoted(text: str) -> str:
    """Quote a text as Fortran does."""
    return "'" + text.replace("'", "''") + "'"
