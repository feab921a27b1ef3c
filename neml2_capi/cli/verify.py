"""neml2-capi verify."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from neml2_capi._ffi.outside import require_outside, require_writable
from neml2_capi.cli import options
from neml2_capi.cli.comparison import Outcome, draw_missed, outcome, write_junit
from neml2_capi.cli.plot import require_matplotlib
from neml2_capi.cli.screen import console, print_json, table
from neml2_capi.cli.template import write_template
from neml2_capi.cli.verify_file import tests_of


@click.command("verify")
@options.optional_file
@click.argument("artifact", metavar="[ARTIFACT]", required=False, type=options.FilePath())
@options.template("tests")
@click.option(
    "--output",
    metavar="FILE",
    type=options.FilePath(dir_okay=False),
    help="Where --template writes.",
)
@options.changes("each test, for example times.steps=20")
@click.option(
    "--junit",
    metavar="FILE",
    type=options.FilePath(dir_okay=False),
    help="Write what became of each test to this file, in JUnit's XML.",
)
@click.option(
    "--figures",
    metavar="FOLDER",
    type=options.FilePath(file_okay=False),
    help="Draw both curves of each column that differs into this folder; needs matplotlib.",
)
@options.as_json
def verify_command(
    file: Path | None,
    artifact: Path | None,
    template: Path | None,
    output: Path | None,
    changes: Sequence[str],
    junit: Path | None,
    figures: Path | None,
    as_json: bool,
) -> None:
    """Test a law: drive it as a file says, and compare what it gives with what is expected.

    The file holds a table [[test]] for each test: what `neml2-capi run` takes, and the expected
    curves, as values at times, columns of a file, another artifact's results or a closed form, with
    tolerances. What stands above the tests holds for all of them; an ARTIFACT replaces the file's.
    The exit status is 1 if a test fails, and each is made nevertheless.
    """
    if template is not None:
        if file is not None:
            raise click.UsageError("give a FILE.toml to verify, or --template ARTIFACT")
        write_template("verify", template, output)
        return
    if file is None or output is not None:
        raise click.UsageError(
            "give a FILE.toml; --template ARTIFACT --output FILE.toml writes one"
        )
    if junit is not None:
        require_writable(junit, "the JUnit file")
    if figures is not None:
        require_outside(figures)
        require_matplotlib(figures / "figure.png")
        there = next(path for path in (figures, *figures.absolute().parents) if path.exists())
        require_writable(there / "figure.png", "the figures")
    outcomes = [outcome(name, load) for name, load in tests_of(file, artifact, changes)]
    if junit is not None:
        write_junit(junit, str(file), outcomes)
    drawn = draw_missed(figures, outcomes) if figures is not None else []
    if as_json:
        print_json(_summary(file, outcomes, drawn))
    else:
        _show(file, outcomes, drawn)
    failed = [each.name for each in outcomes if not each.passed]
    if failed:
        raise click.ClickException(
            f"{len(failed)} of {len(outcomes)} tests failed: {', '.join(failed)}"
        )


def _summary(file: Path, outcomes: list[Outcome], drawn: list[Path]) -> dict[str, object]:
    return {
        "file": str(file),
        "passed": all(each.passed for each in outcomes),
        "tests": [
            {
                "name": each.name,
                "artifact": each.artifact,
                "passed": each.passed,
                "error": each.error or None,
                "seconds": each.seconds,
                "columns": [comparison.told() for comparison in each.comparisons],
            }
            for each in outcomes
        ],
        "figures": [str(path) for path in drawn],
    }


def _show(file: Path, outcomes: list[Outcome], drawn: list[Path]) -> None:
    screen = console()
    rows = [
        (
            each.name,
            "passed" if each.passed else "failed",
            str(len(each.comparisons)),
            str(sum(comparison.missed.size for comparison in each.comparisons)),
        )
        for each in outcomes
    ]
    names = ("test", "", "columns", "values")
    screen.print(table(str(file), names, rows, right=names[2:]))
    for line in (line for each in outcomes for line in each.lines()):
        screen.print(Text(line), soft_wrap=True)
    for path in drawn:
        screen.print(Text(f"drawn in {path}"), soft_wrap=True)
