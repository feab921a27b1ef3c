"""Sections of public docstrings, by pydoclint; a step of `build.py check`.

python -m tools.docstrings [PACKAGE]    print each public docstring that lacks a section

Public is what a room exports by `__all__`, with the members of classes and of their bases in the
package; names that begin with `_` and the rooms of INSIDE are not. The sources are read with
griffe, as for docs/reference, and not imported.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import griffe
from pydoclint.utils.return_yield_raise import getRaisedExceptions
from pydoclint.visitor import Visitor

from tools.process import ROOT, run_check
from tools.python_reference import load, sections

# Rooms that users do not import.
INSIDE = ("artifact", "cli", "header", "kernels")
# Classes whose objects users get, and do not make.
MADE_HERE = {"Call", "Derivative", "Failure", "Handle", "History", "Options", "Parameters"}
MADE_HERE |= {"Solve", "State", "SweepResults", "System", "Variable", "Variables"}
# pydoclint's findings on arguments and results; others are on types, which signatures have.
CODES = (103, 104, 201, 202, 402, 403)

Item = griffe.Object | griffe.Alias


def findings(package: Path) -> Iterator[str]:
    """Yield what is wrong in the folder `package`, each with a place and what to do."""
    loaded = load(package)
    rooms = [room for name, room in sorted(loaded.modules.items()) if name[0] != "_"]
    for room in [loaded, *(room for room in rooms if room.name not in INSIDE)]:
        if room.exports is None:
            yield _at(room, "no __all__; expected the public names. Write it.")
        for name in room.exports or []:
            yield from _item(room[str(name)])


def _item(item: Item) -> Iterator[str]:
    """Yield what is wrong with a class or a function; a value has no sections."""
    if isinstance(item, griffe.Alias):
        item = item.final_target
    if not isinstance(item, griffe.Class | griffe.Function):
        return
    public = [member for member in item.members.values() if _is_public(item, member)]
    for each in (item, *public):
        yield from _documented(each)
    functions = [each for each in (item, *public) if isinstance(each, griffe.Function)]
    for function in functions:
        yield from _raises(function)
    yield from _sections(item, [function.name for function in functions])
    for base in item.resolved_bases if isinstance(item, griffe.Class) else ():
        yield from _item(base)


def _is_public(owner: griffe.Object, member: Item) -> bool:
    if member.name == "__init__":
        return owner.name not in MADE_HERE and bool(member.source)  # not of a dataclass
    # Leaves out members that exist for the checker of types alone.
    return member.runtime and (member.name == "__call__" or not member.name.startswith("_"))


def _documented(item: Item) -> Iterator[str]:
    """Yield what is wrong with a docstring, its sections aside."""
    is_value = item.is_attribute and "property" not in item.labels
    text = item.docstring.value.strip() if item.docstring else ""
    first, _, rest = text.partition("\n")
    if is_value:
        if getattr(item, "annotation", None) and not text:
            yield _at(item, "no docstring; expected `#: ` lines above it. Write them.")
    elif not text and item.name != "__init__":  # the class may tell of it
        yield _at(item, "no docstring; expected one. Write it.")
    elif text and not (first.endswith((".", ":")) and not rest.partition("\n")[0].strip()):
        wanted = "one line that ends with a full stop"
        yield _at(item, f"a first paragraph that goes on; expected {wanted}.")


def _raises(function: griffe.Function) -> Iterator[str]:
    """Yield the errors that a function raises by name, or one at all, and does not tell."""
    (node,) = ast.parse(dedent(function.source)).body
    raised = [name for name in getRaisedExceptions(node) if name != "BaseException"]  # passed on
    told = function if function.docstring or not function.parent else function.parent
    documented = {str(error.annotation) for error in sections(told).get("raises", [])}
    named = [name for name in raised if name[0].isupper() and name not in documented]
    for name in named or (raised if not documented else ()):
        yield _at(function, f"{name} is not under Raises; say when it is raised.")


def _sections(item: griffe.Object, names: list[str]) -> Iterator[str]:
    """Yield what pydoclint finds in a function, or in the functions of a class of these names."""
    (tree,) = ast.parse(dedent(item.source)).body
    if isinstance(tree, ast.ClassDef):
        own = [node for node in tree.body if getattr(node, "name", "") in names]
        tree.body = [*(node for node in tree.body if isinstance(node, ast.Expr)), *own]
    visitor = Visitor(
        skipCheckingShortDocstrings=False,
        allowInitDocstring=True,
        omitStarsWhenDocumentingVarargs=True,
    )
    visitor.visit(tree)
    for found in visitor.violations:
        if found.code in CODES:
            line = (item.lineno or 1) + found.line - 1
            yield f"{item.relative_package_filepath}:{line}: {found.msg}"


def _at(item: Item, text: str) -> str:
    name = item.path.removeprefix(item.module.path + ".")
    return f"{item.relative_package_filepath}:{item.lineno or 1}: {name}: {text}"


if __name__ == "__main__":
    logging.getLogger("griffe").setLevel(logging.ERROR)
    # Rooms may export the same.
    run_check(lambda package: dict.fromkeys(findings(package)), ROOT / "neml2_capi")
