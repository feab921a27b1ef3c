"""Names of variables in a kernel's text, apart from all other names there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from neml2_capi.kernels.tables import identifier

_TYPES = "lanes mask real wide pair"
_IN_TEXT = "one inputs outputs kept shared results given made strides block blocks"
_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while angle"
)
#: Numbered names of a text, macros, and functions that macros make.
_MADE = re.compile(r"([cv]|calls|others)\d+|[A-Z\d_]+|(lanes|wide)_\w*")


class Names:
    """Names of C that are used once."""

    def __init__(self, more: Sequence[str] = ()) -> None:
        words = f"{_TYPES} {_IN_TEXT} {_KEYWORDS}"
        self._taken = {*words.split(), *_functions(), *more}

    def new(self, name: str) -> str:
        made = identifier(name)
        if _MADE.fullmatch(made):
            made += "_"
        while made in self._taken:
            made += "_"
        self._taken.add(made)
        return made


@cache
def _functions() -> frozenset[str]:
    """Read the names of functions from the headers of kernels."""
    texts = (path.read_text() for path in sorted((Path(__file__).parent / "c").glob("*.h")))
    return frozenset(name for text in texts for name in re.findall(r"\b[A-Za-z]\w*(?=\()", text))
