"""Output of commands: tables and documents on the screen, and files that must be new."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from neml2_capi._ffi.outside import require_writable, written


def console() -> Console:
    """As wide as the terminal; wide enough for any table in a pipe."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()
) -> Group:
    """Columns named in `right` are aligned on the right, as numbers are."""
    made = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*map(Text, row))  # names may hold what rich takes for markup
    return Group(
        Text(title, style="bold"), made
    )  # a title of the table would be folded to its width


def shape(sizes: Sequence[int]) -> str:
    """(6,) as 6, (3, 3) as 3 x 3; a scalar has none."""
    return " x ".join(map(str, sizes)) if sizes else "scalar"


def print_json(document: Any) -> None:
    """Print a document for programs: a number that is not finite, which JSON lacks, is null."""
    click.echo(json.dumps(_finite(document), indent=2))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def require_new(output: Path | None) -> None:
    """Refuse a file that is there, or that stands in the installed package; None is the screen."""
    if output is not None:
        require_writable(output)
        if output.is_file():
            raise click.ClickException(f"{output} is there already, and is not overwritten")


def write_new(output: Path | None, what: str, text: str) -> None:
    """Write a text to a file, or to the screen."""
    if output is None:
        click.echo(text, nl=False)
        return
    with written(output, what) as file:
        file.write(text.encode())
