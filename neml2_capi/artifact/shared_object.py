"""What a shared object asks of the system, read from its bytes."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

#: By the number in the header.
_MACHINES = {62: "x86_64", 183: "aarch64"}

_SYMBOLS, _NEEDS = 11, 0x6FFFFFFE
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
        return content[begin : content.index(0, begin)].decode()

    undefined: list[str] = []
    libraries: list[str] = []
    versions: list[str] = []
    for _, kind, _, _, offset, length, link, entries, *_ in sections:
        if kind == _SYMBOLS:
            for at in range(offset + 24, offset + length, 24):
                name, _, _, section = struct.unpack_from("<IBBH", content, at)
                if section == 0:
                    undefined.append(text(link, name))
        elif kind == 6:  # the dynamic section
            for at in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<qQ", content, at)
                if tag == 1:
                    libraries.append(text(link, value))
        elif kind == _NEEDS:
            at = offset
            for _ in range(entries):
                _, wanted, _, first, following = struct.unpack_from("<HHIII", content, at)
                place = at + first
                for _ in range(wanted):
                    _, _, _, name, then = struct.unpack_from("<IHHII", content, place)
                    versions.append(text(link, name))
                    place += then
                at += following
    known = _MACHINES.get(machine, f"ELF machine {machine}")
    return SharedObject(known, libraries, newest(iter(versions)), undefined)
