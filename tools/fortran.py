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
    procedure,
    row_lines,
    rows_of,
    wrapped,
)
from tools.header import Part, Variable
from tools.regions import fill, sections

C_LAYER, MODULE, EXPERIMENTAL = (f"neml2_capi{name}.f90" for name in ("_c", "", "_experimental"))


def generated(include: Path, parts: list[Part]) -> Iterator[tuple[Path, str]]:
    """The Fortran files with what follows from the headers."""
    stable = [part for part in parts if not part.experimental]
    yield include / C_LAYER, _c_layer(stable)
    for name, own in ((MODULE, stable), (EXPERIMENTAL, [p for p in parts if p.experimental])):
        source = (include / name).read_text(encoding="utf-8")
        yield include / name, _renewed(source, parts, own)


_C_LAYER = """\
! The constants, structures and functions of neml2_capi.h, for neml2_capi.f90: compile this first.
! If a function takes an address, an argument that is absent is NULL.
! Generated from the header by `python3 build.py generate`.
module neml2_capi_c
  use, intrinsic :: iso_c_binding, only: &
    c_char, c_funptr, c_null_ptr, c_ptr, c_size_t, &
    int32 => c_int32_t, int64 => c_int64_t, real64 => c_double
  implicit none(type, external)
  public
{declarations}

  interface
    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
    end function
{interfaces}
  end interface
end module neml2_capi_c
"""


def _c_layer(parts: list[Part]) -> str:
    return _C_LAYER.format(
        declarations="\n".join((*_constants(parts), *_structures(parts))),
        interfaces="\n".join(_interfaces(parts)),
    )


def _renewed(source: str, parts: list[Part], own: list[Part]) -> str:
    """A file with its generated regions renewed; `own` are the parts that it declares."""
    types = re.findall(r"^  type, extends\(object\) :: (\w+)", source, re.MULTILINE)
    head, contains, after = source.partition("\ncontains\n")
    for section, inside, text in sections(after):
        if section == "public":
            continue
        lines = list(_assignments(types)) if section == "handles" else []
        lines += _procedures(rows_of(inside), parts, text)
        after = fill(after, section, lines[1:])
    named = [*types, *re.findall(r"^  end (?:subroutine|function) (neml2_\w+)", after, re.M)]
    if "begin generated: constants" in head:
        head = fill(head, "constants", list(_constants(own))[1:])
        head = fill(head, "structures", list(_structures(own))[1:])
        head = fill(head, "interfaces", list(_interfaces(own, _structure_names(parts))))
    else:
        named += [name.lower() for part in own for name, _ in part.enumerators]
    for type_ in [*types, "neml2_operator_call"]:
        if f"begin generated: {type_}\n" in head:
            head = fill(head, type_, list(_members(type_, after)))
    lines = [f"  public :: {line.rstrip(',')}" for line in wrap(", ".join(named), 106)]
    return fill(head + contains + after, "public", lines)


def _structure_names(parts: list[Part]) -> set[str]:
    return {part.title for part in parts if part.fields}


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


def _interfaces(parts: list[Part], structures: set[str] | None = None) -> Iterator[str]:
    structures = structures or _structure_names(parts)
    for part in parts:
        if not part.is_function:
            continue
        name = "c_" + part.title.removeprefix("neml2_")
        is_subroutine = part.returns == "void"
        result = "type(c_ptr)" if "*" in part.returns else NUMBERS.get(part.returns)
        kind = "subroutine" if is_subroutine else "function"
        head = f"{name}({', '.join(parameter.name for parameter in part.parameters)})"
        head = kind + " " + head if is_subroutine else f"{result} {kind} {head}"
        yield from wrapped(f'    {head} bind(c, name="{part.title}")')
        yield "      import"
        declared: dict[str, list[str]] = {}
        for parameter in part.parameters:
            attributes, shape = _dummy(parameter, structures)
            declared.setdefault(attributes, []).append(parameter.name + shape)
        yield from (f"      {kind} :: {', '.join(names)}" for kind, names in declared.items())
        yield f"    end {kind}"


def _dummy(parameter: Variable, structures: set[str]) -> tuple[str, str]:
    """The type of a dummy argument with its attributes, and its shape."""
    levels = parameter.stars + parameter.is_array
    if parameter.type == "function" or parameter.type.endswith("_fn"):
        return "type(c_funptr), value", ""
    if levels == 0:
        return f"{NUMBERS[parameter.type]}, value", ""
    if levels == 1 and parameter.base in structures:
        own = "c_" + parameter.base.removeprefix("neml2_")
        return (
            f"type({own}), intent({'in' if 'const' in parameter.type else 'inout'}), optional",
            "",
        )
    if levels == 1 and parameter.base not in NUMBERS:  # a handle, or memory of any type
        return "type(c_ptr), value", ""
    is_read = parameter.type.endswith("const") if levels > 1 else "const" in parameter.type
    type_ = "type(c_ptr)" if levels > 1 else NUMBERS[parameter.base]
    is_array = parameter.is_array or (levels == 1 and parameter.base == "char")
    return f"{type_}, intent({'in' if is_read else 'inout'}), optional", "(*)" * is_array


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
        yield from ("", *row.comment, *row_lines(row))
        if row.function == "also":
            yield from _siblings(row, by_hand)
        elif row.function == "bind":
            yield from binding(row)
        elif "neml2_" + row.function in named:
            yield from procedure(row, named)
        else:
            raise ValueError(f"neml2_{row.function} is in no header: rename it in '!= {row.text}'")


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
