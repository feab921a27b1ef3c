"""neml2-capi doctor."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console, RenderableType
from rich.text import Text

from neml2_capi.artifact.files import DTYPES
from neml2_capi.artifact.needs import Needs, needs_of, this_machine
from neml2_capi.cli import options
from neml2_capi.cli.findings import Finding, examine, packages_there, runtimes
from neml2_capi.cli.inexact import inexact_operators
from neml2_capi.cli.runtimes import Choice
from neml2_capi.cli.screen import console, print_json, table
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
    """Whether an artifact will run on this machine, and what to do if not.

    Tells what each package asks for beside what this machine has: instruction sets, C and C++
    library. Looks at the metadata, and at every function and operator that a package calls, which
    tells what it will run on: the built-in runtime, libtorch, or kernels in its place; and names
    operators whose compiled form is wrong. No compiled code is loaded, but with --run, which opens
    the artifact: a law that takes points together is told so then. The exit status is 1 if anything
    is wrong.
    """
    found = examine(path, dtype)
    findings = found.findings
    choices = [] if findings or found.replaced else runtimes(path, dtype)
    packages = [] if found.replaced else packages_there(path, dtype)
    notes = [
        f"{package.name}: its vector code, which Inductor wrote, is wrong for {operator}. Compile "
        "it by neml2-capi compile, which writes the operator otherwise, or run it on kernels"
        for package in packages
        for operator in inexact_operators(package)
    ]
    needs = [needs_of(package) for package in packages_there(path, dtype)]
    here = this_machine(list(dict.fromkeys(name for need in needs for name in need.libraries)))
    if run and not findings:
        trial = attempt(path, dtype)
        findings += trial.findings
        notes += trial.notes
    if as_json:
        print_json(
            {
                "artifact": str(path),
                "will_run": not findings,
                "findings": [asdict(finding) for finding in findings],
                "runtimes": [asdict(choice) for choice in choices],
                "notes": notes,
                "kernels_because": [asdict(finding) for finding in found.replaced],
                "packages": [asdict(need) for need in needs],
                "machine": asdict(here),
            }
        )
    else:
        if needs:
            console().print(_table(needs, here))
        _show(console(), path, findings, notes, choices, found.replaced, opened=run)
    context.exit(1 if findings else 0)


def _runs_on(replaced: list[Finding], choices: list[Choice]) -> str:
    if replaced:
        why = f"{replaced[0].subject}: {replaced[0].problem}"
        return f"runs on its kernels, since its packages do not run here. {why}"
    if choices:
        return "runs on the built-in runtime: it has all that the packages call"
    return "runs on its kernels: it has no packages"


def _table(needs: list[Needs], here: Needs) -> RenderableType:
    columns = ["", "machine", "instruction sets", "glibc", "libstdc++", "libraries"]
    rows = [
        [n.name, n.machine, n.instruction_sets, n.glibc, n.glibcxx, ", ".join(n.libraries)]
        for n in (*needs, here)
    ]
    if any(need.shim_prefix for need in needs):
        columns.append("prefix of torch's functions")
        rows = [[*row, need.shim_prefix] for row, need in zip(rows, (*needs, here), strict=True)]
    return table("What packages ask for, and what there is", columns, rows)


def _show(
    screen: Console,
    path: Path,
    findings: list[Finding],
    notes: list[str],
    choices: list[Choice],
    replaced: list[Finding],
    *,
    opened: bool,
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
        if not elsewhere:
            screen.print(Text(_runs_on(replaced, choices)), soft_wrap=True)
        if not opened:
            screen.print(Text("it was not opened, which runs its code: --run does"))
        screen.print(Text.assemble((f"{path} will run here", "bold green")), soft_wrap=True)
