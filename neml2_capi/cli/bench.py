"""neml2-capi bench."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np
from rich.text import Text

from neml2_capi import Model, Scheduler
from neml2_capi._rest import plausible
from neml2_capi.artifact.files import describe_any
from neml2_capi.artifact.targets import processors
from neml2_capi.cli import options
from neml2_capi.cli.screen import console, print_json, table
from neml2_capi.cli.timing import Arrays, Timing, available, measure
from neml2_capi.driver.npz import read_npz

_BATCHES = (1, 10, 100, 1000, 10000)
_STATES = 64  # different ones, which are repeated


@click.command("bench")
@options.artifact
@options.dtype
@click.option(
    "--batch",
    "batches",
    type=click.IntRange(min=1),
    multiple=True,
    default=_BATCHES,
    show_default=True,
    help="How many points; may be given several times.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    multiple=True,
    help="How many threads; may be given several times. By default 1, and all processors here.",
)
@click.option("--operation", "wanted", multiple=True, help="One that was compiled; all by default.")
@click.option(
    "--inputs",
    type=options.FilePath(exists=True, dir_okay=False),
    metavar="FILE.npz",
    help="States to evaluate: an array (points, ...) per input. How often Newton's method iterates "
    "depends on them; made-up ones are small strains from rest.",
)
@click.option(
    "--scheduler",
    "devices",
    type=options.FilePath(exists=True, dir_okay=False),
    metavar="FILE.toml",
    help="Spread the points over devices, as the table [scheduler] of a file says.",
)
@click.option(
    "--seconds", default=0.2, show_default=True, help="To spend on each number, at the least."
)
@options.as_json
def bench_command(
    path: Path,
    dtype: str | None,
    batches: Sequence[int],
    threads: Sequence[int],
    wanted: Sequence[str],
    inputs: Path | None,
    devices: Path | None,
    seconds: float,
    as_json: bool,
) -> None:
    """How long an artifact takes per material point on this machine.

    Microseconds per point of each operation, by the number of points in a call and of threads: the
    least of some samples, calls from Python included.
    """
    if not 0 <= seconds < math.inf:
        raise click.BadParameter(
            f"must be 0 or more, and finite; got {seconds}", param_hint="--seconds"
        )
    scheduler = Scheduler.from_toml(devices) if devices else None
    dtype = describe_any(path, dtype)["dtype"]
    with Model(path, dtype=dtype, scheduler=scheduler) as model:
        state = _states(model, inputs) if inputs else plausible(model, _STATES)
        known = available(model, state)
        for name in wanted:
            if name not in known:
                raise click.BadParameter(
                    f"there is no {name!r}. The artifact has: {', '.join(known)}",
                    param_hint="--operation",
                )
        counts = threads or sorted({1, processors()})
        timings = list(measure(model, state, wanted or known, batches, counts, seconds))
    if as_json:
        print_json({"artifact": str(path), "timings": [asdict(timing) for timing in timings]})
    else:
        _show(path, timings)


def _states(model: Model, file: Path) -> Arrays:
    states = read_npz(file, "--inputs")
    missing = [name for name in model.inputs.names if name not in states]
    if missing:
        raise click.ClickException(f"{file} has no array of the inputs: {', '.join(missing)}")
    lengths = {np.shape(states[name])[:1] for name in model.inputs.names}
    if len(lengths) != 1 or lengths & {(), (0,)}:
        raise click.ClickException(f"{file}: every array must have one row per point, as many each")
    return {name: states[name] for name in model.inputs.names}


def _number(value: float) -> str:
    """In three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _show(path: Path, timings: Sequence[Timing]) -> None:
    names = list(dict.fromkeys(timing.operation for timing in timings))
    values = {(t.points, t.threads, t.operation): t for t in timings}
    rows = [
        (
            str(points),
            str(threads),
            *(_number(values[points, threads, name].microseconds_per_point) for name in names),
        )
        for points, threads in dict.fromkeys((t.points, t.threads) for t in timings)
    ]
    columns = ("points", "threads", *names)
    screen = console()
    screen.print(table(f"{path}: microseconds per point", columns, rows, right=columns))
    failed = max((timing.failed / timing.points for timing in timings), default=0.0)
    if failed:
        screen.print(
            Text(f"{failed:.0%} of the points did not converge: give states of yours by --inputs")
        )
