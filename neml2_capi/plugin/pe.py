"""Add a section to a DLL of Windows, which the loader maps with the rest of it."""

from __future__ import annotations

import struct

_SECTION = struct.Struct("<8s6I2HI")
_NAME = b".neml2"
#: Initialised data that is read.
_KIND = 0x40000040
_LARGEST_PAGE = 0x10000


def with_section(library: bytes, content: bytes) -> bytes:
    """Return a DLL of 64 bits with `content` behind it, read-only in memory."""
    (start,) = struct.unpack_from("<I", library, 0x3C)
    if library[:2] != b"MZ" or library[start : start + 4] != b"PE\0\0":
        raise ValueError("not a DLL")
    (count,) = struct.unpack_from("<H", library, start + 6)
    (optional_size,) = struct.unpack_from("<H", library, start + 20)
    optional = start + 24
    if library[optional : optional + 2] != b"\x0b\x02":
        raise ValueError("not a DLL of 64 bits")
    page, unit = struct.unpack_from("<2I", library, optional + 32)
    if not 0 < unit <= page <= _LARGEST_PAGE:
        raise ValueError(f"pages of {page} bytes")
    memory, headers = struct.unpack_from("<2I", library, optional + 56)
    place = optional + optional_size + count * _SECTION.size
    if place + _SECTION.size > headers:
        raise ValueError("no room for one more section")
    offset, address, size = _up(len(library), unit), _up(memory, page), _up(len(content), unit)
    section = (_NAME, len(content), address, size, offset, 0, 0, 0, 0, _KIND)
    result = bytearray(library)
    _SECTION.pack_into(result, place, *section)
    struct.pack_into("<H", result, start + 6, count + 1)
    struct.pack_into("<I", result, optional + 56, _up(address + len(content), page))
    struct.pack_into("<I", result, optional + 64, 0)  # a checksum, which drivers alone have
    result += bytes(offset - len(library)) + content + bytes(size - len(content))
    return bytes(result)


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
