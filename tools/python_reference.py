"""The reference of the Python package, from its docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import griffe

from tools.markdown import anchor, fenced, page, prose

# What stands under each heading: of the package itself what __all__ names, and the types that it
# hands out; of other modules what their __all__ names, or what is said here.
PACKAGE = {
    "Models": [
        "Model",
        "load_model",
        "CompiledModel",
        "Scheduler",
        "Device",
        "model.parameters.Parameters",
        "model.options.Options",
        "Variable",
        "_ffi.variables.Variables",
        "_ffi.variables.Derivative",
        "_ffi.variables.History",
        "model.state.State",
    ],
    "Bound calls": ["Call"],
    "Through time": ["drive", "Results", "StepError"],
    "Sweeps": ["sweep", "SweepResults", "sweeps.Failure", "SweepError", "sweeps.RayExecutor"],
    "Errors": [
        "Error",
        "FatalError",
        "UnknownNameError",
        "ConvergenceError",
        "AggregateError",
        "errors.AggregateConvergenceError",
        "errors.AggregateFatalError",
    ],
    "Tensors and graphs": ["Tensor", "Graph", "GraphInput"],
    "Operators of your own": ["operator", "register_operator", "unregister_operator"],
}
MODULES: dict[str, list[str]] = {
    "examples": [],
    "mandel": [],
    "experiments": [],
    "solvers": [],
    "torch": [],
    "jax": [],
    "neml2": [],
    "logs": ["CHANNELS"],
    "mpi": [],
    "export": [],
    "umat": [],
    "plugin": [],
}

# Classes whose objects are handed out, and that no module exports.
HANDED_OUT = [name for names in PACKAGE.values() for name in names if "." in name]
# Bases that are told as a part of what is made of them.
PARTS = ("Described", "Functions")

_INTRODUCTION = """\
# Python

Every public name of the package `neml2_capi`. In the shapes, `*B` are the axes of the batch of
material points, which may be none; `*base_shape` are the variable's, `(6,)` for a symmetric
tensor. Whatever holds a handle of the library (a model, a call, a tensor, a graph, a solve) has
`close()`, `closed` and `with`, and is closed with its last reference. The
[tutorial](../tutorials/python.md) shows how it is used.

<!-- Written by `python3 build.py docs` from the docstrings: change those. -->
"""


def python_reference(root: Path) -> str:
    """The page."""
    package = load(root / "neml2_capi")
    sections = {title: [package[name] for name in names] for title, names in PACKAGE.items()}
    listed = {item.name for items in sections.values() for item in items} | {"__version__"}
    others = [name for name in package.exports or [] if name not in listed]
    if others:
        sections["More"] = [package[str(name)] for name in others]
    lines = [_INTRODUCTION]
    for title, items in sections.items():
        lines += [f"- [{title}]({anchor(title)}): {_links(items)}"]
    modules = {f"neml2_capi.{name}": _names(package[name], n) for name, n in MODULES.items()}
    for title, items in modules.items():
        lines += [f"- [{title}]({anchor(title)}): {_links(items, title.partition('.')[2] + '.')}"]
    for title, items in sections.items():
        lines += ["", f"## {title}", *(part for item in items for part in _item(item))]
    for title, items in modules.items():
        module = title.partition(".")[2]
        lines += ["", f"## {title}", *_docstring(package[module])]
        lines += [part for item in items for part in _item(item, f"{module}.")]
    return "\n".join(lines) + "\n"


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


def _names(module: griffe.Object | griffe.Alias, names: list[str]) -> list[griffe.Object]:
    wanted = names or [str(name) for name in module.exports or []]
    return [module[name] for name in wanted]


def _links(items: list[griffe.Object], module: str = "") -> str:
    return ", ".join(f"[`{item.name}`]({anchor(module + item.name)})" for item in items)


def _item(item: griffe.Object | griffe.Alias, module: str = "") -> Iterator[str]:
    """A class, a function or a value, with its heading."""
    if isinstance(item, griffe.Alias):
        item = item.final_target
    yield from ("", f"### {module}{item.name}")
    if isinstance(item, griffe.Class):
        yield from _class(item, module)
    elif isinstance(item, griffe.Function):
        yield from ("", fenced(_signature(item), "python"), *_docstring(item))
    else:
        yield from _docstring(item)


def _class(item: griffe.Class, module: str) -> Iterator[str]:
    parts = [base for base in item.resolved_bases if base.name in PARTS]
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
            yield from ("", f"#### {module}{item.name}.{prose(member.name)}", "")
            yield from (fenced(_signature(member), "python"), *_docstring(member))


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
        text = " ".join(member.docstring.value.split()) if member.docstring else ""
        yield f"- `{_typed(member)}`" + (f": {prose(text)}" if text else "")


def _typed(member: griffe.Object | griffe.Alias) -> str:
    annotation = getattr(member, "annotation", None)
    return f"{member.name}: {annotation}" if annotation else member.name


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
