"""Add a segment to a shared object, which the loader maps with the rest of it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from neml2_capi.plugin.symbols import exported, long_double

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_LOAD, _NOTE, _READ = 1, 4, 4
_PROGBITS, _ALLOCATED = 1, 2
#: The largest pages of the processors that there are kernels for.
_PAGE = 0x10000
#: The section of the segment: programs such as strip keep what sections say, and nothing else.
SECTION = b".neml2_artifact"


def with_segment(
    library: bytes, content: bytes, numbers: Mapping[str, float] | None = None
) -> bytes:
    """Return a library of 64 bits with `content` behind it, read-only in memory.

    Each of `numbers` is exported by its name, as a long double.

    The table of segments cannot grow: the content takes the place of one with notes, a build ID.
    """
    header = list(_HEADER.unpack_from(library.ljust(_HEADER.size)))
    first, size, count = header[5], header[9], header[10]
    if library[:5] != b"\x7fELF\x02" or size != _SEGMENT.size or header[11] != _SECTION.size:
        raise ValueError("not an ELF file of 64 bits")
    places = [first + size * index for index in range(count)]
    segments = [_SEGMENT.unpack_from(library, place) for place in places]
    spare = [place for place, s in zip(places, segments, strict=True) if s[0] == _NOTE]
    if not spare:
        raise ValueError("no segment of notes")
    end = max((s[3] + s[6] for s in segments if s[0] == _LOAD), default=0)
    offset, address = _up(len(library)), _up(end)
    result = bytearray(library)
    if numbers:
        content += bytes(-len(content) % 16)
        values = {name: long_double(header[2], number) for name, number in numbers.items()}
        content += exported(result, address + len(content), values)
    added = (_LOAD, _READ, offset, address, address, len(content), len(content), _PAGE)
    _SEGMENT.pack_into(result, spare[-1], *added)
    result += bytes(offset - len(library)) + content
    section = (_PROGBITS, _ALLOCATED, address, offset, len(content), 0, 0, _PAGE, 0)
    _add_section(result, header, section)
    return bytes(result)


def _add_section(file: bytearray, header: list[int], section: tuple[int, ...]) -> None:
    """Append a section, with the tables that need room for it."""
    first, size, count, names = header[6], *header[11:]
    sections = [_SECTION.unpack_from(file, first + size * index) for index in range(count)]
    place, length = sections[names][4:6]
    texts = bytes(file[place : place + length]) + SECTION + b"\0"
    sections[names] = (*sections[names][:4], len(file), len(texts), *sections[names][6:])
    sections.append((length, *section))
    file += texts
    file += bytes(-len(file) % 8)
    header[6], header[12] = len(file), len(sections)
    _HEADER.pack_into(file, 0, *header)
    for each in sections:
        file += _SECTION.pack(*each)


def _up(number: int) -> int:
    return -(-number // _PAGE) * _PAGE
