"""The project's English, in what people read; a step of `build.py check`.

python -m tools.prose [FOLDER]    print what tools/words.txt replaces and stands too often
python -m tools.prose FOLDER 0    print all of it

Read are comments, docstrings and texts of programs, and Markdown, without code between backquotes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pygments.lexers import get_lexer_for_filename
from pygments.token import Comment, String

from tools.process import ROOT, run_check

READ = (".c", ".h", ".cpp", ".hpp", ".f90", ".py", ".sh", ".cmake", "CMakeLists.txt", ".md")
# Generated, or kept as somebody wrote it once.
SKIPPED = (
    "docs/reference/",
    "include/neml2_capi.f90",
    "neml2_capi/_ffi/raw.py",
    "neml2_capi/kernels/c/",
    "tests/abi/",
    "tests/data/",
    "tests/fuzz/corpus/",
)

_MARKS = re.compile(r"^[ \t]*(//[/!]?<?|/\*+<?|\*+/?|#+:?|!+>?)", re.MULTILINE)
_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def prose(file: Path) -> str:
    """Return the text of a file, with a stop for each character that is code, line by line."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".md":
        lexer = get_lexer_for_filename(file.name, stripnl=False, ensurenl=False)
        text = "".join(_prose_of(kind, part) for kind, part in lexer.get_tokens(text))
    return _CODE.sub(lambda code: re.sub(r"[^\n]", "\0", code[0]), text)


def _prose_of(kind: object, part: str) -> str:
    directives = (Comment.Preproc, Comment.PreprocFile, Comment.Hashbang)
    if kind in String or (kind in Comment and kind not in directives):
        return _MARKS.sub(lambda mark: " " * len(mark[0]), part)
    return re.sub(r"\S", "\0", part)


def _files(root: Path) -> Iterator[Path]:
    """Yield what people write and read: nothing generated, whether listed or with kernels."""
    for top in sorted(root.iterdir()):
        if top.name in {"build", "dist"} or top.name.startswith("."):
            continue
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.name.endswith(READ) and file.is_file():
                name = str(file.relative_to(root))
                if not name.startswith(SKIPPED) and not (file.parent / "kernels.json").exists():
                    yield file


def findings(root: Path) -> Iterator[str]:
    """Yield each place of words that stand more often below `root` than their limit allows."""
    most = int(sys.argv[2]) if sys.argv[2:] else None
    table = (ROOT / "tools" / "words.txt").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in table.splitlines()]
    words = [(line[0], line[1], int(line[2])) for line in lines if len(line) == 3]
    # Most files have none of them, marks of comments aside, and are not taken apart.
    any_of_them = _compiled("|".join(pattern for pattern, _, _ in words), r"[\s/*#!<>:]+")
    texts = {
        file: prose(file)
        for file in _files(root)
        if any_of_them.search(file.read_text(encoding="utf-8"))
    }
    for pattern, better, limit in words:
        places = [
            f"{file.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}: "
            f'"{" ".join(match[0].split())}"; write {better}'
            for file, text in texts.items()
            for match in _compiled(pattern, r"\s+").finditer(text)
        ]
        allowed = limit if most is None else most
        if len(places) > allowed:
            yield from (*places, f"{len(places)} of these, expected at most {allowed}")


def _compiled(pattern: str, blank: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(" ", blank), re.IGNORECASE)


if __name__ == "__main__":
    run_check(findings, ROOT)
