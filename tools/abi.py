"""What follows from the headers for the ABI: its description in tests/abi, and the version script.

Each line of declarations.txt has the release in which the declaration last changed; one that was
removed keeps a line, until the next release. A line of the release under way must be told by
CHANGELOG, if the function, the structure or the enumerator stands by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.header import Part

_REMOVED = "removed "


def declarations(parts: Iterable[Part]) -> list[str]:
    """One line for each function, enumerator, and field of a structure with its offset."""
    lines: list[str] = []
    for part in parts:
        if part.is_function:
            code = " ".join(part.code.split()).rstrip(";")
            lines.append(re.sub(r" (\**)(\w+)\[\]", r" \1*\2", code))  # an array is a pointer
        lines += [f"{name} = {value}" for name, value in part.enumerators]
        offset = 0
        for field in part.fields:
            lines.append(f"{part.title}.{field.name} at {offset}: {field.type}")
            offset += field.size
        if part.fields:
            lines.append(f"{part.title} of {part.size} bytes")
    return sorted(lines, key=name_of)


def name_of(declaration: str) -> str:
    """The function, enumerator or structure that a line is about."""
    found = re.search(r"\b(neml2_\w+)\(|\b(\w+)(?: = |\.| of )", declaration)
    return (found[1] or found[2]) if found else declaration.removeprefix(_REMOVED)


def described(parts: Iterable[Part], before: str, release: str) -> str:
    """The description, from the one before: what is new, changed or gone is of this release."""
    since = dict(_entries(before))
    now = declarations(parts)
    names = {name_of(line) for line in now}
    gone = {
        _REMOVED + name_of(line)
        for line, version in since.items()
        if name_of(line) not in names and (version == release or not line.startswith(_REMOVED))
    }
    entries = {line: since.get(line, release) for line in [*now, *gone]}
    return "".join(f"{entries[line]} {line}\n" for line in sorted(entries, key=name_of))


def experimental(parts: Iterable[Part]) -> set[str]:
    """Names that may change in any release: functions, types and enumerators."""
    return {
        name
        for part in parts
        if part.experimental
        for name in (part.title, *(name for name, _ in part.enumerators))
    }


def version_script(parts: Iterable[Part], description: str) -> str:
    """The exports, each under the version of the ABI that it came with, or last changed with.

    So the dynamic loader refuses a program that needs a later library, and says what it lacks.
    """
    parts = list(parts)
    since = {name_of(line): version for line, version in _entries(description)}
    changing = experimental(parts)
    nodes: dict[str, list[str]] = {}
    for part in parts:
        if part.is_function:
            major, minor = since[part.title].split(".")[:2] if part.title in since else ("1", "0")
            version = "1.0" if major == "0" else f"{major}.{minor}"
            kind = "NEML2_EXPERIMENTAL" if part.title in changing else "NEML2"
            nodes.setdefault(f"{kind}_{version}", []).append(part.title)
    text, before = _SCRIPT, ""
    for node, names in sorted(nodes.items(), key=lambda item: ("EXPERIMENTAL" in item[0], item[0])):
        exports = "".join(f"    {name};\n" for name in sorted(names))
        hidden = "" if before else "  local: *;\n"
        text += f"{node} {{\n  global:\n{exports}{hidden}}}{before};\n"
        before = f" {node}"
    return text


_SCRIPT = """\
/* Exports of libneml2_capi: the functions that its two C headers declare, and nothing else.
 * A program needs the versions of the functions that it calls.
 * Generated from the headers by `python3 build.py generate`. */
"""


def untold(description: str, changelog: str, release: str) -> list[str]:
    """What changed in this release without a word in its section of CHANGELOG."""
    section = re.search(rf"^## {re.escape(release)}\b.*?(?=^## |\Z)", changelog, re.M | re.S)
    told = set(re.findall(r"\w+", section[0])) if section else set()
    changed = {name_of(line) for line, version in _entries(description) if version == release}
    return sorted(changed - told)


def undeclared(parts: Iterable[Part], sources: Iterable[Path]) -> list[str]:
    """Functions of the library that are exported by their name, and in no header."""
    declared = {part.title for part in parts if part.is_function}
    pattern = re.compile(r"^(?:void|int32_t|int64_t|const char\*) (neml2_\w+)\(", re.MULTILINE)
    defined = {name for path in sources for name in pattern.findall(path.read_text("utf-8"))}
    return sorted(defined ^ declared)


def _entries(description: str) -> Iterator[tuple[str, str]]:
    """Declarations with their releases."""
    for line in description.splitlines():
        release, _, declaration = line.partition(" ")
        yield declaration, release
