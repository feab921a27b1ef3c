"""Tables of the names that a library for macOS exports: a tree whose edges are parts of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def names_of(trie: bytes) -> dict[str, bytes]:
    """The entry of each name in a table of exports."""
    return dict(_under(trie, 0, b""))


def trie_of(exports: Mapping[str, bytes]) -> bytes:
    """The table of some names; a multiple of 8 bytes."""
    nodes: list[_Node] = []
    _Node(nodes, {name.encode(): told for name, told in exports.items()})
    is_settled = False
    while not is_settled:  # the places of nodes depend on their sizes, and these on the places
        place, is_settled = 0, True
        for node in nodes:
            is_settled = is_settled and node.place == place
            node.place = place
            place += len(node.content())
    table = b"".join(node.content() for node in nodes)
    return table + bytes(-len(table) % 8)


def address_of(address: int) -> bytes:
    """What a name leads to that stands at an address of the library."""
    return _uleb128(0) + _uleb128(address)


class _Node:
    """What begins with the letters that lead here."""

    def __init__(self, nodes: list[_Node], names: Mapping[bytes, bytes]) -> None:
        nodes.append(self)
        self.place = 0
        self._told = names.get(b"")
        self._edges = []
        rest = sorted(name for name in names if name)
        while rest:
            alike = [name for name in rest if name[0] == rest[0][0]]
            first, last = alike[0], alike[-1]
            length = next(
                (i for i, c in enumerate(first) if last[i : i + 1] != first[i : i + 1]), len(first)
            )
            below = _Node(nodes, {name[length:]: names[name] for name in alike})
            self._edges.append((first[:length], below))
            rest = rest[len(alike) :]

    def content(self) -> bytes:
        """The node, with the places of those below as they are known."""
        told = self._told
        head = b"\0" if told is None else _uleb128(len(told)) + told
        edges = (label + b"\0" + _uleb128(node.place) for label, node in self._edges)
        return head + bytes([len(self._edges)]) + b"".join(edges)


def _under(trie: bytes, place: int, name: bytes) -> Iterator[tuple[str, bytes]]:
    size, at = _number(trie, place)
    if size:
        yield name.decode(), trie[at : at + size]
    at += size
    count, at = trie[at], at + 1
    for _ in range(count):
        end = trie.index(0, at)
        child, following = _number(trie, end + 1)
        yield from _under(trie, child, name + trie[at:end])
        at = following


def _number(table: bytes, at: int) -> tuple[int, int]:
    """A number of variable length (uleb128), and where it ends."""
    value = shift = 0
    while True:
        value |= (table[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not table[at - 1] & 0x80:
            return value, at


def _uleb128(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])
