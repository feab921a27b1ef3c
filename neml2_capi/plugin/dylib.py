"""Add a segment to a library for macOS, which the loader maps with the rest of it.

The segment stands before __LINKEDIT, the last one, which moves. Nothing but load commands knows the
places in it, and the order that Apple's tools want stays. Then the file is signed again.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from uuid import UUID

from neml2_capi.plugin.signature import signature, size_of_signature
from neml2_capi.plugin.symbols import long_double
from neml2_capi.plugin.trie import address_of, names_of, trie_of

# Constants of <mach-o/loader.h>.
_HEADER = struct.Struct("<8I")
_SEGMENT = struct.Struct("<2I16s4Q4I")
_SECTION = struct.Struct("<16s16s2Q8I")
_MAGIC, _X86_64 = 0xFEEDFACF, 0x1000007
_SEGMENT_64, _SYMTAB, _DYSYMTAB, _ID, _UUID, _SIGNATURE = 0x19, 0x2, 0xB, 0xD, 0x1B, 0x1D
_DYLD_INFO, _FUNCTION_STARTS, _DATA_IN_CODE = 0x80000022, 0x26, 0x29
#: Where each load command has places in __LINKEDIT, and the place of the exports.
_PLACES = {_SYMTAB: (8, 16), _DYSYMTAB: (56,), _DYLD_INFO: (8, 16, 24, 32, 40)}
_PLACES |= {_FUNCTION_STARTS: (8,), _DATA_IN_CODE: (8,), _SIGNATURE: (8,)}
_EXPORTS = 40
_READ = 1
#: The largest pages of the processors that there are kernels for.
_PAGE_BITS = 14
_PAGE = 1 << _PAGE_BITS
#: The segment that capi/plugin/payload.cpp looks for.
SEGMENT, SECTION = b"__NEML2", b"__artifact"


def with_segment(
    library: bytes, content: bytes, name: str, numbers: Mapping[str, float] | None = None
) -> bytes:
    """Return a library of one processor with `content` in it, read-only in memory, and signed.

    Each of `numbers` is exported by its name, as a long double. A program that is linked with the
    library looks for it by `name` in its own folders (@rpath).
    """
    header = list(_HEADER.unpack_from(library.ljust(_HEADER.size)))
    commands = _commands(library, header) if header[0] == _MAGIC else []
    named = [bytes(command[8:24]).rstrip(b"\0") for command in commands]
    if b"__LINKEDIT" not in named:
        raise ValueError("not a library for macOS of 64 bits")
    last = named.index(b"__LINKEDIT")
    link = list(_SEGMENT.unpack(commands[last]))
    address, offset = link[3], link[5]
    begin, length = struct.unpack_from("<2I", _of_kind(commands, _DYLD_INFO), _EXPORTS)
    exports = names_of(library[begin : begin + length])
    for symbol, number in (numbers or {}).items():
        content += bytes(-len(content) % 16)
        exports[f"_{symbol}"] = address_of(address + len(content))
        content += long_double(62, number) if header[1] == _X86_64 else struct.pack("<d", number)
    trie = trie_of(exports)
    size = _up(len(content))
    # Strings are the last table, and a signature follows them at once.
    end = sum(struct.unpack_from("<2I", _of_kind(commands, _SYMTAB), _PLACES[_SYMTAB][1]))

    # The places of tables in __LINKEDIT, all before the signature, move.
    places = [(c, at) for c in commands for at in _PLACES.get(_kind(c), ())]
    following = [place for c, at in places if (place := _word(c, at)) > begin]
    grown = len(trie) - (min(following) - begin)
    for command, at in places:
        if place := _word(command, at):
            struct.pack_into("<I", command, at, place + size + (grown if place > begin else 0))
    struct.pack_into("<I", _of_kind(commands, _DYLD_INFO), _EXPORTS + 4, len(trie))
    signed = [command for command in commands if _kind(command) == _SIGNATURE]
    if not signed:
        signed = [bytearray(struct.pack("<4I", _SIGNATURE, 16, 0, 0))]
        commands += signed
    tables = library[offset:begin] + trie + library[min(following) : end]
    tables += bytes(-len(tables) % 16)

    own = (SEGMENT, address, size, offset, size, _READ, _READ, 1, 0)
    segment = _SEGMENT.pack(_SEGMENT_64, _SEGMENT.size + _SECTION.size, *own)
    segment += _SECTION.pack(SECTION, SEGMENT, address, len(content), offset, 4, *[0] * 6)
    commands.insert(last, bytearray(segment))
    identity = hashlib.sha256(library + content).digest()
    _of_kind(commands, _UUID)[8:] = UUID(bytes=identity[:16], version=5).bytes
    _rename(_of_kind(commands, _ID), name)

    limit = offset + size + len(tables)
    count = size_of_signature(limit, name)
    struct.pack_into("<2I", signed[0], 8, limit, count)
    link[3], link[5] = address + size, offset + size
    link[6] = len(tables) + count
    link[4] = _up(link[6])
    commands[last + 1][:] = _SEGMENT.pack(*link)
    file = bytearray(library[:offset] + content + bytes(size - len(content)) + tables)
    text = commands[named.index(b"__TEXT")]
    _write(file, header, commands)
    return bytes(file) + signature(bytes(file), name, struct.unpack_from("<2Q", text, 40))


def universal(libraries: Sequence[bytes]) -> bytes:
    """Return a file of libraries for several processors; ValueError if two are for one."""
    if len(libraries) == 1:
        return libraries[0]
    kinds = [_HEADER.unpack_from(library)[1:3] for library in libraries]
    if len(set(kinds)) != len(kinds):
        raise ValueError("two libraries for one processor")
    result = struct.pack(">2I", 0xCAFEBABE, len(libraries))
    place = _PAGE
    for kind, library in zip(kinds, libraries, strict=True):
        result += struct.pack(">5I", *kind, place, len(library), _PAGE_BITS)
        place = _up(place + len(library))
    for library in libraries:
        result += bytes(-len(result) % _PAGE) + library
    return result


def _commands(library: bytes, header: Sequence[int]) -> list[bytearray]:
    """The load commands of a library."""
    found, place = [], _HEADER.size
    for _ in range(header[4]):
        (size,) = struct.unpack_from("<I", library, place + 4)
        if not 8 <= size <= len(library) - place:
            raise ValueError("a load command without an end")
        found.append(bytearray(library[place : place + size]))
        place += size
    return found


def _write(file: bytearray, header: list[int], commands: Sequence[bytearray]) -> None:
    """Write the load commands into a file; ValueError if what follows leaves too little room."""
    content = b"".join(commands)
    starts = [
        _word(command, place + 48)
        for command in commands
        if _kind(command) == _SEGMENT_64
        for place in range(_SEGMENT.size, len(command), _SECTION.size)
    ]
    if _HEADER.size + len(content) > min(start for start in starts if start):
        raise ValueError("no room for one more segment")
    header[4:6] = len(commands), len(content)
    _HEADER.pack_into(file, 0, *header)
    file[_HEADER.size : _HEADER.size + len(content)] = content


def _rename(command: bytearray, name: str) -> None:
    """Write a name into the command that says what a library is called."""
    path = f"@rpath/{name}".encode()
    path += bytes(8 - len(path) % 8)
    command[24:] = path
    struct.pack_into("<I", command, 4, len(command))


def _of_kind(commands: Sequence[bytearray], kind: int) -> bytearray:
    found = [command for command in commands if _kind(command) == kind]
    if not found:
        raise ValueError(f"no load command {kind:#x}")
    return found[0]


def _kind(command: bytearray) -> int:
    return _word(command, 0)


def _word(data: bytearray, place: int) -> int:
    found: int = struct.unpack_from("<I", data, place)[0]
    return found


def _up(number: int) -> int:
    return -(-number // _PAGE) * _PAGE
