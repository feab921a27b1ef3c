"""Regions of a file that are generated, between marks; the rest of it is written by hand."""

from __future__ import annotations

import re


def fill(source: str, name: str, lines: list[str]) -> str:
    """The source with other lines in a region."""
    pattern, found = _region(name), 0
    source, found = pattern.subn(lambda m: m[1] + "".join(f"{x}\n" for x in lines) + m[3], source)
    if found != 1:
        raise ValueError(f"there must be one region 'begin generated: {name}'; there are {found}")
    return source


def by_hand(source: str) -> str:
    """The source without what is generated."""
    return _region(r"[^\n]*").sub("", source)


def _region(name: str) -> re.Pattern[str]:
    mark = r"[^\S\n]*(?:!|//) {}[^\n]*\n"
    begin, end = mark.format(f"begin generated: {name}"), mark.format("end generated")
    return re.compile(f"^({begin})(.*?)^({end})", re.DOTALL | re.MULTILINE)
