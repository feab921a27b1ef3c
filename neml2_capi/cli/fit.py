"""neml2-capi fit."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.text import Text

from neml2_capi import fit
from neml2_capi._ffi.outside import require_outside, require_writable
from neml2_capi.cli import options
from neml2_capi.cli.fit_file import load
from neml2_capi.cli.screen import console, print_json, table
from neml2_capi.fit.artifact import require_new


@click.command("fit")
@click.argument("file", metavar="FILE.toml", type=options.FilePath(exists=True, dir_okay=False))
@click.option(
    "--report",
    metavar="FILE.html",
    type=options.FilePath(dir_okay=False),
    help="Write one page with parameters and figures there.",
)
@click.option(
    "--output",
    metavar="FILE.toml",
    type=options.FilePath(dir_okay=False),
    help="Write the [parameters] there that were found; a file of experiments takes them back.",
)
@click.option("--starts", type=click.IntRange(1), help="From how many places to search.")
@click.option("-j", "--jobs", type=click.IntRange(1), help="Searches at a time, in processes.")
@options.as_json
def fit_command(
    file: Path,
    report: Path | None,
    output: Path | None,
    starts: int | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Fit constants of an artifact to measurements, as a small file says.

    The file names an artifact, [parameters] with their first values and bounds, and
    [[experiments]]: text files of measured columns. docs/fit.md has all that it can hold.
    Combinations of parameters that the data do not tell are named. The exit status is 1 if the
    search was not finished.
    """
    task = load(file)
    report, output = report or task.report, output or task.parameters
    files = {"parameters": output, "report": report, "artifact": task.artifact}
    for what, path in files.items():
        if path is None:
            continue
        require_outside(path)
        if not path.parent.is_dir():
            raise click.ClickException(f"there is no folder {path.parent} for {path.name}")
        if what == "artifact":
            require_new(path)
        require_writable(path, f"the {what}")
    workers, starts = jobs or task.jobs, starts or task.starts
    pool = partial(ProcessPoolExecutor, workers, mp_context=get_context("spawn"))
    found = task.problem.solve(
        task.method,
        starts=starts,
        executor=pool if workers > 1 and starts > 1 else None,
        seed=task.seed,
        progress=False if as_json else None,
    )
    if output is not None:
        found.save(output)
    if report is not None:
        found.report(report)
    if task.artifact is not None:
        found.save_artifact(task.artifact)
    if as_json:
        print_json(_summary(found))
    else:
        _show(found, files)
    if not found.success:
        raise click.ClickException(f"the search was not finished: {found.message}")


def _summary(found: fit.Fit) -> dict[str, Any]:
    return {
        "parameters": found.parameters,
        "deviations": found.deviations,
        "intervals": {name: found.interval(name) for name in found.parameters},
        "unseen": [
            {"changes": each.changes, "deviation": each.deviation, "text": str(each)}
            for each in found.unseen
        ],
        "cost": found.cost,
        "scatter": found.scatter,
        "costs": found.costs,
        "evaluations": found.evaluations,
        "failures": found.failures,
        "success": found.success,
        "message": found.message,
    }


def _show(found: fit.Fit, written: dict[str, Path | None]) -> None:
    screen = console()
    rows = [
        [name, f"{value:.6g}", f"{found.deviations[name]:.2g}"]
        for name, value in found.parameters.items()
    ]
    columns = ("parameter", "value", "standard deviation")
    screen.print(table("Parameters", columns, rows, columns[1:]))
    best = np.isclose(found.costs, found.cost, rtol=1e-4).sum()
    searches = (
        f", {best} of {len(found.costs)} searches ended there" if len(found.costs) > 1 else ""
    )
    screen.print(Text(f"cost {found.cost:.6g}, {found.evaluations} evaluations{searches}"))
    for each in found.warnings:
        screen.print(Text(f"Warning: {each}"))
    if found.failures:
        screen.print(
            Text(
                f"Warning: {len(found.failures)} evaluations failed, and cost a penalty. The "
                f"first: {found.failures[0]}"
            )
        )
    for what, path in written.items():
        if path is not None:
            screen.print(Text(f"wrote the {what}: {path}"))
