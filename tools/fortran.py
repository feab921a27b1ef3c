"""What neml2_capi.f90 has from the header, and from its own procedures.

Four regions are generated: constants; structures; interfaces of the C functions; and procedures
that follow from one by hand. A procedure of the kind real64 has siblings of other kinds, as far as
a generic name lists them. A function `try_x`, which returns a status, has the subroutine `x`, with
`stat` and `errmsg`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from textwrap import wrap

from tools.header import Part, Variable
from tools.regions import by_hand, fill

_NUMBERS = {
    "int32_t": "integer(int32)",
    "int64_t": "integer(int64)",
    "double": "real(real64)",
    "char": "character(kind=c_char)",
}
_KINDS = ("real32", "int64", "int32")


def with_generated(source: str, parts: Iterable[Part]) -> str:
    """neml2_capi.f90 with its generated regions renewed."""
    parts = list(parts)
    source = fill(source, "constants", list(_constants(parts))[1:])
    source = fill(source, "structures", list(_structures(parts))[1:])
    source = fill(source, "interfaces", list(_interfaces(parts)))
    return fill(source, "procedures", list(_procedures(by_hand(source)))[1:])


def _constants(parts: list[Part]) -> Iterator[str]:
    for part in parts:
        if part.enumerators:
            text = re.sub(r"\bNEML2_\w+", lambda found: found[0].lower(), part.text)
            yield from ("", *(f"  ! {line}" for line in wrap(" ".join(text.split()), 116)))
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
                    yield f"    {_NUMBERS[field.type]} :: {field.name} = {initial}"
            yield f"  end type {name}"


def _interfaces(parts: list[Part]) -> Iterator[str]:
    structures = {part.title for part in parts if part.fields}
    for part in parts:
        if not part.is_function:
            continue
        name = "c_" + part.title.removeprefix("neml2_")
        is_subroutine = part.returns == "void"
        result = "type(c_ptr)" if "*" in part.returns else _NUMBERS.get(part.returns)
        kind = "subroutine" if is_subroutine else "function"
        head = f"{name}({', '.join(parameter.name for parameter in part.parameters)})"
        head = kind + " " + head if is_subroutine else f"{result} {kind} {head}"
        yield from _wrapped(f'    {head} bind(c, name="{part.title}")')
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
        return f"{_NUMBERS[parameter.type]}, value", ""
    if levels == 1 and parameter.base in structures:
        own = "c_" + parameter.base.removeprefix("neml2_")
        return (
            f"type({own}), intent({'in' if 'const' in parameter.type else 'inout'}), optional",
            "",
        )
    if levels == 1 and parameter.base not in _NUMBERS:  # a handle, or memory of any type
        return "type(c_ptr), value", ""
    is_read = parameter.type.endswith("const") if levels > 1 else "const" in parameter.type
    type_ = "type(c_ptr)" if levels > 1 else _NUMBERS[parameter.base]
    is_array = parameter.is_array or (levels == 1 and parameter.base == "char")
    return f"{type_}, intent({'in' if is_read else 'inout'}), optional", "(*)" * is_array


@dataclass(frozen=True)
class _Procedure:
    """A procedure of the module, by hand, with the comment before it."""

    comment: str
    head: str  # "integer(int32) function"
    name: str
    arguments: list[str]
    body: str  # the lines after the first statement, with the last

    def declarations(self) -> Iterator[tuple[str, list[str]]]:
        """The attributes of arguments, and their names, in order."""
        for attributes, names in re.findall(r"^    (\S.*?) :: (.+)$", self.body, re.MULTILINE):
            declared = [name.strip() for name in re.split(r",(?![^(]*\))", names)]
            if declared[0].partition("(")[0] in self.arguments:
                yield attributes, declared


_PROCEDURE = re.compile(
    r"(?P<comment>(?:^  ![^\n]*\n)*)"
    r"^  (?P<head>(?!end\b|!)[\w(), ]*?(?:subroutine|function)) (?P<name>\w+)"
    r"\((?P<arguments>[^)]*)\)(?P<body>.*?^  end (?:subroutine|function) (?P=name)\n)",
    re.DOTALL | re.MULTILINE,
)


def _procedures(source: str) -> Iterator[str]:
    """What follows from the procedures that stand after `contains`."""
    before, _, after = source.partition("\ncontains\n")
    named = set(re.findall(r"\w+", before))
    for found in _PROCEDURE.finditer(after):
        arguments = re.findall(r"\w+", found["arguments"])
        given = _Procedure(found["comment"], found["head"], found["name"], arguments, found["body"])
        if given.name.startswith("try_"):
            yield from ("", *_with_status(given))
        if given.name.endswith("_real64"):
            for kind in _KINDS:
                sibling = given.name.replace("real64", kind)
                if sibling in named and not re.search(rf"(subroutine|function) {sibling}\(", after):
                    yield from ("", *_of_kind(found[0].removeprefix(given.comment), kind))


def _of_kind(procedure: str, kind: str) -> list[str]:
    """A procedure of the kind real64 for another one."""
    number = f"{'real' if kind.startswith('real') else 'integer'}({kind})"
    text = procedure.replace("real(real64)", number).replace("neml2_float64", _dtype(kind))
    return text.replace("real64", kind).splitlines()


def _dtype(kind: str) -> str:
    return "neml2_" + kind.replace("real", "float")


def _with_status(given: _Procedure) -> Iterator[str]:
    """The subroutine that passes its arguments on to a function that returns a status."""
    name = given.name.removeprefix("try_")
    declared = list(given.declarations())
    optional = {n.partition("(")[0] for a, names in declared if "optional" in a for n in names}
    arguments = [argument for argument in given.arguments if argument not in optional]
    arguments += ["stat", "errmsg", *(a for a in given.arguments if a in optional)]
    yield from given.comment.splitlines()
    yield from _wrapped(f"  subroutine {name}({', '.join(arguments)})")
    for attributes, names in declared:
        yield f"    {attributes} :: {', '.join(names)}"
    yield "    integer(int32), intent(out), optional :: stat"
    yield "    character(:), allocatable, intent(out), optional :: errmsg"
    yield "    integer(int32) :: outcome"
    yield from _wrapped(f"    outcome = {given.name}({', '.join(given.arguments)})")
    yield "    if (present(stat)) stat = outcome"
    yield "    if (present(errmsg)) call tell(outcome, errmsg)"
    yield f"  end subroutine {name}"


def _wrapped(statement: str, width: int = 120) -> Iterator[str]:
    """A statement, on as many lines as it needs."""
    while len(statement) > width:
        place = statement.rindex(" ", 0, width - 1)
        yield statement[:place] + " &"
        statement = "      " + statement[place + 1 :]
    yield statement
