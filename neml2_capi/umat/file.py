"""The mapping file, read and checked against the model."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from neml2_capi._document import Node, read_text
from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.inspection import STRAIN_MEASURES
from neml2_capi._ffi.variables import Variable, Variables
from neml2_capi.model import Model
from neml2_capi.umat.guess import type_of
from neml2_capi.umat.properties import (
    ARGUMENTS,
    ENERGIES,
    ENERGY_RULES,
    HOSTS,
    KEYS,
    NOT_PASSED,
    SYMMETRIES,
    Constant,
    Field,
    Mapping,
    Parameter,
    PluginError,
    Slot,
    State,
    size_of,
)


def read(file: str | os.PathLike[str], model: Model) -> Mapping:
    """Read a mapping file, which `neml2-capi umat` drafts, and check it against the model."""
    try:
        return _read(Path(file), model)
    except FatalError as error:
        raise PluginError(str(error)) from error


def _read(file: Path, model: Model) -> Mapping:
    groups = _groups(file)
    found = groups.get("material", [])
    if len(found) != 1:
        raise PluginError(
            f"{file}: the group &material is {'there twice' if found else 'missing'}."
        )
    texts: dict[str, Any] = {
        key: entry.text("a text in quotes").strip() or each.default
        for key, each in Mapping.texts().items()
        if (entry := found[0].find(key)) and entry.value is not None
    }
    fields = groups.get("field", [])
    mapping = Mapping(
        file.stem,
        **texts,
        states=list(_entries(State, groups.get("state", []), model.outputs)),
        parameters=list(_entries(Parameter, groups.get("parameter", []), model.parameters)),
        fields=list(_entries(Field, [g for g in fields if "value" not in g], model.inputs)),
        constants=[_constant(g, model.inputs) for g in fields if "value" in g],
    )
    named = [constant.name for constant in mapping.constants]
    for constant in list(mapping.constants):  # what is constant was so before
        before = f"{constant.name}~1"
        if before in model.inputs.names and before not in named:
            mapping.constants.append(Constant(model.inputs[before], constant.value))
    for option in groups.get("option", []):
        name = option.required("name", "the name of an option of a model").text("a text in quotes")
        value = option.required("value", "a number, or a text in quotes")
        is_text = isinstance(value.value, str)
        if name in mapping.options:
            raise PluginError(f"There are two groups of the option {name!r}.")
        mapping.options[name] = value.text("a text") if is_text else value.number()
    return mapping


S = TypeVar("S", bound=Slot)


def _entries(of: type[S], groups: Iterable[Node], variables: Variables) -> Iterator[S]:
    """The groups of one kind, of which a variable has one at most."""
    seen: set[str] = set()
    for group in groups:
        entry = of.read(group, variables)
        if entry.name in seen:
            raise PluginError(f"There are two groups of {entry.name!r}, with {of.array.lower()}.")
        seen.add(entry.name)
        yield entry


def _constant(group: Node, inputs: Variables) -> Constant:
    constant = Constant.read(group, inputs)
    if "predef" in group:
        raise PluginError(
            f"{constant.name!r} has a value and a place: either it is the constant of value, or "
            "the predefined field of predef."
        )
    return constant


_TEXTS = re.compile(r"""'[^'\n]*'|"[^"\n]*"|![^\n]*""")
_GROUPS = re.compile(r"""\s*(&\w+[^&/'"]*(/|&end)[^\n&]*\s*)*""", re.IGNORECASE)
_NAMES, _KEYS = re.compile(r"&\w+"), re.compile(r"\b(\w+)\s*=")
#: A count of repetitions, 3*1.0, and a key with a subscript, offset(2) = 1.0.
_COUNTS = re.compile(r"(?<![\d_])([\d_]+)\s*\*")
_SUBSCRIPTS = re.compile(r"\b(\w+)\s*\([^()]*\)\s*[=%]")
#: More values than a material has, which the parser writes out before anything is checked.
_MOST_REPEATED = 10_000


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
    bare = _TEXTS.sub("", text)
    # The parser passes over what is not ended, or not begun.
    if not _GROUPS.fullmatch(bare):
        raise PluginError(
            f"{file} is not a list of groups, each of which begins with & and ends with /. Texts "
            "are in quotes, and a comment begins with !."
        )
    _require_plain(file, bare)
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
    for name in Node(file, "", result).table(KEYS, "group"):
        for node in result[name]:
            node.table(sorted(KEYS[name]))
    return result


