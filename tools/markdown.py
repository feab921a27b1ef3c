"""Comments and docstrings as markdown: what means something else there is escaped."""

from __future__ import annotations

import ast
import re
from collections import Counter

# A word or two between single stars, and not the stars of `(*B, *base_shape)`.
_EMPHASIS = re.compile(r"(?<![\w(*\[,])\*(\w[\w ~-]*)\*(?!\w)")


def prose(text: str) -> str:
    """A paragraph, in which code stands between backquotes."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    text = _EMPHASIS.sub("\0\\1\0", text)
    return re.sub(r"([*<~]|(?<!\w)_|_(?!\w))", r"\\\1", text).replace("\0", "*")


def page(text: str) -> str:
    """A docstring: prose, lists, and what is indented by four as code."""
    return "\n\n".join(_block(block) for block in blocks(text))


def blocks(text: str) -> list[str]:
    """Paragraphs and examples; these may have empty lines in them."""
    joined: list[str] = []
    for block in re.split(r"\n{2,}", text.strip("\n")):
        if joined and _is_code(block) and _is_code(joined[-1]):
            joined[-1] += "\n\n" + block
        else:
            joined.append(block)
    return joined


def _is_code(block: str) -> bool:
    return block.startswith("    ")


def _block(block: str) -> str:
    if not _is_code(block):
        return prose(block)
    code = "\n".join(line[4:] for line in block.splitlines())
    return fenced(code, "python" if _is_python(code) else "sh")


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def fenced(code: str, language: str) -> str:
    """A block of code."""
    return f"```{language}\n{code}\n```"


def anchor(heading: str, seen: Counter[str] | None = None) -> str:
    """The link to a heading on its page, as forges make it; `seen` counts those before it."""
    link = "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    if seen is None:
        return link
    seen[link] += 1
    return link if seen[link] == 1 else f"{link}-{seen[link] - 1}"
