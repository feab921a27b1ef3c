"""neml2-capi compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from neml2_capi.cli.remedy import TARGETS

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
    type=click.Choice(list(TARGETS)),
    default="x86-64-v3",
    show_default=True,
    help="The oldest processors that it shall run on. Most since 2013 are x86-64-v3; native: this "
    "machine's.",
)
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
    target: str,
    derivatives: tuple[str, ...],
    parameters: tuple[str, ...],
    dtype: str,
    jobs: int,
    others: tuple[str, ...],
) -> None:
    """Compile a NEML2 input file to an artifact that runs on other machines, too.

    Runs neml2-compile for the CPU, with the processor given by --target instead of this machine's
    own. neml2 and torch must be installed for this Python, or for the one that the environment
    variable NEML2_CAPI_COMPILER names. Other options go to neml2-compile.
    """
    if (model is None) == (driver is None):
        raise click.UsageError("give --model NAME or --driver NAME: what is to be compiled")
    python = os.environ.get(_INTERPRETER) or sys.executable
    _require_compiler(python)
    words = ["--model", model] if model is not None else ["--driver", str(driver)]
    words += ["--output-dir", output_dir, "--device", "cpu", "--dtype", dtype, "-j", str(jobs)]
    words += [word for pair in derivatives for word in ("-d", pair)]
    words += [word for name in parameters for word in ("-p", name)]
    command = [python, "-m", "neml2.cli.aoti_compile", str(file), *words, *others]
    context.exit(subprocess.run(command, env=_environment(python, target)).returncode)


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