def _require_plain(file: Path, bare: str) -> None:
    """Raise PluginError for what the parser would pass over, or write out in more than memory."""
    for group in bare.split("&"):
        keys = Counter(key.lower() for key in _KEYS.findall(group.partition("/")[0]))
        if twice := [key for key, count in keys.items() if count > 1]:
            name = group.split(maxsplit=1)[0]
            raise PluginError(f"{file}: &{name} has {twice[0]} twice: leave one out.")
    if found := _SUBSCRIPTS.search(bare):
        raise PluginError(
            f"{file}: {_last(_NAMES, bare[: found.start()])}.{found[1]} has a subscript: write "
            "all its values in their order, with commas between them, and no subscript."
        )
    total = 0
    for found in _COUNTS.finditer(bare):
        digits = found[1].replace("_", "").lstrip("0") or "0"
        total += int(digits[:9])
        if total > _MOST_REPEATED:
            key = _last(_KEYS, bare[: found.start()])
            raise PluginError(
                f"{file}: {_last(_NAMES, bare[: found.start()])}.{key} repeats a value "
                f"{digits[:12]}{'...' if len(digits) > 12 else ''} times; expected at most "
                f"{_MOST_REPEATED} in a file. One number alone is the value of all components."
            )


def _last(pattern: re.Pattern[str], text: str) -> str:
    return str((pattern.findall(text) or ["?"])[-1])


def check(mapping: Mapping, model: Model) -> None:
    """Raise PluginError if an input has no argument or two, or an option is wrong, for example.

    The options of the mapping are set in the model.
    """
    if mapping.host and mapping.host not in HOSTS:
        raise PluginError(f"There is no host {mapping.host!r}; it can be {', '.join(HOSTS)}.")
    for key, names in (
        ("strain_measure", STRAIN_MEASURES),
        ("symmetry", SYMMETRIES),
        ("energies", ENERGY_RULES),
    ):
        if (name := getattr(mapping, key)) and name not in names:
            raise PluginError(f"There is no {key} {name!r}; it can be {', '.join(names)}.")
    if mapping.strain_measure and mapping.host in ("calculix", "kratos"):
        raise PluginError(
            f"The host {mapping.host} passes no deformation gradient that a strain measure needs: "
            "leave strain_measure out. CalculiX itself passes the logarithmic strain to "
            "@ABAQUSNL_."
        )
    for name, value in mapping.options.items():
        try:  # as the plug-in does
            model._engine.set_option(name, value)
        except FatalError as error:
            raise PluginError(f"&option: {error}") from error
    for key, variables, kind in (
        ("stress", model.outputs, "SR2"),
        ("strain", model.inputs, "SR2"),
        ("time", model.inputs, "Scalar"),
        ("temperature", model.inputs, "Scalar"),
    ):
        if (name := getattr(mapping, key)) in variables.names:
            _require_type(key, variables[name], kind)
    pair = (mapping.stress, mapping.strain)
    if pair not in {(d.output, d.variable) for d in model.derivatives}:
        raise PluginError(
            f"The artifact has no derivative of {pair[0]!r} by {pair[1]!r}, which hosts need. "
            f"Compile it with: -d {pair[0]}:{pair[1]}"
        )
    roles: dict[str, str] = {}
    for name, role in _roles(mapping):
        if name in roles and name in model.inputs.names:
            raise PluginError(
                f"The input {name!r} is {roles[name]} and {role}, of which one would count for "
                "nothing: leave one out."
            )
        roles[name] = role
    for key in ARGUMENTS:
        if (name := getattr(mapping, key)) and name not in model.inputs.names:
            raise PluginError(f"&material.{key}: {unknown_name('input', name, model.inputs.names)}")
    for name in model.inputs.names:
        if name not in roles:
            raise PluginError(
                f"The input {name!r} is not in the mapping. It can be strain, time or temperature "
                "of &material, a predefined field or a constant (&field), or the history of a "
                "&state."
            )
    for field in mapping.fields:
        if (size := size_of(field.variable)) > 1:
            raise PluginError(
                f"The input {field.name!r} has {size} numbers, and a predefined field has one: "
                "give the law an input for each component, or write a constant value instead of "
                "predef."
            )
    sizes = {variable.name: size_of(variable) for variable in model.outputs}
    for key in ENERGIES:
        name = getattr(mapping, key)
        if name and sizes.get(name) != 1:
            raise PluginError(f"The artifact has no output {name!r} of one value for {key}.")
        if name and mapping.energies:
            raise PluginError(
                f"Energies are integrated, and {key} is the output {name!r}: name one of both."
            )
    if (name := mapping.stored_energy) and name == mapping.dissipated_energy:
        raise PluginError(
            f"The output {name!r} is stored_energy and dissipated_energy: what is stored is not "
            "dissipated, so leave one out."
        )
    _require_passed(mapping, model)
    _owners(mapping.states)
    owners = _owners(mapping.parameters)
    if gap := next((n for n in range(1, mapping.nprops) if n not in owners), None):
        raise PluginError(
            f"PROPS({gap}) is of no parameter, and counts for nothing, though hosts must give it: "
            "let the places of parameters begin at 1, and follow one another."
        )


