"""Curves of one column over another, to a file or to a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from neml2_capi import Results
from neml2_capi._ffi.outside import written


def require_matplotlib(file: Path | None) -> None:
    """If nothing could be drawn, say so before a run and not after it."""
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


def plot(
    curves: Sequence[str], results: Results, title: str, to: Path | None, units: Mapping[str, str]
) -> None:
    """One diagram for each curve, with one line for each material point."""
    from matplotlib import pyplot

    figure = results.plot(*curves, units=units)
    figure.suptitle(title)
    if to is None:
        pyplot.show()
    else:
        with written(to, "the plot") as stream:
            figure.savefig(stream, dpi=150, format=to.suffix.removeprefix(".") or None)
    pyplot.close(figure)
