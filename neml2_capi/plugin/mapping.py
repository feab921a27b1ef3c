"""Mapping of an artifact's variables to the arguments of a host, for the library of a plug-in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from neml2_capi._document import Node, read_text
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.variables import Variables
from neml2_capi.model import Model
from neml2_capi.umat import ENERGIES, KINDS, Slot, guess, kind_of, size_of

HOSTS = ("abaqus", "calculix", "kratos")

_NUMBERS = {kind: number for number, (kind, _) in enumerate(KINDS.values())}
#: The longest array of a host: an integer of Fortran counts it.
_MOST = 2**31 - 1000
_SIZES = {"scalar": 1, "vector": 3, "symmetric": 6, "tensor": 9}


class PluginError(ValueError):
    """There can be no plug-in of the artifact as it is, or the mapping is wrong."""


@dataclass(frozen=True)
class Place:
    """A variable, and where it begins in an array of the host, counted from 1."""

    name: str
    first: int
    size: int
    kind: str = "scalar"

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": _NUMBERS[self.kind],
            "first": self.first - 1,
            "size": self.size,
        }


@dataclass(frozen=True)
class Constant:
    """An input that is the same at all points and times."""

    name: str
    values: list[float]

    def document(self) -> dict[str, Any]:
        return vars(self)


@dataclass
class HostMapping:
    """All of a mapping file, with the sizes of the variables."""

    material: str
    strain: str
    stress: str
    time: str
    temperature: str
    host: str = ""
    stored_energy: str = ""
    dissipated_energy: str = ""
    #: Place of its artifact in the artifacts of the library.
    begin: int = 0
    size: int = 0
    states: list[Place] = field(default_factory=list)
    parameters: list[Place] = field(default_factory=list)
    fields: list[Place] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    options: dict[str, float] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As JSON; capi/plugin/mapping.cpp reads it."""
        lists = ("states", "parameters", "fields", "constants")
        return {
            name: [entry.document() for entry in value] if name in lists else value
            for name, value in vars(self).items()
        }


def guessed(model: Model, material: str) -> HostMapping:
    """The mapping as `neml2-capi umat` would draft it."""
    draft = guess(model)
    if draft.unknown:
        raise PluginError(
            f"What is the input {draft.unknown[0]!r}? Draft a mapping file with neml2-capi umat, "
            "say in it what it is, and give it with --mapping."
        )
    return HostMapping(
        material,
        draft.strain,
        draft.stress,
        draft.time,
        draft.temperature,
        stored_energy=draft.energies.get("stored_energy", ""),
        dissipated_energy=draft.energies.get("dissipated_energy", ""),
        states=[_place(state, kind_of(state.variable)) for state in draft.states],
        parameters=[_place(parameter) for parameter in draft.parameters],
    )


def _place(slot: Slot, kind: str = "scalar") -> Place:
    return Place(slot.variable.name, slot.first, size_of(slot.variable), kind)


def read(file: str | os.PathLike[str], model: Model) -> HostMapping:
    """Read a mapping file, which `neml2-capi umat` drafts, and check it against the model."""
    try:
        return _read(Path(file), model)
    except FatalError as error:
        raise PluginError(str(error)) from error


def _read(file: Path, model: Model) -> HostMapping:
    groups = _groups(file)
    found = groups.pop("material", [])
    if len(found) != 1:
        raise PluginError(
            f"{file}: the group &material is {'there twice' if found else 'missing'}."
        )
    material = found[0]

    def said(key: str, default: str = "") -> str:
        entry = material.find(key)
        if entry is None or entry.value is None:
            return default
        return entry.text("a text in quotes").strip() or default

    mapping = HostMapping(
        file.stem,
        said("strain", "strain"),
        said("stress", "stress"),
        said("time"),
        said("temperature"),
        said("host"),
        said("stored_energy"),
        said("dissipated_energy"),
    )
    constants = [group for group in groups.get("field", []) if "value" in group]
    groups["field"] = [group for group in groups.get("field", []) if "value" not in group]
    mapping.constants = [_constant(group, model.inputs) for group in constants]
    named = [constant.name for constant in mapping.constants]
    mapping.constants += [  # what is constant was so before
        Constant(f"{constant.name}~1", constant.values)
        for constant in mapping.constants
        if f"{constant.name}~1" in model.inputs.names and f"{constant.name}~1" not in named
    ]
    for group, kind, place, variables in (
        ("state", "states", "statev", model.outputs),
        ("parameter", "parameters", "props", model.parameters),
        ("field", "fields", "predef", model.inputs),
    ):
        getattr(mapping, kind).extend(_places(groups.pop(group, []), place, variables))
    for option in groups.pop("option", []):
        name = option.required("name", "the name of an option of a model").text("a text in quotes")
        mapping.options[name] = option.required("value", "a number").number()
    return mapping


_TEXTS = re.compile(r"""'[^'\n]*'|"[^"\n]*"|![^\n]*""")
_GROUPS = re.compile(r"""\s*(&\w+[^&/'"]*(/|&end)[^\n&]*\s*)*""", re.IGNORECASE)
# Names that a group may have in it.
_KEYS = {
    "material": {
        *("artifact", "strain", "stress", "time", "temperature", "host"),
        *ENERGIES,
    },
    "state": {"name", "kind", "statev"},
    "parameter": {"name", "props"},
    "field": {"name", "predef", "value"},
    "option": {"name", "value"},
}