def _owners(slots: Iterable[Slot]) -> dict[int, str]:
    """The variable of each place that is taken in an array of the host."""
    owners: dict[int, str] = {}
    for slot in slots:
        for place in range(slot.first, slot.last + 1):
            if place in owners:
                raise PluginError(
                    f"The {slot.group}s {owners[place]!r} and {slot.name!r} share "
                    f"{slot.array}({place})."
                )
            owners[place] = slot.name
    return owners


def _require_passed(mapping: Mapping, model: Model) -> None:
    """Refuse what capi/plugin/umat.cpp would refuse in the first call of the host."""
    constant = "give it a constant value in the mapping (&field, value)"
    at_end = "use a law of the temperature at its end"
    before = f"{mapping.temperature}~1"
    inputs = [
        ("temperature", mapping.temperature, "the temperature", constant),
        ("temperature~1", before, "the temperature at the beginning of an increment", at_end),
        *(("predef", field.name, "a predefined field", constant) for field in mapping.fields),
    ]
    for key, name, what, instead in inputs:
        if key in NOT_PASSED.get(mapping.host, ()) and name in model.inputs.names:
            raise PluginError(
                f"The input {name!r} is {what}, which {mapping.host} does not pass: {instead}."
            )


def _require_type(key: str, variable: Variable, kind: str) -> None:
    if variable.sub_batch_shape or type_of(variable) != kind:
        shape = list(variable.point_shape)
        raise PluginError(
            f"{variable.name!r} cannot be the {key}: expected the type {kind} without sites; it is "
            f"of the type {type_of(variable)}, with the shape {shape} at a point. Name another one."
        )


def _roles(mapping: Mapping) -> Iterator[tuple[str, str]]:
    """Yield the name and the role of each input. A name of two roles comes twice."""
    given = [
        *((name, f"the {key}") for key in ARGUMENTS if (name := getattr(mapping, key))),
        *((field.name, "a field of predef") for field in mapping.fields),
    ]
    constants = [constant.name for constant in mapping.constants]
    yield from given
    yield from ((name, "a constant of value") for name in constants)
    for name, role in given:
        if f"{name}~1" not in constants:  # which may say what it was before
            yield f"{name}~1", f"{role} of before"
    kept = [state.name for state in mapping.states]
    yield from ((name, f"the first guess of the state {name!r}") for name in kept)
    for name in dict.fromkeys([mapping.stress, *kept]):
        yield f"{name}~1", f"the history of {name!r}"
