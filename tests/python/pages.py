"""Pages of documentation that run: what their blocks of code are, and how each kind is run.

A page is markdown. Each block of code in it is fenced, and says its language; its examples run in
order in a folder of their own, where `aoti` has the artifacts and `examples` the project's.

- python: in one namespace per page.
- c, cpp, fortran: compiled and run. A block without a main program is a fragment: it is the body of
  one, where C++ has a function cut_the_step(), and <array> and <vector>.
- sh: a script. console: its lines that begin with `$ ` are commands, and what follows each is what
  it prints.
- text: what the block right before it prints.
- A name after the language, ```c block.c, makes any block a file instead; blocks of one name make
  one file.

`...` stands for anything in what is printed, as in doctest. What cannot be run has its reason in a
comment right before it: <!-- not run: it takes an hour -->.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from native import CC, CXX, FORTRAN, INCLUDE, LINK, MODULES, command, fortran_modules
from patience import PATIENCE

LANGUAGES = ("python", "c", "cpp", "fortran", "sh", "console")

_REASON = re.compile(r"<!-- not run: (.+?) -->", re.DOTALL)
_MAIN = {"c": r"\bint main\(", "cpp": r"\bint main\(", "fortran": r"^\s*program \w+"}
_SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass
class Block:
    """A block of code of a page."""

    place: str
    language: str
    code: str
    #: The file that it is, or a part of.
    file: str = ""
    #: Why it is not run.
    reason: str = ""
    #: What it prints, if that stands behind it.
    printed: str | None = None


def blocks_of(text: str, place: str) -> list[Block]:
    """The blocks of code in a page, each with its language; blocks of text go to the one before."""
    blocks: list[Block] = []
    reason, follows = "", False
    for token in MarkdownIt().parse(text):
        if token.type == "html_block" and (found := _REASON.search(token.content)):
            reason = " ".join(found[1].split())
        elif token.type in ("fence", "code_block"):
            line = token.map[0] + 1 if token.map else 0
            language, _, file = token.info.strip().partition(" ")
            block = Block(f"{place}:{line}", language, token.content, file, reason)
            if language == "text" and not reason:
                if not follows:
                    raise AssertionError(_no_program(block))
                blocks[-1].printed = token.content
            else:
                blocks.append(block)
            follows, reason = block.language in LANGUAGES and not (file or block.reason), ""
        elif token.type.endswith("_open") or token.content:
            follows, reason = False, ""
    for block in blocks:
        if not block.reason and not block.file and block.language not in LANGUAGES:
            raise AssertionError(_no_language(block))
    return blocks


def _no_program(block: Block) -> str:
    return (
        f"{block.place}: a text is what the block right before it prints, and there is none. "
        "Say of another one <!-- not run: why -->"
    )


def _no_language(block: Block) -> str:
    return (
        f"{block.place}: a block of {block.language or 'no language'} cannot be run. Fence it with "
        f"one of {', '.join(LANGUAGES)}; or give it a file name, ```{block.language} NAME; or say "
        "before it <!-- not run: why -->"
    )


class Reader:
    """Somebody who tries all that a page says, in order."""

    def __init__(self, folder: Path, given: str = "") -> None:
        """In `folder`; `given` is Python that comes before the page."""
        self.folder = folder
        self._fragments = 0
        # A process of its own: what a page does to Python stays there.
        spawn = multiprocessing.get_context("spawn")
        self._python = ProcessPoolExecutor(1, spawn, initializer=_begin, initargs=(folder, given))

    def read(self, blocks: Sequence[Block], silent: bool = True) -> None:
        """Run the blocks; what is printed but not shown is wrong if pages are `silent`."""
        for block in blocks:
            if block.reason or not _can_run(block):
                continue
            if block.file:
                with (self.folder / block.file).open("a") as file:
                    file.write(block.code)
            elif block.language == "console":
                for line, wanted in _commands(block.code):
                    _compare(block, wanted, self._shell(line, block))
            else:
                printed = self._run(block)
                if block.printed is not None:
                    _compare(block, block.printed, printed)
                elif silent and block.language != "sh":
                    _compare(block, "", printed)

    def close(self) -> None:
        """End the process of the page."""
        self._python.shutdown()

    def _run(self, block: Block) -> str:
        if block.language == "python":
            return self._python.submit(_execute, block.code, block.place).result(PATIENCE)
        if block.language == "sh":
            return self._shell(block.code, block)
        return self._shell(f"./{self._compiled(block)}", block)

    def _compiled(self, block: Block) -> str:
        """The program of a block of C, C++ or Fortran."""
        self._fragments += 1
        name = f"program_{self._fragments}"
        code = block.code
        if not re.search(_MAIN[block.language], code, re.MULTILINE):
            code = _program(block.language, code)
        suffix = {"c": ".c", "cpp": ".cpp", "fortran": ".f90"}[block.language]
        (self.folder / f"{name}{suffix}").write_text(code)
        build: tuple[str | Path, ...] = {
            "c": (CC, "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"),
            "cpp": (CXX, "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"),
            "fortran": (str(FORTRAN), "-std=f2018", "-Wall"),
        }[block.language]
        if block.language == "fortran":
            module = fortran_modules(*MODULES)
            build = (*build, f"-I{module}", *sorted(module.glob("*.o")))
        command(*build, f"{name}{suffix}", "-o", name, *LINK, cwd=self.folder)
        return name

    def _shell(self, script: str, block: Block) -> str:
        """What a script prints, which must succeed."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env={**os.environ, "PATH": path, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{block.place}\n{script}\n{done.stdout}{done.stderr}"
        return done.stdout


def _can_run(block: Block) -> bool:
    """Whether there is the compiler that it takes."""
    needed = {"fortran": "gfortran", "c": CC, "cpp": CXX}.get(block.language)
    tools = ["gfortran", "cmake", "pkg-config"]
    named = [needed] if needed else [name for name in tools if f"{name} " in block.code]
    return block.language == "python" or all(shutil.which(name) for name in named)


def _commands(session: str) -> Iterator[tuple[str, str]]:
    """Each command of a console, and what it prints."""
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        line, _, printed = re.sub(r"\\\n", "", part).partition("\n")
        yield line, printed


def _compare(block: Block, wanted: str, printed: str) -> None:
    same = doctest.OutputChecker().check_output(wanted, printed, _SAME)
    assert same, f"{block.place}\n{block.code}\nshows\n{wanted}\nand prints\n{printed}"


def _program(language: str, fragment: str) -> str:
    """The program that a fragment is the body of."""
    if language == "fortran":
        return f"program fragment\n{fragment}\nend program fragment\n"
    include = re.compile(r"^#include .*\n", re.MULTILINE)
    head = "".join(include.findall(fragment))
    if language == "cpp":
        head += "#include <array>\n#include <vector>\n"
        head += "[[maybe_unused]] static void cut_the_step() {}\n"
    return f"{head}int main(void) {{\n{include.sub('', fragment)}\nreturn 0;\n}}\n"


# ---- in the process of a page ----

_NAMESPACE: dict[str, Any] = {"__name__": "page"}


def _begin(folder: Path, given: str) -> None:
    os.chdir(folder)
    _execute(given, "what is given")


def _execute(code: str, place: str) -> str:
    """What a block of Python prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, place, "exec"), _NAMESPACE)
    return printed.getvalue()
