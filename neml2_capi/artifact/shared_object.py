"""What a shared object asks of the system, read from its bytes."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

#: By the number in the header.
_MACHINES = {62: "x86_64", 183: "aarch64"}

_SYMBOLS, _DYNAMIC, _NEEDS = 11, 6, 0x6FFFFFFE
# As the library's limits of names and versions.
_LONGEST, _MOST = 1 << 16, 4096
_VERSION = re.compile(r"([A-Z]+)_(\d+(?:\.\d+)*)")


@dataclass(frozen=True)
class SharedObject:
    """What an object says of itself."""

    machine: str = ""
    #: The names of the libraries that it opens.
    libraries: list[str] = field(default_factory=list)
    #: The newest version of each kind that it asks for: {"GLIBC": "2.34", "GLIBCXX": "3.4.30"}.
    versions: dict[str, str] = field(default_factory=dict)
    #: The names that others must define.
    undefined: list[str] = field(default_factory=list)


def read_object(content: bytes) -> SharedObject:
    """What stands in the tables of an ELF file. One that is damaged says nothing."""
    try:
        return _read(content)
    except (struct.error, IndexError, ValueError):
        return SharedObject()


def newest(versions: Iterator[str]) -> dict[str, str]:
    """Of each kind the greatest: of GLIBC_2.2.5 and GLIBC_2.34 the latter."""
    greatest: dict[str, tuple[int, ...]] = {}
    for version in versions:
        if match := _VERSION.fullmatch(version):
            number = tuple(map(int, match[2].split(".")))
            greatest[match[1]] = max(greatest.get(match[1], ()), number)
    return {kind: ".".join(map(str, number)) for kind, number in greatest.items()}


def _read(content: bytes) -> SharedObject:
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an ELF file of 64 bits")
    (machine,) = struct.unpack_from("<H", content, 18)
    (start,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, start + i * size) for i in range(count)]

    def text(strings: int, name: int) -> str:
        begin = sections[strings][4] + name
        return content[begin : content.index(0, begin, begin + _LONGEST)].decode()

    undefined: list[str] = []
    libraries: list[str] = []
    versions: list[str] = []
    # One of each kind is read: tables that overlap could be as many as the file has bytes.
    tables = {section[1]: section for section in reversed(sections)}
    if found := tables.get(_SYMBOLS):
        for at in range(found[4] + 24, found[4] + found[5], 24):
            name, _, _, section = struct.unpack_from("<IBBH", content, at)
            if section == 0:
                undefined.append(text(found[6], name))
    if found := tables.get(_DYNAMIC):
        for at in range(found[4], found[4] + found[5], 16):
            tag, value = struct.unpack_from("<qQ", content, at)
            if tag == 1 and len(libraries) < _MOST:
                libraries.append(text(found[6], value))
    if found := tables.get(_NEEDS):
        for name in islice(_needed(content, found[4]), _MOST):
            versions.append(text(found[6], name))
    known = _MACHINES.get(machine, f"ELF machine {machine}")
    return SharedObject(known, libraries, newest(iter(versions)), undefined)


def _needed(content: bytes, at: int) -> Iterator[int]:
    """Where the names of versions stand, as the dynamic loader walks them."""
    for _ in range(_MOST):
        _, _, _, first, following = struct.unpack_from("<HHIII", content, at)
        place = at + first
        for _ in range(_MOST):
            _, _, _, name, then = struct.unpack_from("<IHHII", content, place)
            yield name
            if then == 0:
                break
            place += then
        if following == 0:
            break
        at += following
