"""The properties of a mapping: what the groups of its file can have.

A property is declared here, once: how it is read and checked, what the page of hosts says of it,
and what a draft writes. `document()` passes it to the library, where capi/plugin/mapping.cpp reads
it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, TypeVar

from neml2_capi._document import Node, shortened
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.inspection import STRAIN_MEASURES
from neml2_capi._ffi.refusals import Refusal
from neml2_capi._ffi.variables import Variable, Variables

#: Inputs that are arguments of a host.
ARGUMENTS = ("strain", "time", "temperature")
#: Outputs that are energies per volume.
ENERGIES = ("stored_energy", "dissipated_energy")
#: How energies are found that the law does not give.
ENERGY_RULES = ("integrated",)
SYMMETRIES = ("isotropic", "orthotropic")
HOSTS = ("abaqus", "calculix", "kratos")
# Kinds of states, and how STATEV holds them, by type.
KINDS = {
    "Scalar": ("scalar", ""),
    "Vec": ("vector", "1, 2, 3"),
    "SR2": ("symmetric", "11, 22, 33, 12, 13, 23; shear not doubled"),
    "R2": ("tensor", "11, 12, 13, 21, 22, 23, 31, 32, 33"),
}
_TURNS = "how DROT turns it: scalar, vector, symmetric or tensor"
_SIZES = {"scalar": 1, "vector": 3, "symmetric": 6, "tensor": 9}
#: Inputs that hosts do not pass, as capi/plugin/hosts.cpp has it.
NOT_PASSED = {
    "calculix": ("temperature~1", "predef"),
    "kratos": ("temperature", "temperature~1", "predef"),
}
#: The longest array of a point: 8 MB, which no host keeps at each.
_MOST = 1_000_000


class PluginError(Refusal, ValueError):
    """There can be no plug-in of the artifact as it is, or the mapping is wrong."""


def size_of(variable: Variable) -> int:
    """How many numbers a variable has at one point."""
    return prod(variable.sub_batch_shape) * prod(variable.base_shape)


def quoted(text: str) -> str:
    """Quote a text as Fortran does."""
    return "'" + text.replace("'", "''") + "'"


# ------------------------------------------------------------------------------------------------
# How a property is read, from its place in a group, or None if it is not there
# ------------------------------------------------------------------------------------------------

Reader = Callable[[str, "Node | None", Variable], Any]


def _place(key: str, node: Node | None, variable: Variable) -> int:
    if node is None or node.value == 0:
        raise PluginError(f"{variable.name!r} needs a place, counted from 1: {key} = <a number>.")
    first = node.whole(f"the place of {variable.name!r}, counted from 1", 1)
    if first > _MOST:
        raise node.refuse(f"{first} is beyond all arrays of a point; expected at most {_MOST}")
    return first


def _kind(_: str, node: Node | None, variable: Variable) -> str:
    kind = node.text("a text in quotes") if node else "scalar"
    if _SIZES.get(kind) != prod(variable.base_shape):
        raise PluginError(
            f"The state {variable.name!r} has {prod(variable.base_shape)} values, and the kind "
            f"{kind!r}. The kind says {_TURNS}."
        )
    return kind


def _values(key: str, node: Node | None, variable: Variable) -> tuple[float, ...]:
    """One number, or as many as the variable has at a point."""
    if node is None:
        return ()
    size = size_of(variable)
    given = node.value if isinstance(node.value, list) else [node.value]
    try:
        numbers = [Node(node.file, "", each).number() for each in given]
    except FatalError:
        numbers = []
    if not numbers or len(given) not in (1, size):
        raise PluginError(
            f"The {key} of {variable.name!r} is {shortened(given)}; it must be {size} finite "
            f"{'number' if size == 1 else 'numbers'}."
        )
    return tuple(numbers) * (size if len(given) == 1 else 1)


def _declared(read: Reader, what: str, **default: Any) -> Any:
    return field(metadata={"read": read, "what": what}, **default)


# ------------------------------------------------------------------------------------------------
# Groups of one variable
# ------------------------------------------------------------------------------------------------

E = TypeVar("E", bound="Entry")


@dataclass(frozen=True)
class Entry:
    """A group of a variable, `name`, with its properties."""

    variable: Variable
    group: ClassVar[str]

    @property
    def name(self) -> str:
        return self.variable.name

    @classmethod
    def keys(cls) -> dict[str, dataclasses.Field[Any]]:
        return {each.name: each for each in dataclasses.fields(cls) if each.metadata}

    @classmethod
    def read(cls: type[E], group: Node, variables: Variables) -> E:
        given = group.required("name", f"which of the {variables.kind}s it is")
        variable = variables[given.choice(variables.names, variables.kind)]
        values = {
            key: each.metadata["read"](key, group.find(key), variable)
            for key, each in cls.keys().items()
        }
        return cls(variable, **values)

    def text(self) -> str:
        """The group, as a draft has it."""
        shown = [f"name = {quoted(self.name)}"]
        for key in self.keys():
            value = getattr(self, key)
            if isinstance(value, str):
                shown.append(f"{key} = {quoted(value)}")
            elif value != ():
                shown.append(f"{key} = {value}")
        return f"&{self.group} {', '.join(shown)} /"

    def document(self) -> dict[str, Any]:
        properties = {key: getattr(self, key) for key in self.keys()}
        return {"name": self.name, "size": size_of(self.variable), **properties}


@dataclass(frozen=True)
class Slot(Entry):
    """A variable that has a place in an array of the host, counted from 1."""

    array: ClassVar[str]

    @property
    def first(self) -> int:
        first: int = getattr(self, self.array.lower())
        return first

    @property
    def last(self) -> int:
        return self.first + size_of(self.variable) - 1

    @property
    def range(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True)
class State(Slot):
    """An output that the host keeps for the next increment."""

    group, array = "state", "STATEV"
    kind: str = _declared(_kind, _TURNS)
    statev: int = _declared(_place, "where it begins in STATEV, counted from 1")
    offset: tuple[float, ...] = _declared(
        _values,
        "the state is STATEV and this, as UMAT has it: its value where STATEV begins with zero",
        default=(),
    )


@dataclass(frozen=True)
class Parameter(Slot):
    """A parameter of the model."""

    group, array = "parameter", "PROPS"
    props: int = _declared(_place, "where it begins in PROPS, counted from 1")


@dataclass(frozen=True)
class Field(Slot):
    """An input that is a predefined field of the host."""

    group, array = "field", "PREDEF"
    predef: int = _declared(_place, "its number among the predefined fields, counted from 1")
    offset: tuple[float, ...] = _declared(
        _values,
        "the input is the field and this: 273.15 for Kelvins of Celsius",
        default=(),
    )


@dataclass(frozen=True)
class Constant(Entry):
    """An input that is the same at all points and times."""

    group = "field"
    value: tuple[float, ...] = _declared(
        _values,
        "instead of predef: the constant value, one number or one for each component, in NEML2's "
        "order and Mandel notation",
    )


ENTRIES: tuple[type[Entry], ...] = (State, Parameter, Field, Constant)


# ------------------------------------------------------------------------------------------------
# The mapping
# ------------------------------------------------------------------------------------------------


def _said(what: str, argument: str = "", *, default: str = "", drafted: bool = True) -> Any:
    """A text of &material, and the argument of UMAT; a draft has it always, or if there is one."""
    metadata = {"what": what, "argument": argument, "drafted": drafted}
    return field(default=default, metadata=metadata)


@dataclass
class Mapping:
    """Variables of an artifact by the arguments of a host; "" if there is none."""

    material: str = ""
    stress: str = _said("the output that is the stress", default="stress")
    strain: str = _said("the input that is the strain", "STRAN + DSTRAN", default="strain")
    time: str = _said("the input that is the time", "TIME(2) + DTIME")
    temperature: str = _said("the input that is the temperature", "TEMP + DTEMP")
    strain_measure: str = _said(
        f"{', '.join(STRAIN_MEASURES)}: around the law, for hosts that pass F; none by default",
        "DFGRD0, DFGRD1",
        drafted=False,
    )
    symmetry: str = _said(
        f"{' or '.join(SYMMETRIES)}: whether MGIS turns what it passes", drafted=False
    )
    stored_energy: str = _said("an output, per volume", "SSE", drafted=False)
    dissipated_energy: str = _said("an output, per volume", "SPD", drafted=False)
    energies: str = _said(
        "integrated: by the trapezoidal rule, with the elastic operator; by default as they are",
        "SSE, SPD",
        drafted=False,
    )
    host: str = _said(f"{', '.join(HOSTS)}; by default as it behaves", drafted=False)
    states: list[State] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    #: Inputs of which it is not known what they are: perhaps predefined fields.
    unknown: list[Variable] = field(default_factory=list)
    #: Place of its artifact in the artifacts of the library.
    begin: int = 0
    size: int = 0
    options: dict[str, float | str] = field(default_factory=dict)

    @classmethod
    def texts(cls) -> dict[str, dataclasses.Field[Any]]:
        """The properties of &material."""
        return {each.name: each for each in dataclasses.fields(cls) if each.metadata}

    @property
    def nstatv(self) -> int:
        return max((state.last for state in self.states), default=0)

    @property
    def nprops(self) -> int:
        return max((parameter.last for parameter in self.parameters), default=0)

    def text(self, artifact: str) -> Iterator[str]:
        """The groups of the mapping file."""
        yield "&material"
        yield f"  artifact = {quoted(artifact)}  ! absolute, or relative to this file"
        for key, each in self.texts().items():
            name, argument = getattr(self, key), each.metadata["argument"]
            note = argument and (f"  ! {argument}" if name else "  ! none")
            if name or each.metadata["drafted"]:
                yield f"  {key} = {quoted(name)}{note}"
        yield "/"
        for entry in (*self.states, *self.parameters, *self.fields, *self.constants):
            yield entry.text()

    def document(self) -> dict[str, Any]:
        """As JSON, for capi/plugin/mapping.cpp."""
        entries = ("states", "parameters", "fields", "constants")
        return {
            name: [entry.document() for entry in value] if name in entries else value
            for name, value in vars(self).items()
            if name != "unknown"
        }


def _keys() -> Iterator[tuple[str, str, str]]:
    yield "material", "artifact", "its folder, for a reader"
    for key, each in Mapping.texts().items():
        argument = each.metadata["argument"]
        yield "material", key, each.metadata["what"] + (argument and f": {argument}")
    for entry in ENTRIES:
        yield entry.group, "name", "the variable"
        for key, each in entry.keys().items():
            yield entry.group, key, each.metadata["what"]
    yield "option", "name", "an option of the model"
    yield "option", "value", "a number, or a text"


#: By the groups of the file, what a key says.
KEYS: dict[str, dict[str, str]] = {}
for _group, _key, _what in _keys():
    KEYS.setdefault(_group, {})[_key] = _what
