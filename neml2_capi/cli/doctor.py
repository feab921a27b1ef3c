"""neml2-capi doctor."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from neml2_capi.artifact.files import DTYPES
from neml2_capi.cli import options
from neml2_capi.cli.findings import Finding, examine, runtimes
from neml2_capi.cli.runtimes import Choice
from neml2_capi.cli.screen import console
from neml2_capi.cli.trial import attempt


@click.command("doctor")
@options.artifact
@click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    default="float64",
    show_default=True,
    help="The element type that the host will ask for.",
)
@click.option("--run", is_flag=True, help="Also load it, and evaluate it once, in a child process.")
@options.as_json
@click.pass_context
def doctor_command(
    context: click.Context, path: Path, dtype: str, run: bool, as_json: bool
) -> None:
    """Whether an artifact will run on this machine, and what to do where not.

    Looks at the metadata, and in each package at its device, machine, instruction sets, C library,
    and at every function and operator that it calls, which tells what it will run on: the built-in
    runtime or libtorch. No compiled code is loaded, but with --run. The exit status is 1 where
    anything is wrong.
    """
    findings = examine(path, dtype)
    choices = [] if findings else runtimes(path, dtype)
    notes: list[str] = []
    if run and not findings:
        trial = attempt(path, dtype)
        findings += trial.findings
        notes += trial.notes
    if as_json:
        document = {
            "artifact": str(path),
            "will_run": not findings,
            "findings": [asdict(finding) for finding in findings],
            "runtimes": [asdict(choice) for choice in choices],
            "notes": notes,
        }
        click.echo(json.dumps(document, indent=2))
    else:
        _show(console(), path, findings, notes, choices)
    context.exit(1 if findings else 0)


def _show(
    screen: Console,
    path: Path,
    findings: list[Finding],
    notes: list[str],
    choices: list[Choice],
) -> None:
    for finding in findings:
        about = f"{finding.subject}: " if finding.subject not in finding.problem else ""
        screen.print(Text.assemble(("wrong  ", "bold red"), about, finding.problem), soft_wrap=True)
        screen.print(Text(f"       {finding.mend}"), soft_wrap=True)
    elsewhere = [str(choice) for choice in choices if choice.runtime != "builtin"]
    for note in notes + elsewhere:
        screen.print(Text.assemble(("note   ", "bold yellow"), note), soft_wrap=True)
    if findings:
        many = "1 thing is" if len(findings) == 1 else f"{len(findings)} things are"
        screen.print(Text(f"{path} will not run here: {many} wrong"), soft_wrap=True)
    else:
        if not choices:
            screen.print("runs on its kernels: it has no packages")
        elif not elsewhere:
            screen.print("runs on the built-in runtime: it has all that the packages call")
        screen.print(Text.assemble((f"{path} will run here", "bold green")), soft_wrap=True)
