"""Names that a shared object exports besides its own: tables of symbols in a segment that is added.

The tables that the linker wrote stay as they are, for relocations count in them. Behind them, in
the new ones, stand copies of what the library exports and what is added, in the order of the hash.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

_DYNAMIC = 2
_NULL, _STRTAB, _SYMTAB, _STRSZ = 0, 5, 6, 10
_GNU_HASH, _VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ENTRY = struct.Struct("<QQ")
#: A global object, in a section that has no header, with the version of all names.
_OBJECT, _ABSENT, _GLOBAL = 0x11, 0xFFF0, 1
_SHIFT = 26


def long_double(machine: int, value: float) -> bytes:
    """A number as C's long double has it.

    Parameters
    ----------
    machine : int
        The number of the processor in the header of ELF: 62 for x86-64, 183 for aarch64.
    value : float
        The number, which is finite.

    Returns
    -------
    bytes
        16 of them: of 80 bits on x86-64, of 128 on aarch64.
    """
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    sign, exponent, fraction = bits >> 63, bits >> 52 & 0x7FF, bits & ((1 << 52) - 1)
    if exponent == 0 and fraction:  # the narrowest ones are normal here
        shift = 53 - fraction.bit_length()
        exponent, fraction = 1 - shift, fraction << shift & ((1 << 52) - 1)
    is_zero = bits << 1 & (1 << 64) - 1 == 0
    head = sign << 15 | (0 if is_zero else exponent + 16383 - 1023)
    if machine == 62:
        mantissa = 0 if is_zero else 1 << 63 | fraction << 11
        return struct.pack("<QH6x", mantissa, head)
    number: int = head << 112 | fraction << 60
    return number.to_bytes(16, "little")


def exported(library: bytearray, address: int, values: Mapping[str, bytes]) -> bytes:
    """Tables of symbols for a segment, to which the library is turned.

    Parameters
    ----------
    library : bytearray
        A library of 64 bits whose names are found by DT_GNU_HASH. Its dynamic section is changed.
    address : int
        The address of the tables, a multiple of 16.
    values : mapping of str to bytes
        What each name stands for.

    Returns
    -------
    bytes
        The values, and the tables behind them.
    """
    entries, tables = _dynamic(library)
    first, bloom, buckets, chains = _hash_of(library, tables[_GNU_HASH])
    count = _count(library, first, bloom, buckets, chains)
    symbols = [_SYMBOL.unpack_from(library, tables[_SYMTAB] + 24 * i) for i in range(count)]
    versions = [*struct.unpack_from(f"<{count}H", library, tables[_VERSYM])]
    texts = bytearray(library[tables[_STRTAB] : tables[_STRTAB] + tables[_STRSZ]])
    named = []
    for symbol, version in zip(symbols[first:], versions[first:], strict=True):
        end = texts.index(b"\0", symbol[0])
        named.append((bytes(texts[symbol[0] : end]), symbol, version))
    content = bytearray()
    for name, value in values.items():
        symbol = (len(texts), _OBJECT, 0, _ABSENT, address + len(content), len(value))
        texts += name.encode() + b"\0"
        content += value + bytes(-len(value) % 16)
        named.append((name.encode(), symbol, _GLOBAL))
    size = max(1, len(named) // 2)
    named.sort(key=lambda each: _hash(each[0]) % size)
    symbols += [symbol for _, symbol, _ in named]
    versions += [version for _, _, version in named]
    made = {
        _SYMTAB: b"".join(_SYMBOL.pack(*symbol) for symbol in symbols),
        _STRTAB: bytes(texts),
        _VERSYM: struct.pack(f"<{len(versions)}H", *versions),
        _GNU_HASH: _gnu_hash([name for name, _, _ in named], count, size),
    }
    for tag, table in made.items():
        _ENTRY.pack_into(library, entries[tag], tag, address + len(content))
        content += table + bytes(-len(table) % 16)
    _ENTRY.pack_into(library, entries[_STRSZ], _STRSZ, len(texts))
    return bytes(content)


def _dynamic(library: bytearray) -> tuple[dict[int, int], dict[int, int]]:
    """By tag, the places of the entries of the dynamic section, and of what they point to."""
    (first,) = struct.unpack_from("<Q", library, 32)
    size, count = struct.unpack_from("<HH", library, 54)
    segments = [_SEGMENT.unpack_from(library, first + size * i) for i in range(count)]
    (place,) = (segment[2] for segment in segments if segment[0] == _DYNAMIC)
    entries: dict[int, int] = {}
    tables: dict[int, int] = {}
    while True:
        tag, value = _ENTRY.unpack_from(library, place)
        if tag == _NULL:
            return entries, tables
        entries[tag] = place
        holding = [s for s in segments if s[0] == 1 and s[3] <= value < s[3] + s[5]]
        if holding and tag != _STRSZ:
            value += holding[0][2] - holding[0][3]
        tables[tag] = value
        place += _ENTRY.size


def _hash_of(library: bytearray, place: int) -> tuple[int, int, tuple[int, ...], int]:
    """The first symbol that is found by name, the size of the filter, the buckets, the chains."""
    count, first, bloom, _ = struct.unpack_from("<4I", library, place)
    at = place + 16 + 8 * bloom
    return first, bloom, struct.unpack_from(f"<{count}I", library, at), at + 4 * count


def _count(
    library: bytearray, first: int, bloom: int, buckets: tuple[int, ...], chains: int
) -> int:
    """The number of symbols: up to the end of the last chain."""
    last = max(buckets, default=0)
    if last < first:
        return first
    while not struct.unpack_from("<I", library, chains + 4 * (last - first))[0] & 1:
        last += 1
    return last + 1


def _gnu_hash(names: list[bytes], first: int, size: int) -> bytes:
    """The table by which symbols from `first` on are found; they are in the order of buckets."""
    words = 1
    while words * 8 < len(names):
        words *= 2
    hashes = [_hash(name) for name in names]
    bloom, buckets, chain = [0] * words, [0] * size, []
    for index, value in enumerate(hashes):
        bloom[value // 64 % words] |= 1 << value % 64 | 1 << (value >> _SHIFT) % 64
        buckets[value % size] = buckets[value % size] or first + index
        ends = index + 1 == len(hashes) or hashes[index + 1] % size != value % size
        chain.append(value & ~1 | ends)
    head = struct.pack("<4I", size, first, words, _SHIFT)
    return head + struct.pack(f"<{words}Q{size + len(chain)}I", *bloom, *buckets, *chain)


def _hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
