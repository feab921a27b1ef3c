"""neml2-capi umat."""

from __future__ import annotations

from pathlib import Path

import click

from neml2_capi.cli import options
from neml2_capi.cli.screen import require_new, write_new
from neml2_capi.umat import draft


@click.command("umat")
@options.artifact
@click.option(
    "--output",
    type=options.FilePath(dir_okay=False),
    metavar="FILE",
    help="<material name in lower case>.nml, instead of the screen.",
)
@click.option("--strain", default="", metavar="NAME", help="The strain, an input.")
@click.option("--stress", default="", metavar="NAME", help="The stress, an output.")
@click.option("--time", default="", metavar="NAME", help="The time, an input.")
@click.option("--temperature", default="", metavar="NAME", help="The temperature, an input.")
@click.option(
    "--host",
    type=click.Choice(["abaqus", "calculix"]),
    default=None,
    help="By default as it behaves.",
)
def umat_command(path: Path, output: Path | None, host: str | None, **names: str) -> None:
    """Draft the mapping file by which a plug-in drives an artifact as a UMAT.

    Which variable is the strain, the stress, a state and a constant is guessed from the names: read
    the draft, and change what is not so. `neml2-capi plugin` takes it with --mapping.
    """
    require_new(output)
    write_new(output, "the mapping", draft(path, output, host=host or "", **names))