def _groups(file: Path) -> dict[str, list[Node]]:
    """The groups of a file by name, as tables."""
    try:
        import f90nml
    except ImportError as error:
        raise PluginError(
            "A mapping file is read by f90nml: pip install 'neml2_capi[cli]'"
        ) from error
    if not file.exists():
        raise PluginError(f"There is no {file}. To draft one: neml2-capi umat ARTIFACT")
    text = read_text(file)
    # The parser passes over what is not ended, or not begun.
    if not _GROUPS.fullmatch(_TEXTS.sub("", text)):
        raise PluginError(
            f"{file} is not a list of groups, each of which begins with & and ends with /. Texts "
            "are in quotes, and a comment begins with !."
        )
    try:
        parsed = f90nml.reads(text).items()
    except Exception as error:  # whatever its parser falls over
        raise PluginError(
            f"{file} is not a list of groups as Fortran reads them: "
            f"{error or type(error).__name__}."
        ) from error
    result: dict[str, list[Node]] = {}
    for name, several in parsed:
        for group in several if isinstance(several, list) else [several]:
            nodes = result.setdefault(name, [])
            number = f"[{len(nodes)}]" if nodes else ""
            nodes.append(Node(file, f"&{name}{number}", dict(group)))
    for name, groups in result.items():
        if name not in _KEYS:
            raise PluginError(f"{file}: there is no group &{name}; it can be &{', &'.join(_KEYS)}.")
        for unknown in {key for group in groups for key in group.value} - _KEYS[name]:
            raise PluginError(
                f"{file}: &{name} has no {unknown}; it can have {', '.join(sorted(_KEYS[name]))}."
            )
    return result


def _places(groups: Iterable[Node], key: str, variables: Variables) -> Iterator[Place]:
    seen: set[str] = set()
    for group in groups:
        name = group.required("name", f"the name of a {variables.kind}").text("a text in quotes")
        if name not in variables.names:
            raise PluginError(
                f"The artifact has no {variables.kind} {name!r}; it has "
                f"{', '.join(variables.names) or 'none'}."
            )
        if name in seen:
            raise PluginError(f"There are two groups of {name!r}, with {key}.")
        seen.add(name)
        place = group.find(key)
        if place is None or place.value == 0:
            raise PluginError(f"{name!r} needs a place, counted from 1: {key} = <a number>.")
        first = place.whole(f"the place of {name!r}, counted from 1", 1)
        if first > _MOST:
            raise place.refuse(f"{first} is beyond all arrays; expected at most {_MOST}")
        variable = variables[variables.names.index(name)]
        kind = group["kind"].text("a text in quotes") if "kind" in group else "scalar"
        if kind not in _SIZES or (key == "statev" and prod(variable.base_shape) != _SIZES[kind]):
            raise PluginError(
                f"The state {name!r} has {prod(variable.base_shape)} values, and the kind "
                f"{kind!r}. The kind says how DROT turns it: scalar, vector, symmetric or tensor."
            )
        yield _place(Slot(variable, first), kind)


def _constant(group: Node, inputs: Variables) -> Constant:
    """An input with a value in the mapping: one number, or as many as it has at a point."""
    name = group.required("name", "the name of an input").text("a text in quotes")
    if name not in inputs.names:
        raise PluginError(
            f"The artifact has no input {name!r}; it has {', '.join(inputs.names) or 'none'}."
        )
    if "predef" in group:
        raise PluginError(
            f"{name!r} has a value and a place: either it is the constant of value, or the "
            "predefined field of predef."
        )
    size = size_of(inputs[inputs.names.index(name)])
    value = group["value"].value
    given = value if isinstance(value, list) else [value]
    try:
        numbers = [Node(group.file, "", each).number() for each in given]
    except FatalError:
        numbers = []
    if not numbers or len(given) not in (1, size):
        raise PluginError(
            f"The value of {name!r} is {given}; it must be {size} finite "
            f"{'number' if size == 1 else 'numbers'}."
        )
    return Constant(name, numbers * (size if len(given) == 1 else 1))


def check(mapping: HostMapping, model: Model) -> None:
    """Raise PluginError if an input has no argument, or two states share one."""
    if mapping.host and mapping.host not in HOSTS:
        raise PluginError(f"There is no host {mapping.host!r}; it can be {', '.join(HOSTS)}.")
    pair = (mapping.stress, mapping.strain)
    if pair not in {(d.output, d.variable) for d in model.derivatives}:
        raise PluginError(
            f"The artifact has no derivative of {pair[0]!r} by {pair[1]!r}, which hosts need. "
            f"Compile it with: -d {pair[0]}:{pair[1]}"
        )
    places = [mapping.strain, mapping.time, mapping.temperature]
    places += [place.name for place in (*mapping.states, *mapping.fields)]
    given = [*places, *(constant.name for constant in mapping.constants)]
    given += [f"{name}~1" for name in (*given, mapping.stress)]
    for name in model.inputs.names:
        if name not in given:
            raise PluginError(
                f"The input {name!r} is not in the mapping. It can be strain, time or temperature "
                "of &material, a predefined field or a constant (&field), or the history of a "
                "&state."
            )
    for index, constant in enumerate(mapping.constants):
        others = [*places, *(other.name for other in mapping.constants[:index])]
        if constant.name in others:
            raise PluginError(
                f"{constant.name!r} is a constant, and something else in the mapping."
            )
    sizes = {variable.name: size_of(variable) for variable in model.outputs}
    for key in ENERGIES:
        name = getattr(mapping, key)
        if name and sizes.get(name) != 1:
            raise PluginError(f"The artifact has no output {name!r} of one value for {key}.")
    taken: dict[int, str] = {}
    for state in mapping.states:
        for place in range(state.first, state.first + state.size):
            if place in taken:
                raise PluginError(
                    f"The states {taken[place]!r} and {state.name!r} share STATEV({place})."
                )
            taken[place] = state.name
