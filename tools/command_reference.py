"""The reference of the command line, from what click knows of each command.

The commands are imported without the library: nothing has to be built.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from tools.markdown import anchor, fenced, page, prose

_INTRODUCTION = """\
# Command line

What the command `neml2-capi` has, as `neml2-capi COMMAND --help` tells it. `pip install
"neml2_capi[cli]"` brings it; `python -m neml2_capi COMMAND` is the same. An ARTIFACT is the folder
that a model was compiled to. A command that fails says why in one line on the error stream, and its
exit status is 1; it is 2 if the command itself was not understood. The
[tutorial](../tutorials/python.md#the-command-line) shows some of them at work.

<!-- Written by `python3 build.py docs` from the commands: change those. -->
"""


def command_reference(root: Path) -> str:
    """The page."""
    group = _commands(root)
    context = click.Context(group, info_name="neml2-capi")
    names = group.list_commands(context)
    lines = [_INTRODUCTION]
    for name in names:
        command = group.get_command(context, name)
        assert command is not None
        title = f"neml2-capi {name}"
        lines[0] += f"\n- [`{title}`]({anchor(title)}): {prose(_first_line(command))}"
        lines += ["", f"## {title}", *_told(command, click.Context(command, context, title))]
    return "\n".join(lines) + "\n"


def _first_line(command: click.Command) -> str:
    return cleandoc(command.help or "").splitlines()[0]


def _told(command: click.Command, context: click.Context) -> Iterator[str]:
    """What follows the heading of a command."""
    usage = " ".join(["neml2-capi", command.name or "", *command.collect_usage_pieces(context)])
    yield from ("", fenced(usage, "text"), "", page(cleandoc(command.help or "")), "")
    for option in command.params:
        if isinstance(option, click.Option) and (record := option.get_help_record(context)):
            names, told = record
            yield f"- `{names}`: {prose(' '.join(told.split()))}"


def _commands(root: Path) -> Any:
    """The group of all commands; the interpreter keeps what it imports for it."""
    sys.path.insert(0, str(root))
    library: Any = _Absent()
    sys.modules["neml2_capi._ffi.library"] = library
    from neml2_capi.cli.commands import neml2_capi

    return neml2_capi


class _Absent(int):
    """The library, and what it has: numbers, paths, and functions that do nothing."""

    def __getattr__(self, name: str) -> _Absent:
        return _Absent()

    def __call__(self, *arguments: Any, **keywords: Any) -> _Absent:
        return _Absent()

    def __fspath__(self) -> str:
        return ""
