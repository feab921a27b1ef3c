"""neml2-capi page."""

from __future__ import annotations

from pathlib import Path

import click

from neml2_capi.cli import options
from neml2_capi.page import make


@click.command("page")
@options.artifact
@options.output("The file to write, law.html for example.")
@click.option("--title", default="", help="The headline; the artifact's name by default.")
@click.option("--cc", default="", metavar="CC", help="A clang with wasm-ld, instead of zig.")
def page_command(path: Path, output: Path, title: str, cc: str) -> None:
    """Write a law as one page for a browser, with sliders and curves.

    The law runs in the page, by WebAssembly: tension, shear, cycles and creep follow its
    parameters. It needs no server and no network. Made from the C sources of an artifact's kernels,
    by zig: python3 -m pip install ziglang.
    """
    make(path, output, title=title, cc=cc)
    click.echo(f"{output}: {output.stat().st_size / 1e3:.0f} kB")
