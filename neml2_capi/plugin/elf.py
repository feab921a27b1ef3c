"""Add a segment to a shared object, which the loader maps with the rest of it."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_LOAD, _NOTE, _READ = 1, 4, 4
#: The largest pages of the processors that there are kernels for.
_PAGE = 0x10000


def with_segment(library: bytes, content: bytes) -> bytes:
    """Return a library of 64 bits with `content` behind it, read-only in memory.

    The table of segments cannot grow: the content takes the place of one with notes, a build ID.
    """
    header = _HEADER.unpack_from(library)
    first, size, count = header[5], header[9], header[10]
    if library[:5] != b"\x7fELF\x02" or size != _SEGMENT.size:
        raise ValueError("not an ELF file of 64 bits")
    places = [first + size * index for index in range(count)]
    segments = [_SEGMENT.unpack_from(library, place) for place in places]
    spare = [place for place, s in zip(places, segments, strict=True) if s[0] == _NOTE]
    if not spare:
        raise ValueError("no segment of notes")
    end = max(s[3] + s[6] for s in segments if s[0] == _LOAD)
    offset, address = _up(len(library)), _up(end)
    added = (_LOAD, _READ, offset, address, address, len(content), len(content), _PAGE)
    result = bytearray(library)
    _SEGMENT.pack_into(result, spare[-1], *added)
    result += bytes(offset - len(library))
    return bytes(result + content)


def _up(number: int) -> int:
    return -(-number // _PAGE) * _PAGE
