"""Regions of a file that are generated, between marks; the rest of it is written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator


def fill(source: str, name: str, lines: list[str]) -> str:
    """The source with other lines in a region."""
    pattern, found = _region(name), 0
    source, found = pattern.subn(lambda m: m[1] + "".join(f"{x}\n" for x in lines) + m[3], source)
    if found != 1:
        raise ValueError(f"there must be one region 'begin generated: {name}'; there are {found}")
    return source


def sections(source: str) -> Iterator[tuple[str, str, str]]:
    """The names of the regions, their lines, and what is by hand before each, since the last."""
    begin = 0
    for region in _region(r"(?:[^\n]*)").finditer(source):
        name = region[1].strip().removeprefix("! begin generated: ")
        yield name, region[2], source[begin : region.start()]
        begin = region.end()


def _region(name: str) -> re.Pattern[str]:
    mark = r"[^\S\n]*(?:!|//) {}[^\n]*\n"
    begin, end = mark.format(f"begin generated: {name}"), mark.format("end generated")
    return re.compile(f"^({begin})(.*?)^({end})", re.DOTALL | re.MULTILINE)
