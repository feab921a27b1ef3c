"""What the Fortran modules have from the headers, and from their own rows and procedures.

neml2_capi_c.f90 is generated: constants, structures and interfaces of the C functions. So are, in
the other files: in each section the procedures that follow from a function of the headers, as rows
in the section say, and the procedures that a type has. A procedure `x_real64` that is written by
hand has siblings of other kinds, if the row `x: also(...)` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import wrap

from tools.fortran_procedures import (
    NUMBERS,
    Row,
    binding,
    commented,
    declared,
    procedure,
    rows_of,
    wrapped,
)
from tools.header import Part, Variable
from tools.regions import fill, sections

C_LAYER, MODULE, EXPERIMENTAL = (f"neml2_capi{name}.f90" for name in ("_c", "", "_experimental"))


def generated(include: Path, parts: list[Part]) -> Iterator[tuple[Path, str]]:
    """The Fortran files with what follows from the headers."""
    for name in (C_LAYER, MODULE, EXPERIMENTAL):
        own = [part for part in parts if part.experimental == (name == EXPERIMENTAL)]
        source = (include / name).read_text(encoding="utf-8")
        yield include / name, _renewed(source, parts, own)


def _renewed(source: str, parts: list[Part], own: list[Part]) -> str:
    """A file with its generated regions renewed; `own` are the parts that it declares."""
    head, contains, after = source.partition("\ncontains\n")
    types = re.findall(r"^  type, extends\(object\) :: (\w+)", head, re.MULTILINE)
    for section, inside, text in sections(after):
        lines = list(_assignments(types)) if section == "handles" else []
        lines += _procedures(rows_of(inside), parts, text)
        after = fill(after, section, lines[1:])
    regions = [name for name, _, _ in sections(head)]
    named = [*types, *re.findall(r"^  end (?:subroutine|function) (neml2_\w+)", after, re.M)]
    if "constants" not in regions:
        named += [name.lower() for part in own for name, _ in part.enumerators]
    structures = {part.title for part in parts if part.fields}
    lines_of = {
        "constants": list(_constants(own))[1:],
        "structures": list(_structures(own))[1:],
        "interfaces": list(_interfaces(own, structures)),
    }
    for region in regions:
        if region != "public":
            head = fill(head, region, lines_of.get(region) or list(_members(region, after)))
    lines = [f"  public :: {line.rstrip(',')}" for line in wrap(", ".join(named), 106)]
    return fill(head + contains + after, "public", lines) if named else head


def _constants(parts: list[Part]) -> Iterator[str]:
    for part in parts:
        if part.enumerators:
            yield from ("", *commented(part.text))
        for name, value in part.enumerators:
            yield f"  integer(int32), parameter, public :: {name.lower()} = {value}"


def _structures(parts: list[Part]) -> Iterator[str]:
    for part in parts:
        if part.fields:
            name = "c_" + part.title.removeprefix("neml2_")
            yield from ("", f"  type, bind(c) :: {name}")
            for field in part.fields:
                if field.stars:
                    yield f"    type(c_ptr) :: {field.name} = c_null_ptr"
                else:
                    initial = part.size if field.name == "size" else 0
                    yield f"    {NUMBERS[field.type]} :: {field.name} = {initial}"
            yield f"  end type {name}"


def _interfaces(parts: list[Part], structures: set[str]) -> Iterator[str]:
    for part in parts:
        if not part.is_function:
            continue
        name = "c_" + part.title.removeprefix("neml2_")
        result = "type(c_ptr)" if "*" in part.returns else NUMBERS.get(part.returns)
        kind = "function" if result else "subroutine"
        head = f"{result} {kind}" if result else kind
        names = ", ".join(parameter.name for parameter in part.parameters)
        yield from wrapped(f'    {head} {name}({names}) bind(c, name="{part.title}")')
        yield "      import"
        yield from declared((_dummy(one, structures) for one in part.parameters), "      ")
        yield f"    end {kind}"


def _dummy(parameter: Variable, structures: set[str]) -> tuple[str, str]:
    """The type of a dummy argument with its attributes, and its name and shape."""
    name, levels = parameter.name, parameter.stars + parameter.is_array
    if parameter.type == "function" or parameter.type.endswith("_fn"):
        return "type(c_funptr), value", name
    if levels == 0:
        return f"{NUMBERS[parameter.type]}, value", name
    is_read = parameter.type.endswith("const") if levels > 1 else "const" in parameter.type
    attributes = f"intent({'in' if is_read else 'inout'}), optional"
    if levels == 1 and parameter.base in structures:
        return f"type(c_{parameter.base.removeprefix('neml2_')}), {attributes}", name
    if levels == 1 and parameter.base not in NUMBERS:  # a handle, or memory of any type
        return "type(c_ptr), value", name
    is_array = parameter.is_array or (levels == 1 and parameter.base == "char")
    type_ = "type(c_ptr)" if levels > 1 else NUMBERS[parameter.base]
    return f"{type_}, {attributes}", name + "(*)" * is_array


def _assignments(types: list[str]) -> Iterator[str]:
    """What `b = a` does: another name for the same object."""
    for type_ in types:
        name = f"{type_.removeprefix('neml2_')}_assign"
        yield from ("", f"  impure elemental subroutine {name}(left, right)")
        yield f"    class({type_}), intent(inout) :: left"
        yield f"    class({type_}), intent(in) :: right"
        yield from ("    call share(left, right)", f"  end subroutine {name}")


def _procedures(rows: Iterable[Row], parts: list[Part], by_hand: str) -> Iterator[str]:
    """The rows of a section, each with its procedures; `by_hand` are those that have siblings."""
    named = {part.title: part for part in parts}
    for row in rows:
        yield from ("", *row.lines)
        if row.function == "also":
            yield from _siblings(row, by_hand)
        elif row.function == "bind":
            yield from binding(row)
        elif "neml2_" + row.function in named:
            yield from procedure(row, named)
        else:
            raise ValueError(
                f"neml2_{row.function} is in no header: rename it in '{row.lines[-1]}'"
            )


def _siblings(row: Row, by_hand: str) -> Iterator[str]:
    """The procedures of other kinds than the one by hand."""
    for found in _PROCEDURE.finditer(by_hand):
        base, _, kind = found["name"].rpartition("_")
        for other in row.values if base == row.name and kind in ("real64", "int64") else []:
            yield from ("", *_of_kind(found["code"], kind, other).splitlines())


_PROCEDURE = re.compile(
    r"^(?P<code>  (?!end\b|!)[\w(), ]*?(?:subroutine|function) (?P<name>\w+)\("
    r".*?^  end (?:subroutine|function) (?P=name)\n)",
    re.DOTALL | re.MULTILINE,
)


def _of_kind(procedure: str, kind: str, other: str) -> str:
    """A procedure for another kind of number."""
    numbers = {"real64": "real", "real32": "real", "int64": "integer", "int32": "integer"}
    text = procedure.replace(f"{numbers[kind]}({kind})", f"{numbers[other]}({other})")
    own, wanted = (f"neml2_{each}".replace("real", "float") for each in (kind, other))
    return re.sub(rf"(?<=\w_){kind}\b", other, text.replace(own, wanted))


# What tells apart the procedures of one generic name.
_SUFFIX = re.compile(r"_(real64|real32|int64|int32|number|text|tensors?|logical)$")


def _members(type_: str, procedures: str) -> Iterator[str]:
    """The procedures that a type has: `model_x` is `x`, `x_real64` is one of the generic `x`."""
    short = type_.split("_")[1] + "_"
    plain: list[str] = []
    generic: dict[str, list[str]] = {}
    head = r"^  [\w ]*(?:subroutine|function) (\w+)\((?:self|left)\b[^)]*\)[^\n]*\n"
    for found in re.finditer(rf"{head}    class\({type_}\)", procedures, re.MULTILINE):
        name = found[1]
        if name == short + "assign":
            generic["assignment(=)"] = [name]
        elif name.startswith(short):
            plain.append(name)
        elif suffix := _SUFFIX.search(name):
            generic.setdefault(name[: suffix.start()], []).append(name)
    yield from (f"    procedure :: {name.removeprefix(short)} => {name}" for name in plain)
    for name, specific in generic.items():
        yield from wrapped(f"    generic :: {name} => {', '.join(specific)}")
    for specific in generic.values():
        yield from wrapped(f"    procedure, private :: {', '.join(specific)}")
