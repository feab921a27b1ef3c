"""Sections of an object for Windows, named so that lld folds functions of equal code.

GNU's way gives each function sections of its own name, .text$NAME and, for exceptions, .pdata$NAME
and .xdata$NAME, which belong to it by name. lld compares the names of sections before their bytes.
Here all are .text, .pdata and .xdata, as of Microsoft's compiler, and belong to it by number.

    python3 tools/coff.py OBJECT
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

# Of Microsoft's PE format, "COFF File Header" to "Auxiliary Format 5: Section Definitions".
_MACHINES = (0x8664, 0xAA64)
_HEADER, _SECTION, _SYMBOL = 20, 40, 18
_STATIC, _ANY, _ASSOCIATIVE = 3, 2, 5
_KINDS = (b".text", b".pdata", b".xdata")


def rename(data: bytearray) -> None:
    """Rename the sections of functions, and tie their tables for exceptions to them."""
    machine, count = struct.unpack_from("<2H", data)
    if machine not in _MACHINES:
        return  # a precompiled header
    table, symbols = struct.unpack_from("<2I", data, 8)
    names = [_name(data, _HEADER + _SECTION * i, table + _SYMBOL * symbols) for i in range(count)]
    functions = {owner: i + 1 for i, (kind, owner) in enumerate(names) if kind == b".text"}
    at, end = table, table + _SYMBOL * symbols
    while at < end:
        value, number = struct.unpack_from("<Ih", data, at + 8)
        defines = data[at + 16] == _STATIC and data[at + 17] == 1 and value == 0 and number > 0
        kind, owner = names[number - 1] if defines else (b"", b"")
        if owner and kind != b".text" and data[at + _SYMBOL + 14] == _ANY:
            struct.pack_into("<HB", data, at + _SYMBOL + 12, functions[owner], _ASSOCIATIVE)
        at += _SYMBOL * (1 + data[at + 17])
    for i, (kind, owner) in enumerate(names):
        if owner:
            begin = _HEADER + _SECTION * i
            data[begin : begin + 8] = kind.ljust(8, b"\0")


def _name(data: bytearray, section: int, strings: int) -> tuple[bytes, bytes]:
    """Kind of a section, and the function that it is of; nothing for other sections."""
    name = bytes(data[section : section + 8]).rstrip(b"\0")
    if name[:1] == b"/":  # a place in the table of strings
        begin = strings + int(name[1:])
        name = bytes(data[begin : data.index(0, begin)])
    kind, _, owner = name.partition(b"$")
    return (kind, owner) if kind in _KINDS else (b"", b"")


if __name__ == "__main__":
    _file = Path(sys.argv[1])
    _data = bytearray(_file.read_bytes())
    rename(_data)
    _file.write_bytes(_data)
