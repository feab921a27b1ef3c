"""The reference of the C functions, from the comments of the headers, which are a manual."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from tools.faces import cpp_face, fortran_face
from tools.header import STABLE, Part, contract, functions_of, plain
from tools.markdown import anchor, blocks, fenced, prose

_INTRODUCTION = """\
# C

The functions of [neml2_capi.h](../../include/neml2_capi.h), the stable contract, and of
[neml2_capi_experimental.h](../../include/neml2_capi_experimental.h), which may change in any
release; and their names in [neml2_capi.hpp](../../include/neml2_capi.hpp) and
[neml2_capi_experimental.hpp](../../include/neml2_capi_experimental.hpp), in the namespace `neml2`,
and in [neml2_capi.f90](../../include/neml2_capi.f90) and
[neml2_capi_experimental.f90](../../include/neml2_capi_experimental.f90). Hosts with MPI have three
more, in [neml2_capi_mpi.h](../../include/neml2_capi_mpi.h) and
[neml2_capi_mpi.f90](../../include/neml2_capi_mpi.f90). The tutorials for
[finite-element programs](../tutorials/finite-elements.md) and [C++](../tutorials/cpp.md) show how
they are used.

<!-- Written by `python3 build.py docs` from the headers: change those. -->
"""

_END = re.compile(r"\s*((?:Errors: [^.]+\. )?Threads: (?:any|one)\.)\s*$")


def c_reference(root: Path) -> str:
    """The page."""
    include = root / "include"
    header = (include / STABLE).read_text(encoding="utf-8")
    parts = contract(include)
    functions = functions_of(parts)
    both = ("neml2_capi", "neml2_capi_experimental")
    face = {
        suffix: "".join((include / f"{name}.{suffix}").read_text(encoding="utf-8") for name in both)
        for suffix in ("hpp", "f90")
    }
    cpp, fortran = cpp_face(face["hpp"], functions), fortran_face(face["f90"], functions)
    lines = [_INTRODUCTION, *_introduction(header, functions), "", "## Functions", ""]
    lines += ["| C | C++ | Fortran |", "| --- | --- | --- |"]
    for name in functions:
        row = (f"[`{name}`]({anchor(name)})", _codes(cpp[name]), _codes(fortran[name]))
        lines.append(f"| {' | '.join(row)} |")
    for part in parts:
        if part.is_section:
            title = part.title + " (experimental)" * part.experimental
            lines += ["", f"## {title}", *_body(part.text, functions)]
        else:
            lines += [*_declared(part, functions)]
    return "\n".join(lines) + "\n"


def _codes(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _declared(part: Part, functions: list[str]) -> Iterator[str]:
    text = " ".join(part.text.split())
    end = _END.search(text)
    yield from ("", f"### {part.title}")
    code = "\n".join(line.rstrip() for line in part.code.splitlines())
    yield from ("", fenced(code, "c"), "", _prose(_END.sub("", text), functions))
    if end:
        yield from ("", end[1])


def _prose(text: str, functions: list[str]) -> str:
    """A paragraph in which functions lead to where they stand."""
    parts = re.split(rf"\b({'|'.join(functions)})\(\)", text)
    return "".join(
        f"[{part}()]({anchor(part)})" if part in functions else prose(part) for part in parts
    )


def _introduction(header: str, functions: list[str]) -> Iterator[str]:
    """The sections at the top of the header."""
    comment = header.partition("/*\n")[2].partition("*/")[0]
    text = plain(comment)
    for section in re.split(r"\n\n\n(?=[A-Z ]+\n)", text)[1:]:
        title, _, body = section.partition("\n")
        yield from ("", f"## {title.capitalize()}")
        write = _conventions if title == "CONVENTIONS" else _body
        yield from write(body, functions)


def _body(text: str, functions: list[str]) -> Iterator[str]:
    """Paragraphs; what is indented by four is C, and by less a table."""
    for block in blocks(text):
        if block.startswith("    "):
            yield from ("", fenced(dedent(block), "c"))
        elif block.startswith("  "):
            yield from ("", fenced(dedent(block), "text"))
        else:
            yield from ("", _prose(block, functions))


def _conventions(text: str, functions: list[str]) -> Iterator[str]:
    """Paragraphs, and terms at the margin with what they mean beside them."""
    entries: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        found = re.match(r"^( {0,2}\S+(?: \S+)*) {2,}(\S.*)$", line)
        if found and found[1].startswith(" "):  # the second word of a term
            entries[-1] = (f"{entries[-1][0]} {found[1].strip()}", [*entries[-1][1], found[2]])
        elif found:
            entries.append((found[1], [found[2]]))
        elif line.startswith("    "):
            entries[-1][1].append(line.strip())
        elif line:
            entries.append(("", [line]))
    before = ""
    for term, lines in entries:
        meaning = _prose(" ".join(lines), functions)
        if not (term and before):
            yield ""
        yield f"- **{term}**: {meaning}" if term else meaning
        before = term
