"""Signatures of code for macOS that name nobody (ad hoc): hashes of a file's pages.

Apple's processors run no code without one. Who changes a file writes it again, as linkers do. The
structures are of xnu's <kern/cs_blobs.h>.
"""

from __future__ import annotations

import hashlib
import struct

_SIGNATURE, _DIRECTORY, _VERSION = 0xFADE0CC0, 0xFADE0C02, 0x20400
#: Ad hoc, and by a linker: Apple's tools renew such a signature when they edit the file.
_FLAGS = 0x20002
_SHA256, _PAGE_BITS = 2, 12
_HEAD = struct.Struct(">5I")
_OF_DIRECTORY = struct.Struct(">9I4B4I4Q")


def size_of_signature(length: int, identifier: str) -> int:
    """Return the size of the signature of a file with `length` bytes before it."""
    pages = -(-length >> _PAGE_BITS)
    return _up(_HEAD.size + _OF_DIRECTORY.size + len(identifier.encode()) + 1 + 32 * pages)


def signature(file: bytes, identifier: str, text: tuple[int, int]) -> bytes:
    """Return the signature that follows a file.

    Parameters
    ----------
    file : bytes
        All that stands before the signature, with load commands that tell its place and its size.
    identifier : str
        The name of the code.
    text : tuple of int
        Where the segment with the code begins in the file, and its size.

    Returns
    -------
    bytes
        As many as size_of_signature() says.
    """
    page = 1 << _PAGE_BITS
    digests = [
        hashlib.sha256(file[begin : begin + page]).digest() for begin in range(0, len(file), page)
    ]
    name = identifier.encode() + b"\0"
    hashes = _OF_DIRECTORY.size + len(name)
    length = hashes + 32 * len(digests)
    places = (hashes, _OF_DIRECTORY.size, 0, len(digests), len(file))
    kinds = (32, _SHA256, 0, _PAGE_BITS)
    head = (_DIRECTORY, length, _VERSION, _FLAGS, *places, *kinds, 0, 0, 0, 0, 0, *text, 0)
    directory = _OF_DIRECTORY.pack(*head) + name + b"".join(digests)
    whole = _HEAD.pack(_SIGNATURE, _HEAD.size + length, 1, 0, _HEAD.size) + directory
    return whole.ljust(_up(len(whole)), b"\0")


def _up(number: int) -> int:
    return -(-number // 16) * 16
