"""Draft the mapping file by which a plug-in drives an artifact as a UMAT.

The command is `neml2-capi umat ARTIFACT`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path

import numpy as np

from neml2_capi.umat.guess import DraftError, guess, in_double, type_of
from neml2_capi.umat.properties import KINDS, Field, Mapping, quoted

__all__ = ["DraftError", "draft"]


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
    with in_double(path, DraftError) as model:
        mapping = guess(model, strain, stress, time, temperature, host)
        mapping.host = host
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
        *_groups(artifact, mapping),
    )
    return "\n".join(lines) + "\n"


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
        for parameter in mapping.parameters:
            yield f"!   {parameter.range:10} {parameter.name}"
    if mapping.states:
        yield "!"
        yield "! STATEV, zero at the beginning unless *INITIAL CONDITIONS, TYPE=SOLUTION is given:"
        yield "!"
        for slot in mapping.states:
            kind, components = KINDS[type_of(slot.variable)]
            sites = prod(slot.variable.sub_batch_shape)
            notes = [kind, components, f"{sites} sites" if sites > 1 else ""]
            text = "; ".join(filter(None, notes))
            yield f"!   {slot.range:10} {slot.variable.name}: {text}"
        if any(state.kind == "symmetric" for state in mapping.states):
            yield "!"
            yield "! The order is UMAT's; VUMAT and Kratos have 11, 22, 33, 12, 23, 13. An offset"
            yield "! is in UMAT's for all. The value of a &field is in NEML2's order and Mandel"
            yield "! notation: 11, 22, 33, 23, 13, 12, shears times sqrt(2)."
    if stress_history:
        yield "!"
        yield "! In plane strain Abaqus does not keep the stresses 13 and 23: the job ends if they"
        yield "! are not zero. For such a material keep the whole stress, and add 6 to *DEPVAR:"
        yield "!"
        kind = f"kind = 'symmetric', statev = {mapping.nstatv + 1}"
        yield f"!   &state name = {quoted(mapping.stress)}, {kind} /"


def _groups(artifact: str, mapping: Mapping) -> Iterator[str]:
    yield ""
    yield from mapping.text(artifact)
    for variable in mapping.unknown:
        yield ""
        what = f"what is the input {variable.name}? If it is a predefined field of Abaqus, give its"
        yield f"! TO DO: {what}"
        yield "! number instead of 0; if a constant, write its value instead of predef: value = -1."
        yield "! If it is time or temperature, name it above, and delete this."
        yield Field(variable, predef=0).text()
