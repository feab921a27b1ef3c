"""The rooms of neml2_capi/, and which imports which; a step of `build.py check`.

python tools/rooms.py [PACKAGE]    print circles, too long chains, and folders without a README

A room is a folder or a module directly below the package, and the package's own __init__.py. An
import counts wherever it stands, in a function too, but not under `if TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DEEPEST = 8
README_LINES = 60


class Import(NamedTuple):
    """An import of one module by another."""

    importer: str
    imported: str
    file: Path
    line: int


def findings(package: Path) -> list[str]:
    """Return all that is wrong in the folder `package`, each with a place and what to do."""
    files = {_module(package, file): file for file in sorted(package.rglob("*.py"))}
    imports = [found for module in files for found in _imports(module, files)]
    found = list(_circles(imports, str, package.parent))
    if not found:
        found = list(_circles(imports, room, package.parent))
    if not found:
        found = list(_too_deep(imports))
    return found + list(_readmes(package))


def room(module: str) -> str:
    """Return the room of a module: "model" for neml2_capi.model.call, "" for the package itself."""
    return "".join(module.split(".")[1:2])


def _module(package: Path, file: Path) -> str:
    parts = (package.name, *file.relative_to(package).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(module: str, files: Mapping[str, Path]) -> Iterator[Import]:
    """Yield the imports of a module that happen at run time."""
    file = files[module]
    pending: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending.extend(node.orelse)
            continue
        pending.extend(ast.iter_child_nodes(node))
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".") + ["__init__"] * (file.name == "__init__.py")
                base = ".".join([*parts[: -node.level], *filter(None, [base])])
            names = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name in files else base for name in names]
        for name in dict.fromkeys(names):
            if name in files and name != module:
                yield Import(module, name, file, getattr(node, "lineno", 1))


def _circles(imports: list[Import], group: Callable[[str], str], top: Path) -> Iterator[str]:
    """Yield the imports that form a circle of modules, or of rooms."""
    graph: dict[str, set[str]] = {}
    for each in imports:
        if group(each.importer) != group(each.imported):
            graph.setdefault(group(each.importer), set()).add(group(each.imported))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # Each name in it is imported by the next.
        circle = error.args[1]
        way = " -> ".join(name or "__init__" for name in reversed(circle))
        for imported, importer in pairwise(circle):
            each = next(
                i for i in imports if (group(i.importer), group(i.imported)) == (importer, imported)
            )
            yield (
                f"{each.file.relative_to(top)}:{each.line}: {each.importer} imports "
                f"{each.imported} in a circle, {way}; expected none. Move what both need into a "
                "lower room, or pass it as an argument."
            )


def _too_deep(imports: list[Import]) -> Iterator[str]:
    """Yield the longest chain of rooms where it is too long; there are no circles."""
    chains: dict[str, list[str]] = {}
    below: dict[str, set[str]] = {}
    for each in imports:
        if room(each.importer) != room(each.imported):
            below.setdefault(room(each.importer), set()).add(room(each.imported))
    for name in TopologicalSorter(below).static_order():
        longest = max((chains[other] for other in below.get(name, ())), key=len, default=[])
        chains[name] = [name or "__init__", *longest]
    longest = max(chains.values(), key=len, default=[])
    if len(longest) > DEEPEST:
        yield (
            f"{len(longest)} rooms import one another, {' -> '.join(longest)}; expected at most "
            f"{DEEPEST}. Let a room on top import what it needs from where it is made."
        )


def _readmes(package: Path) -> Iterator[str]:
    """Yield the folders without a short README."""
    for folder in sorted({file.parent for file in package.rglob("*.py")}):
        readme = folder / "README.md"
        shown = readme.relative_to(package.parent)
        if not readme.is_file():
            yield f"{shown}:1: missing; expected at most {README_LINES} lines. Write it."
        elif (lines := readme.read_text(encoding="utf-8").count("\n")) > README_LINES:
            yield f"{shown}:{lines}: too long; expected at most {README_LINES} lines. Shorten it."


def main(arguments: list[str]) -> int:
    found = findings(Path(arguments[0]) if arguments else ROOT / "neml2_capi")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
