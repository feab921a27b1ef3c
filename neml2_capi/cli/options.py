"""Arguments and options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from neml2_capi.artifact.files import DTYPES
from neml2_capi.kernels.build import SYSTEMS

_F = TypeVar("_F", bound=Callable[..., Any])


class FilePath(click.Path):
    """A path, which is not empty and holds no zero byte."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, parameter: Any, context: Any) -> Any:
        if not os.fspath(value):  # Path takes it for the folder where the process is
            self.fail("the path is empty", parameter, context)
        if "\0" in os.fsdecode(value):
            self.fail("a path holds no zero byte", parameter, context)
        return super().convert(value, parameter, context)


def artifact(function: _F) -> _F:
    """The path of an artifact, `path`."""
    return click.argument("path", metavar="ARTIFACT", type=FilePath())(function)


def optional_file(function: _F) -> _F:
    """The file that says what to do, `file`, if --template does not write one."""
    kind = FilePath(exists=True, dir_okay=False)
    return click.argument("file", metavar="[FILE.toml]", required=False, type=kind)(function)


def template(what: str) -> Callable[[_F], _F]:
    return click.option(
        "--template",
        metavar="ARTIFACT",
        type=FilePath(),
        help=f"Instead of {what}: write a file to start from, to --output or the screen.",
    )


def changes(of: str) -> Callable[[_F], _F]:
    """Values for keys of the file, `changes`."""
    return click.option(
        "--set",
        "changes",
        metavar="KEY=VALUE",
        multiple=True,
        help=f"Of a key of {of}; may be given several times.",
    )


def systems(help_text: str) -> Callable[[_F], _F]:
    """The systems that load kernels, `systems`: names of SYSTEMS, each once."""

    def named(context: object, option: object, given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(SYSTEMS) if "all" in given else tuple(dict.fromkeys(given))

    return click.option(
        "--system",
        "systems",
        type=click.Choice([*SYSTEMS, "all"]),
        multiple=True,
        callback=named,
        help=f"A system that kernels are built for: {help_text} zig compiles for another (pip "
        "install ziglang), by default for x86-64-v2, -v3 and aarch64.",
    )


def as_json(function: _F) -> _F:
    return click.option("--json", "as_json", is_flag=True, help="A JSON document, for programs.")(
        function
    )


def dtype(function: _F) -> _F:
    return click.option(
        "--dtype",
        type=click.Choice(DTYPES),
        help="The element type, if it was compiled for several; else what there is, float64 first.",
    )(function)


def output(help_text: str) -> Callable[[_F], _F]:
    """The file that a command must be told to write, `output`."""
    return click.option(
        "-o", "--output", required=True, type=FilePath(dir_okay=False), help=help_text
    )
