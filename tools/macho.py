"""Exports of a library for macOS: all but those with a prefix are hidden.

zig's linker knows no list of exports, and exports what the C++ run time inside has. Apple's linker
takes -exported_symbols_list.

    python3 tools/macho.py LIBRARY PREFIX
"""

from __future__ import annotations

import hashlib
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

# Of <mach-o/loader.h>, <mach-o/nlist.h> and the code signatures of xnu.
_MAGIC, _HEADER = 0xFEEDFACF, 32
_SYMTAB, _DYSYMTAB, _CODE_SIGNATURE = 0x2, 0xB, 0x1D
_DYLD_INFO = 0x80000022
_EXTERNAL, _SYMBOL = 0x01, 16
_WEAK_DEFINES, _BINDS_TO_WEAK = 0x8000, 0x10000
_CODE_DIRECTORY, _SHA256 = 0xFADE0C02, 2


def hide(library: Path, prefix: str) -> None:
    """Hide all exports but those with a prefix, and sign the library ad hoc again if it was.

    What is hidden is bound to the library itself: names that several libraries may share (weak
    ones), such as operator new, are not looked up in others.
    """
    data = bytearray(library.read_bytes())
    if struct.unpack_from("<I", data)[0] != _MAGIC:
        raise SystemExit(f"{library} is not a library for macOS of 64 bits")
    commands = dict(_commands(data))
    _hide_symbols(data, commands[_SYMTAB], commands[_DYSYMTAB], prefix)
    info = commands[_DYLD_INFO]
    struct.pack_into("<2I", data, info + 24, 0, 0)  # where weak names are bound
    (flags,) = struct.unpack_from("<I", data, 24)
    struct.pack_into("<I", data, 24, flags & ~(_WEAK_DEFINES | _BINDS_TO_WEAK))
    (trie,) = struct.unpack_from("<I", data, info + 40)
    _cut_trie(data, trie, trie, "", prefix)
    if _CODE_SIGNATURE in commands:
        (signature,) = struct.unpack_from("<I", data, commands[_CODE_SIGNATURE] + 8)
        _sign(data, signature)
    library.write_bytes(data)


def _commands(data: bytearray) -> Iterator[tuple[int, int]]:
    """Load commands, and where they begin."""
    (count,) = struct.unpack_from("<I", data, 16)
    at = _HEADER
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        yield command, at
        at += size


def _hide_symbols(data: bytearray, table: int, dynamic: int, prefix: str) -> None:
    """Make symbols local; these stand before the others, and indirect symbols have their places."""
    symbols, _, names, _ = struct.unpack_from("<4I", data, table + 8)
    _, local, first, count = struct.unpack_from("<4I", data, dynamic + 8)
    indirect, indirect_count = struct.unpack_from("<2I", data, dynamic + 56)

    def entry(index: int) -> bytes:
        return bytes(data[symbols + _SYMBOL * index : symbols + _SYMBOL * (index + 1)])

    def is_ours(index: int) -> bool:
        begin = names + struct.unpack("<I", entry(index)[:4])[0]
        return data.startswith(f"_{prefix}".encode(), begin)

    order = sorted(range(first, first + count), key=is_ours)  # which keeps the order of both
    entries = [entry(index) for index in order]
    hidden = sum(not is_ours(index) for index in order)
    for place, content in enumerate(entries):
        changed = bytearray(content)
        if place < hidden:
            changed[4] &= ~_EXTERNAL
        at = symbols + _SYMBOL * (first + place)
        data[at : at + _SYMBOL] = changed
    struct.pack_into("<3I", data, dynamic + 12, local + hidden, first + hidden, count - hidden)
    places = {index: first + place for place, index in enumerate(order)}
    for at in range(indirect, indirect + 4 * indirect_count, 4):
        (index,) = struct.unpack_from("<I", data, at)
        struct.pack_into("<I", data, at, places.get(index, index))


def _cut_trie(data: bytearray, trie: int, node: int, name: str, prefix: str) -> None:
    """Drop the edges of a node of the exports that lead to no name with the prefix."""
    size, at = _uleb128(data, node)
    at += size
    edges, begin = [], at + 1
    at = begin
    for _ in range(data[begin - 1]):
        end = data.index(0, at)
        child, following = _uleb128(data, end + 1)
        edge = data[at:end].decode()
        wanted = f"_{prefix}"
        if (name + edge).startswith(wanted) or wanted.startswith(name + edge):
            edges.append(bytes(data[at:following]))
            if not (name + edge).startswith(wanted):
                _cut_trie(data, trie, trie + child, name + edge, prefix)
        at = following
    kept = b"".join(edges)
    data[begin - 1] = len(edges)
    data[begin:at] = kept + bytes(at - begin - len(kept))


def _uleb128(data: bytearray, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def _sign(data: bytearray, signature: int) -> None:
    """Renew the hashes of pages in a signature."""
    (count,) = struct.unpack_from(">I", data, signature + 8)
    for blob in range(count):
        (offset,) = struct.unpack_from(">I", data, signature + 16 + 8 * blob)
        directory = signature + offset
        if struct.unpack_from(">I", data, directory)[0] != _CODE_DIRECTORY:
            continue
        hashes, _, _, pages, limit = struct.unpack_from(">5I", data, directory + 16)
        size, kind, _, page = struct.unpack_from("4B", data, directory + 36)
        if kind != _SHA256:
            raise SystemExit(f"the signature has hashes of kind {kind}; SHA-256 was expected")
        for index in range(pages):
            begin = index << page
            content = data[begin : min(begin + (1 << page), limit)]
            at = directory + hashes + size * index
            data[at : at + size] = hashlib.sha256(content).digest()


if __name__ == "__main__":
    hide(Path(sys.argv[1]), sys.argv[2])
