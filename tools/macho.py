"""Exports of a library for macOS: all but those with a prefix are hidden.

zig's linker knows no list of exports, and exports what the C++ run time inside has. Apple's linker
takes -exported_symbols_list. If local symbols are left out, it also leaves out their entries of the
table of indirect symbols, and what follows stands in wrong places.

    python3 tools/macho.py LIBRARY PREFIX...
"""

from __future__ import annotations

import hashlib
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

# Of <mach-o/loader.h>, <mach-o/nlist.h> and the code signatures of xnu.
_MAGIC, _HEADER = 0xFEEDFACF, 32
_SEGMENT, _SYMTAB, _DYSYMTAB, _UUID, _CODE_SIGNATURE = 0x19, 0x2, 0xB, 0x1B, 0x1D
_POINTERS, _LAZY_POINTERS, _STUBS = 6, 7, 8  # kinds of sections with indirect symbols
_LOCAL = 0x80000000
_DYLD_INFO = 0x80000022
_EXTERNAL, _SYMBOL = 0x01, 16
_WEAK_DEFINES, _BINDS_TO_WEAK = 0x8000, 0x10000
_CODE_DIRECTORY, _SHA256 = 0xFADE0C02, 2


def hide(library: Path, prefixes: Sequence[str]) -> None:
    """Hide all exports but those with the prefixes, and sign the library ad hoc again if it was.

    What is hidden is bound to the library itself: names that several libraries may share (weak
    ones), such as operator new, are not looked up in others.
    """
    data = bytearray(library.read_bytes())
    if struct.unpack_from("<I", data)[0] != _MAGIC:
        raise SystemExit(f"{library} is not a library for macOS of 64 bits")
    commands = dict(_commands(data))
    wanted = tuple(f"_{prefix}" for prefix in prefixes)
    _mend_indirect_symbols(data, commands[_SYMTAB], commands[_DYSYMTAB])
    _hide_symbols(data, commands[_SYMTAB], commands[_DYSYMTAB], wanted)
    info = commands[_DYLD_INFO]
    struct.pack_into("<2I", data, info + 24, 0, 0)  # where weak names are bound
    (flags,) = struct.unpack_from("<I", data, 24)
    struct.pack_into("<I", data, 24, flags & ~(_WEAK_DEFINES | _BINDS_TO_WEAK))
    (trie,) = struct.unpack_from("<I", data, info + 40)
    _cut_trie(data, trie, trie, "", wanted)
    signature = 0
    if _CODE_SIGNATURE in commands:
        (signature,) = struct.unpack_from("<I", data, commands[_CODE_SIGNATURE] + 8)
    _identify(data, commands[_UUID] + 8, signature or len(data))
    if signature:
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


def _mend_indirect_symbols(data: bytearray, table: int, dynamic: int) -> None:
    """Write an entry for each pointer: the number of a symbol, or the mark of a local one."""
    (symbols,) = struct.unpack_from("<I", data, table + 8)
    place, count = struct.unpack_from("<2I", data, dynamic + 56)
    written = struct.unpack_from(f"<{count}I", data, place)
    if _LOCAL in written:
        return  # mended already: a build may come by again
    sections = dict(_indirect_sections(data))
    stubs = written[: sections[_STUBS][2]]
    rest = iter(written[len(stubs) :])
    following, pointers = next(rest), []
    offset, _, length = sections[_POINTERS]
    for content in struct.unpack_from(f"<{length}Q", data, offset):
        # A pointer is what the library has itself, or 0 if another library has it.
        (value,) = struct.unpack_from("<Q", data, symbols + _SYMBOL * following + 8)
        is_symbol = value == content
        pointers.append(following if is_symbol else _LOCAL)
        following = next(rest, 0) if is_symbol else following
    for kind, entries in ((_STUBS, stubs), (_POINTERS, pointers), (_LAZY_POINTERS, stubs)):
        begin = place + 4 * sections[kind][1]
        struct.pack_into(f"<{len(entries)}I", data, begin, *entries)


def _indirect_sections(data: bytearray) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Yield the kind of each section, and its offset, first indirect symbol and their number."""
    for command, at in _commands(data):
        count = struct.unpack_from("<I", data, at + 64)[0] if command == _SEGMENT else 0
        for section in range(at + 72, at + 72 + 80 * count, 80):
            (size, offset) = struct.unpack_from("<QI", data, section + 40)
            flags, first, width = struct.unpack_from("<3I", data, section + 64)
            if (kind := flags & 0xFF) in (_POINTERS, _LAZY_POINTERS, _STUBS):
                yield kind, (offset, first, size // (width or 8))


def _hide_symbols(data: bytearray, table: int, dynamic: int, wanted: tuple[str, ...]) -> None:
    """Make symbols local; these stand before the others, and indirect symbols have their places."""
    symbols, _, names, _ = struct.unpack_from("<4I", data, table + 8)
    _, local, first, count = struct.unpack_from("<4I", data, dynamic + 8)
    indirect, indirect_count = struct.unpack_from("<2I", data, dynamic + 56)

    def entry(index: int) -> bytes:
        return bytes(data[symbols + _SYMBOL * index : symbols + _SYMBOL * (index + 1)])

    def is_ours(index: int) -> bool:
        begin = names + struct.unpack("<I", entry(index)[:4])[0]
        return data.startswith(tuple(name.encode() for name in wanted), begin)

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


def _cut_trie(data: bytearray, trie: int, node: int, name: str, wanted: tuple[str, ...]) -> None:
    """Drop the edges of a node of the exports that lead to no name that is wanted."""
    size, at = _uleb128(data, node)
    at += size
    edges, begin = [], at + 1
    at = begin
    for _ in range(data[begin - 1]):
        end = data.index(0, at)
        child, following = _uleb128(data, end + 1)
        edge = data[at:end].decode()
        is_wanted = (name + edge).startswith(wanted)
        if is_wanted or any(prefix.startswith(name + edge) for prefix in wanted):
            edges.append(bytes(data[at:following]))
            if not is_wanted:
                _cut_trie(data, trie, trie + child, name + edge, wanted)
        at = following
    kept = b"".join(edges)
    data[begin - 1] = len(edges)
    data[begin:at] = kept + bytes(at - begin - len(kept))


def _identify(data: bytearray, at: int, end: int) -> None:
    """Write an identity that follows from what is left: zig's is also of what was hidden."""
    data[at : at + 16] = bytes(16)
    identity = hashlib.sha256(data[:end]).digest()
    data[at : at + 16] = UUID(bytes=identity[:16], version=5).bytes


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
    hide(Path(sys.argv[1]), sys.argv[2:])
