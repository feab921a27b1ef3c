"""Which line of a law an operation of a graph comes from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

#: The key of a node's `custom` metadata under which an exporter writes the line itself.
LINE = "neml2_capi.line"

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in \S+(?:\n[ \t]+(\S.*))?')
#: As frames have it, and what links lead to.
_PACKAGE = tuple(f"{path.parents[1]}/" for path in (Path(__file__), Path(__file__).resolve()))
#: torch, and the file in which NEML2 wraps functions of it.
_TORCH = ("/torch/", "/neml2/models/_guard.py")


def written(file: str, line: int, code: str) -> str:
    """A line of a source file, as messages tell it."""
    return f"{file}:{line}: `{code.strip()}`" if code.strip() else f"{file}:{line}"


def belongs_to_a_law(file: str) -> bool:
    """Whether a source file is neither of torch nor of this package."""
    return not file.startswith((*_PACKAGE, "<")) and not any(part in file for part in _TORCH)


def place_of(node: Any) -> str:
    """The innermost line outside torch that made a node of a graph; empty if none is known."""
    custom = node.meta.get("custom") or {}
    if LINE in custom:
        return str(custom[LINE])
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if belongs_to_a_law(frame[0])]
    return written(own[-1][0], int(own[-1][1]), own[-1][2]) if own else ""
