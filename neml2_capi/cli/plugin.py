"""neml2-capi plugin."""

from __future__ import annotations

from pathlib import Path

import click

from neml2_capi.cli import options
from neml2_capi.plugin import HOSTS, make


@click.command("plugin")
@click.argument("paths", metavar="ARTIFACT...", type=options.FilePath(), nargs=-1, required=True)
@options.output(
    "lib<name>.so, <name>.dll for Windows, lib<name>.dylib for macOS; a single material has its "
    "name."
)
@click.option(
    "--mapping",
    "mappings",
    type=options.FilePath(dir_okay=False),
    metavar="FILE",
    multiple=True,
    help="As `neml2-capi umat` drafts it, and you may change it; else as drafted. Of several "
    "artifacts, one for each, in their order.",
)
@click.option("--host", type=click.Choice(HOSTS), default=None, help="By default as it behaves.")
@click.option(
    "--system",
    type=click.Choice(["linux", "windows", "macos"]),
    default=None,
    help="What will load it; by default as the output ends, or this system.",
)
@click.option(
    "--shell",
    "shells",
    type=options.FilePath(dir_okay=False),
    metavar="WHEEL",
    multiple=True,
    help="The wheel of neml2_capi for Windows or macOS, of which a plug-in for it is made "
    "elsewhere. Of two for macOS, the file is for both processors.",
)
@click.option("--packages", is_flag=True, help="The packages too, even if kernels do all.")
def plugin_command(
    paths: tuple[Path, ...],
    output: Path,
    mappings: tuple[Path, ...],
    host: str | None,
    system: str | None,
    shells: tuple[Path, ...],
    packages: bool,
) -> None:
    """Make one shared object for the programs that load a user material.

    It holds the runtime, the artifact and the mapping, and needs no other file. CalculiX, Kratos,
    Abaqus and others find umat_ in it. Of several artifacts the one counts whose name the host
    passes, CMNAME: the name of its mapping file, or of its folder.
    """
    told = make(
        paths,
        output,
        mapping=mappings or None,
        host=host or "",
        packages=packages,
        system=system or "",
        shell=shells or None,
    )
    for line in told:
        click.echo(line)
