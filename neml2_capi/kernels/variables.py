"""Names that users gave to variables, apart from all other names of a text.

In a kernel, variables are local: nothing there is called by such a name. A text that holds more
than the kernel has functions and macros that a variable may be named like.
"""

from __future__ import annotations

import re

#: Of an array, and of a component of one.
_ARRAY = re.compile(r"^ *(?:const )?lanes \*const (\w+) = (?:in|out)puts\[", re.MULTILINE)
_COMPONENT = re.compile(r"^ *const lanes (\w+) = (\w+)\[", re.MULTILINE)
#: A function, or a table, of a generated text: its head, and its body.
_BLOCK = re.compile(r"^((?:static|FUNCTION)\b[^;{]*\{\n)(.*?^\})", re.MULTILINE | re.DOTALL)


def with_variables_apart(text: str) -> str:
    """The text of a kernel, or a function of it, whose variables begin as no other name does."""

    def renamed(found: re.Match[str]) -> str:
        head, body = found.groups()
        names = _variables_of(body)
        return head + re.sub(r"[A-Za-z_]\w*", lambda word: names.get(word[0], word[0]), body)

    return _BLOCK.sub(renamed, text)


def _variables_of(body: str) -> dict[str, str]:
    arrays = set(_ARRAY.findall(body))
    names = arrays | {name for name, array in _COMPONENT.findall(body) if array in arrays}
    return {name: f"v_{name}" for name in names if not re.fullmatch(r"[cv]\d+", name)}
