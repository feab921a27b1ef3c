"""Definitions in C, found in a text.

Kernels and the headers that they include are generated or formatted: a definition begins in the
first column, and a function ends with a brace there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

_WORD = re.compile(r"[A-Za-z_]\w*")
_TABLE = re.compile(r"\s*static const (\w+) (\w+)\[\] =\s*(\{[^}]*\});")
_BEGIN = re.compile(r"(INLINE|FUNCTION|static|typedef|const|#define)\b")


@dataclass(frozen=True)
class Table:
    """Constants that functions index."""

    type: str
    name: str
    values: str


@dataclass(frozen=True)
class Definition:
    """A function, a type or a macro with its text; tables and the comment before stand apart."""

    name: str
    text: str
    tables: tuple[Table, ...] = ()
    comment: str = ""

    @property
    def words(self) -> set[str]:
        return set(_WORD.findall(self.text))

    @property
    def is_macro(self) -> bool:
        return not self.text.startswith(("FUNCTION", "INLINE", "typedef"))

    def renamed(self, names: Mapping[str, str]) -> Definition:
        """The same with other words."""
        text = _WORD.sub(lambda m: names.get(m[0], m[0]), self.text)
        tables = tuple(replace(t, name=names.get(t.name, t.name)) for t in self.tables)
        return replace(self, name=names.get(self.name, self.name), text=text, tables=tables)

    def with_calls(self, names: Mapping[str, str]) -> Definition:
        """The same with other names for functions, in calls and where they are defined."""
        text = re.sub(rf"\b({'|'.join(names)})\(", lambda m: f"{names[m[1]]}(", self.text)
        return replace(self, name=names[self.name], text=text)


def chosen(text: str, single: bool) -> str:
    """A text without its conditions: those of floats are known, and all others do not hold.

    One on fused multiply-adds stays, by the name that the header has for it.
    """
    found: list[str] = []
    stack: list[bool | None] = []
    for line in text.splitlines():
        word = line.split(" ")[0]
        if word in ("#ifdef", "#ifndef", "#if"):
            known: bool | None = word == "#ifndef"
            if "NEML2_KERNEL_FLOAT" in line:
                known = single
            elif "__FMA__" in line:
                known = None
                found.append("#if NEML2_FUSED")
            stack.append(known)
        elif word == "#else":
            if stack[-1] is None:
                found.append(line)
            else:
                stack[-1] = not stack[-1]
        elif word == "#endif":
            if stack.pop() is None:
                found.append(line)
        elif all(known is not False for known in stack):
            found.append(line)
    return "\n".join(found)


def definitions(text: str) -> Iterator[Definition]:
    """The definitions of a text in their order, each with the comment right before it."""
    comment: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("/*"):
            comment = [line]
            while not comment[-1].rstrip().endswith("*/"):
                comment.append(next(lines))
        elif line.startswith("//"):
            comment.append(line)
        elif _BEGIN.match(line):
            body = [line]
            while not _ends(body):
                body.append(next(lines))
            yield replace(_definition("\n".join(body)), comment="\n".join(comment))
            comment = []
        else:
            comment = []


def _ends(body: Sequence[str]) -> bool:
    if body[0].startswith("#define"):
        return not body[-1].endswith("\\")
    if body[-1].startswith("}"):
        return True
    last = body[-1].rstrip()
    return (len(body) == 1 and last.endswith(("}", ";"))) or (
        body[0].startswith(("static const", "const")) and last.endswith(";")
    )


def _definition(text: str) -> Definition:
    text = re.sub(r"^static (?!const)", "FUNCTION ", text)
    if text.startswith("#define"):
        _, name, *value = text.split(None, 2)
        return Definition(name.split("(")[0], "".join(value).partition("/*")[0].strip())
    if text.startswith("typedef"):
        return Definition(re.findall(r"\w+", text)[-1], text)
    if text.startswith(("static const", "const")):
        table = _TABLE.match(text)
        return Definition(table[2], "", (Table(*table.groups()),)) if table else Definition("", "")
    head = text.split("(")[0]
    tables = tuple(Table(*found) for found in _TABLE.findall(text))
    text = _TABLE.sub("", text) if tables else text
    return Definition(head.split()[-1].lstrip("*"), text, tables)


def needed(roots: Iterable[str], known: Sequence[Definition]) -> list[Definition]:
    """The definitions that some names lead to, each behind what it calls."""
    place = {definition.name: n for n, definition in enumerate(known)}
    found: dict[str, Definition] = {}

    def add(name: str) -> None:
        definition = known[place[name]]
        for word in sorted(definition.words & place.keys() - {name}, key=place.__getitem__):
            if word not in found:
                add(word)
        found[name] = definition

    for root in roots:
        add(root)
    return list(found.values())
