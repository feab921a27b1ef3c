"""neml2-capi compile."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from neml2_capi.artifact.targets import TARGETS
from neml2_capi.cli.build_kernels import show
from neml2_capi.kernels import capture
from neml2_capi.kernels.build import TARGETS as KERNEL_TARGETS
from neml2_capi.kernels.build import build
from neml2_capi.kernels.collect import collect
from neml2_capi.kernels.folder import KernelError

_INTERPRETER = "NEML2_CAPI_COMPILER"


@click.command("compile", context_settings={"ignore_unknown_options": True})
@click.argument(
    "file", metavar="INPUT.i", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--model", metavar="NAME", help="Of the [Models] block.")
@click.option("--driver", metavar="NAME", help="Compile the model of this [Drivers] block.")
@click.option(
    "--output-dir", metavar="DIR", default="aoti", show_default=True, help="For DIR/NAME."
)
@click.option(
    "--target",
    "targets",
    type=click.Choice(list(dict.fromkeys([*TARGETS, *KERNEL_TARGETS]))),
    multiple=True,
    help="Processors that it shall run on; several may be given. Packages are compiled for the "
    "first, x86-64-v3 by default (most since 2013), native: this machine's. Kernels are compiled "
    "for each, by default x86-64-v2, -v3 and -v4.",
)
@click.option(
    "--kernels",
    type=click.Choice(["auto", "only", "no"]),
    default="auto",
    show_default=True,
    help="Point kernels in C beside the packages: as well, alone (seconds instead of minutes), or "
    "not. A model runs on them where they give what is asked for.",
)
@click.option("--cc", default="", metavar="CC", help="The C compiler of kernels: $CC, else cc.")
@click.option(
    "-d",
    "--derivative",
    "derivatives",
    metavar="OUT:IN",
    multiple=True,
    help="Compile this derivative; ':' is all of them.",
)
@click.option(
    "-p",
    "--parameter",
    "parameters",
    metavar="NAME",
    multiple=True,
    help="Let this parameter change at run time.",
)
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64")
@click.option("-j", "--jobs", default=1, show_default=True, help="Segments compiled at a time.")
@click.argument("others", metavar="[OPTION OF neml2-compile]...", nargs=-1)
@click.pass_context
def compile_command(
    context: click.Context,
    file: Path,
    model: str | None,
    driver: str | None,
    output_dir: str,
    targets: tuple[str, ...],
    kernels: str,
    cc: str,
    derivatives: tuple[str, ...],
    parameters: tuple[str, ...],
    dtype: str,
    jobs: int,
    others: tuple[str, ...],
) -> None:
    """Compile a NEML2 input file to an artifact that runs on other machines, too.

    Runs neml2-compile for the CPU, with the processor given by --target instead of this machine's
    own, and writes a kernel in C for each package, in DIR/NAME/kernels. neml2 and torch must be
    installed for this Python, or for the one that the environment variable NEML2_CAPI_COMPILER
    names. Other options go to neml2-compile.
    """
    if (model is None) == (driver is None):
        raise click.UsageError("give --model NAME or --driver NAME: what is to be compiled")
    python = os.environ.get(_INTERPRETER) or sys.executable
    _require_compiler(python)
    words = ["--model", model] if model is not None else ["--driver", str(driver)]
    words += ["--output-dir", output_dir, "--device", "cpu", "--dtype", dtype, "-j", str(jobs)]
    words += [word for pair in derivatives for word in ("-d", pair)]
    words += [word for name in parameters for word in ("-p", name)]
    environment = _environment(python, _target_of_packages(targets, kernels))
    if kernels == "no":
        command = [python, "-m", "neml2.cli.aoti_compile", str(file), *words, *others]
        context.exit(subprocess.run(command, env=environment).returncode)
    with tempfile.TemporaryDirectory() as scratch:
        environment[capture.INTO] = scratch
        environment[capture.ONLY] = "1" if kernels == "only" else ""
        command = [python, capture.__file__, str(file), *words, *others]
        status = subprocess.run(command, env=environment).returncode
        if status:
            context.exit(status)
        wanted = [target for target in targets if target in KERNEL_TARGETS]
        quiet = bool({"-q", "--quiet"} & set(others))
        _write_kernels(Path(scratch), wanted, cc, kernels == "only", quiet)


def _target_of_packages(targets: tuple[str, ...], kernels: str) -> str:
    """The first target. A usage error where AOTInductor does not know it."""
    target = next(iter(targets), "x86-64-v3")
    if target in TARGETS:
        return target
    if kernels == "only":
        return "x86-64-v3"
    raise click.UsageError(
        f"packages cannot be compiled for {target}; name one of {', '.join(TARGETS)} first, or "
        "give --kernels only"
    )


def _write_kernels(scratch: Path, targets: list[str], cc: str, required: bool, quiet: bool) -> None:
    """Write the sources of kernels, and their objects where there is a compiler."""
    try:
        folders = collect(scratch)
    except KernelError as error:
        if required:
            raise click.ClickException(str(error)) from error
        click.echo(f"Warning: there are no kernels: {error}", err=True)
        return
    for folder in folders:
        try:
            build(folder, targets, cc)
        except KernelError as error:
            click.echo(f"Warning: {error}\nThe sources are in {folder}.", err=True)
        if not quiet:
            show(folder)


def _environment(python: str, target: str) -> dict[str, str]:
    # Tools that are installed beside an interpreter are found.
    path = f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, **TARGETS[target]}


def _require_compiler(python: str) -> None:
    find = (
        "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ('neml2', 'torch'))))"
    )
    try:
        found = subprocess.run([python, "-c", find], capture_output=True).returncode == 0
    except OSError as error:
        raise click.ClickException(f"{_INTERPRETER} is {python}: {error.strerror}") from error
    if not found:
        raise click.ClickException(
            f"{python} has no neml2 and torch to compile with. Install them with: pip install "
            f"'neml2_capi[compile]', or name an interpreter that has them in {_INTERPRETER}."
        )
