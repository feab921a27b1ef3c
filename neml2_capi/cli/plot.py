"""Curves of one column over another, to a file or to a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from numpy.typing import NDArray

from neml2_capi._ffi.errors import unknown_name

_MOST_NAMED = 8
_Columns = Mapping[str, NDArray[Any]]


def axes_of(curves: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of columns that curves such as "strain.xx:stress.xx" name."""
    pairs = []
    for curve in curves:
        x, separator, y = curve.partition(":")
        if not (separator and x and y):
            raise click.ClickException(f"plot {curve!r}: expected X:Y, for example t:{names[-1]}")
        for name in (x, y):
            if name not in names:
                raise unknown_name("column", name, names)
        pairs.append((x, y))
    return pairs


def require_matplotlib(file: Path | None) -> None:
    """Where nothing could be drawn, say so before a run and not after it."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise click.ClickException(
            "a plot needs matplotlib; install it with: pip install 'neml2_capi[plot]'"
        ) from None
    if file is None and pyplot.get_backend().lower() in ("agg", "cairo", "pdf", "pgf", "ps", "svg"):
        raise click.ClickException(
            "there is no display for a window; write the plot to a file with --plot-file FILE.png"
        )
    if file is not None:
        known = sorted(pyplot.figure().canvas.get_supported_filetypes())
        pyplot.close()
        if file.suffix.removeprefix(".") not in known:
            raise click.ClickException(
                f"{file} is no image that matplotlib writes; expected one of {', '.join(known)}"
            )


def plot(pairs: Sequence[tuple[str, str]], columns: _Columns, title: str, to: Path | None) -> None:
    """One diagram for each pair, with one line for each material point."""
    from matplotlib import pyplot

    figure, diagrams = pyplot.subplots(
        1, len(pairs), figsize=(5.0 * len(pairs), 4.0), squeeze=False, layout="constrained"
    )
    for diagram, (x, y) in zip(diagrams[0], pairs, strict=True):
        rows = len(columns["t"])
        lines = diagram.plot(*_together(columns[x].reshape(rows, -1), columns[y].reshape(rows, -1)))
        if 1 < len(lines) <= _MOST_NAMED:
            diagram.legend(lines, [f"point {point}" for point in range(len(lines))])
        diagram.set_xlabel(x)
        diagram.set_ylabel(y)
        diagram.locator_params(nbins=6)
        diagram.ticklabel_format(scilimits=(-2, 4))
        diagram.grid(visible=True, alpha=0.3)
    figure.suptitle(title)
    if to is None:
        pyplot.show()
    else:
        figure.savefig(to, dpi=150)
    pyplot.close(figure)


def _together(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """(times, points) each; one column of x serves many of y, and the other way round."""
    if x.shape[1] > y.shape[1]:
        y = y.repeat(x.shape[1], axis=1)
    return x, y
