"""Tables on the screen, and as plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text


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
