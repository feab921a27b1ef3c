"""neml2-capi run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from neml2_capi import Results, StepError
from neml2_capi._ffi.outside import require_outside, require_writable
from neml2_capi.cli import options
from neml2_capi.cli.driver_file import Run, format_of, load
from neml2_capi.cli.plot import plot, require_matplotlib
from neml2_capi.cli.screen import console, print_json, table
from neml2_capi.cli.template import write_template
from neml2_capi.driver.tables import axes_of


@click.command("run")
@options.optional_file
@options.template("a run")
@options.changes("the file, for example parameters.E=1e5")
@click.option(
    "--output",
    metavar="FILE",
    type=options.FilePath(dir_okay=False),
    help="Where the results go, .npz or .csv, instead of what the file says.",
)
@click.option(
    "--plot",
    "curves",
    metavar="X:Y",
    multiple=True,
    help="Plot a column over another, strain.xx:stress.xx; may be given several times.",
)
@click.option(
    "--plot-file",
    metavar="FILE",
    type=options.FilePath(dir_okay=False),
    help="Write the plot to this image, .png or .pdf, instead of a window.",
)
@options.as_json
def run_command(
    file: Path | None,
    template: Path | None,
    changes: Sequence[str],
    output: Path | None,
    curves: Sequence[str],
    plot_file: Path | None,
    as_json: bool,
) -> None:
    """Drive a model through time, as a small file says.

    The file names an artifact, times, and what the model is controlled by over time: strain,
    temperature, whatever its inputs are. --template writes one to start from, with all that it can
    hold. Results go to npz (arrays, as stored: tensors in Mandel notation) or csv (a column per
    component of a tensor, stress.xy). If a step fails however often it is cut, those before it
    are written, and the exit status is 1.
    """
    if template is not None:
        if file is not None:
            raise click.UsageError("give a FILE.toml to run, or --template ARTIFACT")
        write_template("run", template, output)
        return
    if file is None:
        raise click.UsageError("give a FILE.toml; --template ARTIFACT writes one to start from")
    run = load(file, changes)
    run.curves = list(curves) or run.curves
    run.plot = plot_file or run.plot
    if output is not None:
        run.output, run.format = output, format_of(output) or run.format
    _check_output(run)
    if run.curves:
        require_matplotlib(run.plot)
    known = run.columns()
    pairs = [axes_of(curve, list(known)) for curve in run.curves]
    plotted = {known[name] for pair in pairs for name in pair} - {""}
    begin, failure = time.perf_counter(), None
    try:
        found = run.drive(plotted, progress=False if as_json else None)
    except StepError as error:
        found, failure = error.results, error
    seconds = time.perf_counter() - begin
    hidden = plotted - {*run.variables}
    results = found.without(hidden)
    columns = results.columns()
    if run.output is not None:
        results._save(run.output, run.format)
    if as_json:
        print_json(_summary(run, results, columns, seconds, failure))
    else:
        _show(run, results, columns, seconds)
    if pairs:
        plot(run.curves, found, file.name, run.plot, run.units)
    if failure is not None:
        raise failure


def _check_output(run: Run) -> None:
    """Before the run, what could not be written after it."""
    if run.plot is not None:
        require_writable(run.plot, "the plot")
    if run.output is None:
        return
    require_outside(run.output)
    if format_of(run.output) not in (None, run.format):
        raise click.ClickException(
            f"{run.output} is named as a {format_of(run.output)} file, but its format is "
            f"{run.format!r}"
        )
    if run.format == "csv" and "derivatives" in run.settings:
        raise click.ClickException(
            f"{run.output}: derivatives are not written to csv; give an output file .npz"
        )
    if not run.output.parent.is_dir():
        raise click.ClickException(f"there is no folder {run.output.parent} for the results")
    require_writable(run.output, "the results")


# ------------------------------------------------------------------------------------------------
# Results
# ------------------------------------------------------------------------------------------------


def _points(run: Run) -> list[list[Any]]:
    """The devices of the scheduler, and how many points each has evaluated."""
    devices = run.model.scheduler.devices if run.model.scheduler else ()
    names = [f"{device.device} ({device.runtime})" for device in devices]
    return [list(pair) for pair in zip(names, run.model.points_evaluated, strict=True)]


def _summary(
    run: Run,
    results: Results,
    columns: Mapping[str, NDArray[Any]],
    seconds: float,
    failure: StepError | None,
) -> dict[str, Any]:
    return {
        "file": str(run.file),
        "artifact": str(run.artifact),
        "completed": failure is None,
        "error": str(failure) if failure else None,
        "times": len(results["t"]),
        "substeps": int(results["substeps"].sum()),
        "seconds": seconds,
        "output": str(run.output) if run.output else None,
        "points": _points(run),
        "results": {name: list(np.shape(value)) for name, value in results.items()},
        "last": {name: values[-1].tolist() for name, values in columns.items()},
    }


def _show(run: Run, results: Results, columns: Mapping[str, NDArray[Any]], seconds: float) -> None:
    screen = console()
    steps, substeps = len(results["t"]) - 1, int(results["substeps"].sum())
    cuts = f", cut into {substeps} increments" if substeps > steps else ""
    title = (
        f"{run.file}: {steps} step{'s' * (steps != 1)} to t = {results['t'][-1]:.6g}{cuts}, "
        f"{seconds:.2g} s"
    )
    shown = {name: values for name, values in columns.items() if name != "substeps"}
    moving = {name: values for name, values in shown.items() if np.any(values)}
    many = any(values.ndim > 1 for values in shown.values())
    names = ("column", "least", "greatest", "at the end", *(["greatest there"] if many else []))
    rows = [
        (name, *(f"{value:.6g}" for value in _extremes(values)))[: len(names)]
        for name, values in moving.items()
    ]
    screen.print(table(title, names, rows, right=names[1:]))
    if len(shown) > len(moving):
        still = ", ".join(name for name in shown if name not in moving)
        screen.print(Text(f"0 at all times: {still}"), soft_wrap=True)
    for name, points in _points(run):
        screen.print(Text(f"{points} points evaluated on {name}"), soft_wrap=True)
    where = f"written to {run.output}" if run.output else "not written: there is no [output] file"
    screen.print(Text(f"{len(results)} arrays, {where}"), soft_wrap=True)


def _extremes(values: NDArray[Any]) -> list[float]:
    """Over time, and at its end; over the points in both. NaN if nothing is known."""
    finite = values[np.isfinite(values)]
    last = np.ravel(values[-1])
    return [
        *((finite.min(), finite.max()) if finite.size else (np.nan, np.nan)),
        *(last.min(), last.max()),
    ]
