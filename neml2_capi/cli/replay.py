"""neml2-capi replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from neml2_capi import Model
from neml2_capi.artifact.files import metadata_file
from neml2_capi.cli import options
from neml2_capi.cli.capsule import Capsule, read_capsule
from neml2_capi.cli.rerun import STATUS, Outcome, Rerun, chosen, rerun
from neml2_capi.cli.screen import console, print_json, table

_MOST_SHOWN = 8  # of points, if none is named


@click.command("replay")
@click.argument("file", metavar="FILE", type=options.FilePath(exists=True, dir_okay=False))
@click.option(
    "--artifact",
    "path",
    metavar="ARTIFACT",
    type=options.FilePath(),
    help="Where the artifact is now, if not where it was.",
)
@click.option(
    "--point",
    "points",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    multiple=True,
    help=f"Show these points, failed or not; by default the first {_MOST_SHOWN} that failed.",
)
@options.as_json
@click.pass_context
def replay_command(
    context: click.Context, file: Path, path: Path | None, points: Sequence[int], as_json: bool
) -> None:
    """Make a failed call again, and show Newton's method at the points that failed.

    FILE is a capsule, which a model writes of a call that fails: into the folder that its option
    `capsule` names, or the environment variable NEML2_CAPI_CAPSULE. Same inputs, parameters and
    options. It says what has changed in the library and the artifact. The exit status is 0 if
    each point failed as it did before, else 1.
    """
    capsule = read_capsule(file)
    root = path or capsule.artifact
    if not root.exists():
        raise click.ClickException(
            f"the artifact {root} of {file} is not there; say where it is with --artifact"
        )
    differences = capsule.differences(metadata_file(root) or root)
    with Model(root, dtype=capsule.document["artifact"]["dtype"], **capsule.views) as model:
        result = rerun(model, capsule)
    known = {outcome.point for outcome in result.outcomes}
    for point in points:
        if point not in known:
            raise click.BadParameter(
                f"point {point} is not in the capsule, which holds {len(known)} of the "
                f"{capsule.document['batch']} points",
                param_hint="--point",
            )
    if as_json:
        print_json(_document(capsule, result, differences, points))
    else:
        _show(console(), capsule, result, differences, points)
    context.exit(0 if result.reproduced else 1)


def _document(
    capsule: Capsule, result: Rerun, differences: list[str], points: Sequence[int]
) -> dict[str, Any]:
    shown = chosen(result.outcomes if points else result.failed, points)
    return {
        "file": str(capsule.file),
        "reproduced": result.reproduced,
        "exact": all(outcome.exact for outcome in result.outcomes),
        "differences": differences,
        "status": result.status,
        "message": result.message,
        "points": [{**asdict(outcome), "exact": outcome.exact} for outcome in shown],
    }


# ------------------------------------------------------------------------------------------------
# On the screen
# ------------------------------------------------------------------------------------------------


def _show(
    screen: Console,
    capsule: Capsule,
    result: Rerun,
    differences: list[str],
    points: Sequence[int],
) -> None:
    document = capsule.document
    kept = (
        "" if document["kept"] == "all" else f", of which the capsule holds {len(capsule.points)}"
    )
    for line in (
        f"{capsule.file}: a call of {document['batch']} points{kept}",
        f"at {document['time']} on {document['host']['name']}, {document['host']['processor']}",
        f"of {document['artifact']['path']}",
        f"said: {document['message']}",
    ):
        screen.print(Text(line), soft_wrap=True)
    for difference in differences:
        screen.print(Text.assemble(("differs  ", "bold yellow"), difference), soft_wrap=True)
    if document["kept"] != "all" and document["options"]["convergence"] == "batch":
        note = "the points converged as a batch, which is not whole here"
        screen.print(Text.assemble(("differs  ", "bold yellow"), note), soft_wrap=True)
    shown = chosen(result.outcomes if points else result.failed, points)
    if shown:
        _show_points(screen, shown if points else shown[:_MOST_SHOWN])
    if not points and len(shown) > _MOST_SHOWN:
        screen.print(Text(f"{len(shown) - _MOST_SHOWN} more points failed: see --point and --json"))
    screen.print(_verdict(result), soft_wrap=True)


def _show_points(screen: Console, outcomes: list[Outcome]) -> None:
    columns = ("point", "status", "segment", "iterations", "|r|", "suggested cut", "the same")
    rows = (
        (
            str(outcome.point),
            _change(*(STATUS.get(status, str(status)) for status in outcome.status)),
            outcome.segment,
            _change(*map(str, outcome.iterations)),
            _change(*(f"{norm:.6g}" for norm in outcome.residual_norm)),
            _change(*(f"{cut:g}" for cut in outcome.suggested_cut)),
            "to the last bit" if outcome.exact else "no",
        )
        for outcome in outcomes
    )
    screen.print(table("Points", columns, rows, right=("point", "iterations", "|r|")))
    if any(outcome.history for outcome in outcomes):
        title = "Newton's method: |r| at the initial guess, and after each step"
        names = ("step", *(f"point {outcome.point}" for outcome in outcomes))
        lines = (
            (str(step), *(f"{norm:.6e}" if norm is not None else "" for norm in norms))
            for step, norms in enumerate(zip_longest(*(outcome.history for outcome in outcomes)))
        )
        screen.print(table(title, names, lines, right=names))


def _change(then: str, now: str) -> str:
    return then if then == now else f"{then}, now {now}"


def _verdict(result: Rerun) -> Text:
    if result.reproduced:
        exactly = result.outcomes and all(outcome.exact for outcome in result.outcomes)
        return Text("reproduced" + (", to the last bit" if exactly else ""), style="bold green")
    if not result.outcomes:
        return Text(
            f"not reproduced; now it says: {result.message[1] or 'all is well'}", "bold red"
        )
    other = sum(outcome.status[0] != outcome.status[1] for outcome in result.outcomes)
    return Text(
        f"not reproduced: {other} of {len(result.outcomes)} points ended otherwise", "bold red"
    )
