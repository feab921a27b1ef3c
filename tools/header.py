"""A structured reading of the C headers: their sections, and what they declare, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

STABLE, EXPERIMENTAL = "neml2_capi.h", "neml2_capi_experimental.h"


@dataclass(frozen=True)
class Variable:
    """A parameter of a function, or a field of a structure."""

    type: str  # as C spells it before the name: "const char *"
    name: str
    is_array: bool = False

    @property
    def base(self) -> str:
        """The type without `const` and stars."""
        return re.sub(r"\bconst\b|\bstruct\b|\*", "", self.type).strip()

    @property
    def stars(self) -> int:
        return self.type.count("*")

    @property
    def size(self) -> int:
        """The bytes of a field."""
        return 4 if self.type == "int32_t" else 8


@dataclass(frozen=True)
class Part:
    """A section, or something that is declared, with its comment."""

    title: str  # of a section; the name of a function, a type or an enumeration
    text: str
    code: str = ""
    experimental: bool = False

    @property
    def is_section(self) -> bool:
        return not self.code

    @property
    def is_function(self) -> bool:
        return "(" in self.code and not self.code.startswith(("typedef", "#define", "enum"))

    @property
    def returns(self) -> str:
        return self.code.partition(self.title)[0].strip()

    @cached_property
    def parameters(self) -> list[Variable]:
        """The parameters of a function."""
        if not self.is_function:
            return []
        inside = " ".join(self.code.partition("(")[2].rpartition(")")[0].split())
        return [] if inside == "void" else [variable(text) for text in _COMMA.split(inside)]

    @cached_property
    def fields(self) -> list[Variable]:
        """The fields of a structure."""
        inside = re.sub(
            r"/\*.*?\*/", "", self.code.partition("{")[2].rpartition("}")[0], flags=re.S
        )
        lines = [] if self.code.startswith("enum") else inside.split(";")
        return [variable(" ".join(line.split())) for line in lines if line.strip()]

    @property
    def size(self) -> int:
        """The bytes of a structure, whose fields leave no gaps."""
        return sum(field.size for field in self.fields)

    @cached_property
    def enumerators(self) -> list[tuple[str, int]]:
        """Names and values, of enumerators."""
        return [(name, int(value)) for name, value in re.findall(r"(\w+) = (-?\d+)", self.code)]


def variable(text: str) -> Variable:
    """One declaration; a pointer to a function has the type "function"."""
    if found := re.search(r"\(\*(\w+)\)\(", text):
        return Variable("function", found[1])
    found = re.fullmatch(r"(.*?)(\w+)(\[\])?", text)
    assert found, text
    return Variable(found[1].strip(), found[2], found[3] is not None)


# Between two parameters: not within the parentheses of a pointer to a function.
_COMMA = re.compile(r", (?![^(]*\))")

# A comment between two rules, which begins a section; or one that documents what follows it.
_PART = re.compile(
    r"/\* -{9,}\n \* (?P<title>[^\n]+)\n(?P<about>(?: \*(?: [^\n]*)?\n)*?) \* -{9,} \*/"
    r"|/\*\*(?P<comment>(?:(?!\*/).)*)\*/\s*"
    r"(?P<code>#define [^\n]+|(?:enum|typedef|NEML2_CAPI)[^;{]*(?:\{[^}]*\})?[^;{}]*;)",
    re.DOTALL,
)


def contract(include: Path) -> list[Part]:
    """The sections and declarations of both headers."""
    return [
        part
        for name in (STABLE, EXPERIMENTAL)
        for part in parts_of((include / name).read_text(encoding="utf-8"), name == EXPERIMENTAL)
    ]


def parts_of(header: str, experimental: bool = False) -> list[Part]:
    """The sections and declarations of one header, in order."""
    return [_part(found, experimental) for found in _PART.finditer(header)]


def _part(found: re.Match[str], experimental: bool) -> Part:
    if found["title"]:
        return Part(found["title"], plain(found["about"]), experimental=experimental)
    # The arguments of a function go on below one another.
    code = found["code"].replace("NEML2_CAPI ", "").replace("\n" + " " * 11, "\n")
    return Part(_name(code), plain(found["comment"]), code, experimental)


def functions_of(parts: Iterable[Part]) -> list[str]:
    """The names of the functions."""
    return [part.title for part in parts if part.is_function]


def _name(code: str) -> str:
    """A function, a type (of functions too), an enumeration or a macro."""
    if code.startswith(("#define", "enum")):
        return code.split()[1]
    found = re.search(r"^typedef struct (\w+)", code) or re.search(
        r"\b(neml2_\w+)\s*(?:\(|;|\)\()", code
    )
    assert found, code
    return found[1]


def plain(comment: str) -> str:
    """The text of a comment, without its stars."""
    lines = [re.sub(r"^ ?\* ?", "", line).rstrip() for line in comment.splitlines()]
    return "\n".join(lines)
