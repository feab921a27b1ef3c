"""The reference of the Python package, from its docstrings."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import griffe

from tools.markdown import anchor, fenced, page, prose

# Rooms of the page, in its order. Each has the names of its __all__.
ROOMS = ["model", "driver", "experiments", "sweeps", "fit", "errors", "graph", "operators"]
ROOMS += ["examples", "mandel", "solvers", "torch", "jax", "neml2", "mpi", "export", "page", "umat"]
ROOMS += ["plugin", "logs"]
# Bases that are told as a part of what is made of them.
PARTS = ("Derived", "Described", "Functions", "Settings", "States")

_INTRODUCTION = """\
# Python

Every public name of the package `neml2_capi`, by the module that exports it. Names without a module
are the package's too: `neml2_capi.Model`. In the shapes, `*B` are the axes of the batch of
material points, which may be none; `*base_shape` are the variable's, `(6,)` for a symmetric
tensor. Whatever holds a handle of the library (a model, a call, a tensor, a graph, a solve) has
`close()`, `closed` and `with`, and is closed with its last reference. The
tutorials, [the first hour](../tutorials/python.md) and [every day](../tutorials/every-day.md),
show how it is used.

<!-- Written by `python3 build.py docs` from the docstrings: change those. -->
"""


def python_reference(root: Path) -> str:
    """The page."""
    package = load(root / "neml2_capi")
    contents, body, seen = [_INTRODUCTION], [], Counter[str]()
    for room in ROOMS:
        title = f"neml2_capi.{room}"
        names = {str(name): _heading(package, room, str(name)) for name in package[room].exports}
        links = ", ".join(f"[`{name}`]({anchor(heading, seen)})" for name, heading in names.items())
        contents.append(f"- [{title}]({anchor(title)}): {links}")
        body += ["", f"## {title}", *_docstring(package[room])]
        for name, heading in names.items():
            body += _item(package[room][name], heading)
    return "\n".join([*contents, *body]) + "\n"


def _heading(package: griffe.Module, room: str, name: str) -> str:
    """The name of what the package exports too, else the room's and the name."""
    own = package.members.get(name) if name in (package.exports or []) else None
    here = package[room][name]
    return name if own and own.canonical_path == here.canonical_path else f"{room}.{name}"


def load(folder: Path) -> griffe.Module:
    """Read the sources of a package."""
    extensions = griffe.load_extensions("griffe_sphinx")  # attributes, documented by `#: `
    package = griffe.load(
        folder.name,
        search_paths=[folder.parent],
        extensions=extensions,
        docstring_parser="numpy",
        allow_inspection=False,
    )
    assert isinstance(package, griffe.Module)
    return package


def sections(item: griffe.Object | griffe.Alias) -> dict[str, Any]:
    """The sections of a docstring by their names, "text" among them, in their order."""
    parsed = item.docstring.parse("numpy") if item.docstring else []
    return {section.kind.value: section.value for section in parsed}


def _item(item: griffe.Object | griffe.Alias, heading: str) -> Iterator[str]:
    """A class, a function or a value, with its heading."""
    if isinstance(item, griffe.Alias):
        item = item.final_target
    yield from ("", f"### {heading}")
    if isinstance(item, griffe.Class):
        yield from _class(item, heading)
    elif isinstance(item, griffe.Function):
        yield from ("", fenced(_signature(item), "python"), *_docstring(item))
    else:
        yield from _docstring(item)


def _class(item: griffe.Class, heading: str) -> Iterator[str]:
    parts = list(dict.fromkeys(_parts(item)))
    bases = ", ".join(_base(b) for b in item.bases if str(b) not in {"Handle", *PARTS})
    head = f"class {item.name}({bases})" if bases else f"class {item.name}"
    yield from ("", fenced(head, "python"), *_docstring(item))
    written = [*parts, item]
    members = [m for part in written for m in part.members.values() if _is_public(m)]
    made = [member for member in members if member.name == "__init__" and member.docstring]
    for member in made:
        yield from ("", fenced(_signature(member), "python"), *_docstring(member))
    yield from _attributes([member for member in members if member.is_attribute])
    for member in members:
        if member.is_function and member not in made and member.docstring:
            yield from ("", f"#### {heading}.{prose(member.name)}", "")
            yield from (fenced(_signature(member), "python"), *_docstring(member))


def _parts(item: griffe.Class) -> Iterator[griffe.Class]:
    for base in item.resolved_bases:
        if isinstance(base, griffe.Class) and base.name in PARTS:
            yield from (*_parts(base), base)


def _base(base: str | griffe.Expr) -> str:
    """The name of a base class, of the package if it is its own."""
    path = base if isinstance(base, str) else base.canonical_path
    top, _, name = path.partition(".")
    return f"{top}.{name.rpartition('.')[2]}" if top == "neml2_capi" else path


def _is_public(member: griffe.Object | griffe.Alias) -> bool:
    return not member.name.startswith("_") or (
        member.is_function and member.name.startswith("__") and member.name != "__new__"
    )


def _attributes(members: list[griffe.Object | griffe.Alias]) -> Iterator[str]:
    if members:
        yield from ("", "**Attributes**", "")
    for member in members:
        annotation = getattr(member, "annotation", None)
        text = prose(" ".join(member.docstring.value.split())) if member.docstring else ""
        head = f"{member.name}: {annotation}" if annotation else member.name
        yield f"- `{head}`" + (f": {text}" if text else "")


def _docstring(item: griffe.Object | griffe.Alias) -> Iterator[str]:
    """The text of a docstring, and its sections as lists."""
    signature = {p.name: str(p.annotation) for p in getattr(item, "parameters", [])}
    for title, content in sections(item).items():
        if title == "text":
            yield from ("", page(content))
            continue
        yield from ("", f"**{title.capitalize()}**", "")
        yield from (_entry(entry, signature) for entry in content)


def _entry(entry: Any, signature: Mapping[str, str]) -> str:
    """What a section says of one parameter, result or error; `signature` has types to leave out."""
    name, kind = getattr(entry, "name", ""), str(entry.annotation or "")
    head = f"`{name}`" if name else prose(kind) if " " in kind else f"`{kind}`"
    # Of several parameters in one line griffe gives all the annotation of the first.
    if name and kind and kind not in signature.values():
        head += f" ({prose(kind)})"
    return f"- {head}: {prose(' '.join(entry.description.split()))}"


def _signature(item: griffe.Object | griffe.Alias) -> str:
    """The lines of a `def`, as they stand in the source."""
    source = dedent(item.source)
    node = ast.parse(source).body[0]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    lines = source.splitlines()
    head = "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1]).rstrip()
    decorators = [f"@{ast.unparse(each)}\n" for each in node.decorator_list]
    return "".join(name for name in decorators if not name.startswith("@_")) + head.rstrip(":")
