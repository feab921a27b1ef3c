"""neml2-capi static."""

from __future__ import annotations

from pathlib import Path

import click

from neml2_capi._ffi.outside import require_writable, written
from neml2_capi.artifact.files import describe_any
from neml2_capi.cli import options
from neml2_capi.kernels.linked import linked
from neml2_capi.kernels.tables import identifier


@click.command("static")
@options.artifact
@options.dtype
@options.output("The file to write, chaboche.c for example.")
@click.option("--name", default="", help="Of the law; the name of the file by default.")
def static_command(path: Path, dtype: str | None, output: Path, name: str) -> None:
    """Write a law as one C file, which a program is linked with, also a static one.

    It holds the artifact and its kernels. The function neml2_source_of_NAME() returns the source
    that neml2_model_open() takes: no file is opened, and no code is loaded.
    """
    require_writable(output, "the law")
    text = linked(path, name or output.stem, describe_any(path, dtype)["dtype"])
    with written(output, "the law") as stream:
        stream.write(text.encode())
    symbol = f"neml2_source_of_{identifier(name or output.stem)}"
    click.echo(f"{output}: {len(text) / 1e3:.0f} kB; neml2_source {symbol}(void)")
