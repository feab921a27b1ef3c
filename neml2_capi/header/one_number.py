"""Definitions for one number instead of lanes."""

from __future__ import annotations

import re
from dataclasses import replace

from neml2_capi.header.definitions import Definition

#: A type in front of brackets is a cast; what each becomes.
_CASTS = {
    "lanes": "as_lanes",
    "mask": "as_mask",
    "wide": "wide_of",
    "wide_bits": "bits_of",
    "wide_mask": "words_of",
    "double": "number_of",
}
_CAST = re.compile(rf"\(({'|'.join(_CASTS)})\)(?=[\w(])")


def of_one(definition: Definition) -> Definition:
    """The definition for one number: neither loops over lanes nor casts of their bits."""
    text = re.sub(r"for \(int l = 0; l < LANES; \+\+l\) ", "", definition.text)
    text = text.replace("[l]", "")
    text = re.sub(r"(\(real\))?__builtin_(nan|inf)\((\"\")?\)", _special, text)
    text = text.replace("__builtin_fma(", "fused(").replace("~", "!")
    text = without_casts(text)
    return replace(definition, text=re.sub(r"\bdouble\b", "wide", text))


def _special(match: re.Match[str]) -> str:
    kind = "no_number" if match[2] == "nan" else "infinite"
    return f"real_{kind}()" if match[1] else f"{kind}()"


def without_casts(text: str) -> str:
    """A text whose casts of numbers, masks and bits are calls."""
    while match := _CAST.search(text):
        begin = match.end()
        end = _end_of_primary(text, begin)
        inside = text[begin:end]
        if inside.startswith("(") and _closing(inside, 0) == len(inside) - 1:
            inside = inside[1:-1]
        text = f"{text[: match.start()]}{_CASTS[match[1]]}({inside}){text[end:]}"
    return text


def _end_of_primary(text: str, begin: int) -> int:
    """Where a name, a call, an element or brackets end that begin at a place."""
    end = begin
    if text[begin] != "(":
        word = re.compile(r"[\w.]+").match(text, begin)
        assert word, text[begin : begin + 40]
        end = word.end()
    while end < len(text) and text[end] in "([":
        end = _closing(text, end) + 1
        if text[begin] == "(" and end > begin:
            break
    return end


def _closing(text: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth == 0:
            return place
    raise ValueError(f"brackets that stay open: {text[opening : opening + 40]}")
