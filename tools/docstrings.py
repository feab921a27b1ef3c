"""Sections of public docstrings, after numpydoc; a step of `build.py check`.

python tools/docstrings.py [PACKAGE]    print each public docstring that lacks a section

Public is what a room exports by `__all__`, with the members of classes and of their bases in the
package; names that begin with `_` and the rooms of INSIDE are not. The sources are read with
griffe, as for docs/reference, and not imported.
"""

from __future__ import annotations

import ast
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import griffe

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.python_reference import load, sections

ROOT = Path(__file__).resolve().parents[1]

# Rooms that users do not import.
INSIDE = ("artifact", "cli", "header", "kernels")
# Classes whose objects users get, and do not make.
MADE_HERE = {"Call", "Derivative", "Failure", "Handle", "History", "Options", "Parameters"}
MADE_HERE |= {"Solve", "State", "SweepResults", "System", "Variable", "Variables"}

Item = griffe.Object | griffe.Alias


def findings(package: Path) -> list[str]:
    """Return what is wrong in the folder `package`, each with a place and what to do."""
    loaded = load(package)
    found: dict[str, None] = {}
    for room in _rooms(loaded):
        if room.exports is None:
            found[_place(room, 1) + "no __all__; expected the public names. Write it."] = None
        for name in room.exports or []:
            found.update(dict.fromkeys(_item(room[str(name)])))
    return list(found)


def _rooms(package: griffe.Module) -> Iterator[griffe.Module]:
    yield package
    for name, module in sorted(package.modules.items()):
        if not name.startswith("_") and name not in INSIDE and isinstance(module, griffe.Module):
            yield module


def _item(item: Item) -> Iterator[str]:
    """Yield what is wrong with a class or a function; a value has no sections."""
    if isinstance(item, griffe.Alias):
        item = item.final_target
    if isinstance(item, griffe.Function):
        yield from _function(item)
    elif isinstance(item, griffe.Class):
        yield from _summary(item)
        for member in item.members.values():
            if member.name == "__init__" and item.name in MADE_HERE:
                continue
            if isinstance(member, griffe.Function) and _is_public(member):
                yield from _function(member)
            elif isinstance(member, griffe.Attribute) and _is_public(member):
                yield from _attribute(member)
        for base in item.resolved_bases:
            yield from _item(base)


def _is_public(member: griffe.Function | griffe.Attribute) -> bool:
    if not member.runtime:  # a declaration for the checker of types
        return False
    if not member.name.startswith("_"):
        return True
    return member.name in ("__init__", "__call__") and bool(member.source)  # not of a dataclass


def _attribute(attribute: griffe.Attribute) -> Iterator[str]:
    if "property" in attribute.labels:
        yield from _summary(attribute)
    elif attribute.annotation is not None and not attribute.docstring:
        yield _at(attribute, "no docstring; expected `#: ` lines above it. Write them.")


def _summary(item: griffe.Object) -> Iterator[str]:
    """Yield what is wrong with the first line."""
    if not item.docstring:
        yield _at(item, "no docstring; expected one. Write it.")
        return
    first, _, rest = item.docstring.value.strip().partition("\n")
    if not first.endswith((".", ":")) or rest.partition("\n")[0].strip():
        yield _at(
            item,
            "a first paragraph that goes on; expected one line that ends with a full stop. "
            "Shorten it, and put the rest below an empty line.",
        )


def _function(function: griffe.Function) -> Iterator[str]:
    """Yield what is wrong with the docstring of a function or a method."""
    taken = [p.name for p in function.parameters if p.name not in ("self", "cls")]
    if function.name == "__init__" and not function.docstring:
        if taken and function.parent:  # the class may tell them
            yield from _sections(function, function.parent, taken)
        return
    yield from _summary(function)
    if function.docstring:
        yield from _sections(function, function, taken)


def _sections(function: griffe.Function, told: Item, taken: list[str]) -> Iterator[str]:
    """Yield the sections that the docstring of `told` lacks for `function`."""
    known = sections(told)
    parameters = [p.name.lstrip("*") for p in known.get("parameters", [])]
    if missing := [name for name in taken if name not in parameters]:
        expected = f"a line under Parameters for {', '.join(missing)}"
        yield _at(function, f"parameters without a word; expected {expected}. Write it.")
    elif parameters != taken:
        yield _at(
            function,
            f"Parameters are {', '.join(parameters)}; expected {', '.join(taken) or 'none'}, as in "
            "the signature. Put them in this order.",
        )
    body = list(_nodes(function))
    wanted = _result(function, body)
    for title in ("returns", "yields"):
        shown = title.capitalize()
        if wanted == title and not known.get(title):
            yield _at(function, f"no section {shown}; expected what it {title}. Write it.")
        if wanted != title and known.get(title):
            yield _at(function, f"a section {shown}; expected none. Take it away.")
    documented = {str(error.annotation) for error in known.get("raises", [])}
    for error in dict.fromkeys(_raised(body)):
        if error not in documented if error else not documented:
            what = error or "the error"
            yield _at(function, f"{what} is not under Raises; expected when it is raised. Say it.")


def _result(function: griffe.Function, body: list[ast.AST]) -> str:
    """Return the section that tells what comes back; empty if nothing does."""
    annotation = str(function.annotation or "None")
    if function.name == "__init__" or annotation in ("None", "NoReturn", "Iterator[None]"):
        return ""
    yielding = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in body)
    return "yields" if yielding else "returns"


def _raised(body: list[ast.AST]) -> Iterator[str]:
    """Yield the classes that a function raises by name; empty for another error of its own."""
    for node in body:
        if isinstance(node, ast.Raise) and node.exc is not None:
            call = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            yield call.id if isinstance(call, ast.Name) and call.id[0].isupper() else ""


def _nodes(function: griffe.Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, without the nodes of functions in it."""
    (tree,) = ast.parse(dedent(function.source)).body
    pending: list[ast.AST] = list(getattr(tree, "body", []))
    while pending:
        node = pending.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield node
            pending.extend(ast.iter_child_nodes(node))


def _at(item: griffe.Object, text: str) -> str:
    name = item.path.removeprefix(item.module.path + ".")
    return f"{_place(item, item.lineno or 1)}{name}: {text}"


def _place(item: griffe.Object, line: int) -> str:
    return f"{item.relative_package_filepath}:{line}: "


def main(arguments: list[str]) -> str | None:
    logging.getLogger("griffe").setLevel(logging.ERROR)
    package = Path(arguments[0]) if arguments else ROOT / "neml2_capi"
    return "\n".join(findings(package)) or None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
