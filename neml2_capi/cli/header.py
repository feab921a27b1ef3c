"""neml2-capi header."""

from __future__ import annotations

from pathlib import Path

import click

from neml2_capi import Model
from neml2_capi._ffi.outside import require_writable, written
from neml2_capi.artifact.files import describe_any
from neml2_capi.cli import options
from neml2_capi.header import LANGUAGES, header


@click.command("header")
@options.artifact
@options.dtype
@options.output("The file to write, steel.hpp or steel.cl for example.")
@click.option(
    "--language",
    type=click.Choice([*LANGUAGES]),
    help="C++17, for CUDA, HIP and Kokkos, too, or OpenCL C. By the name of the file, if not told.",
)
@click.option("--name", default="", help="The namespace; the name of the file by default.")
@click.option(
    "--bounds",
    type=click.Choice(["off", "fail"]),
    default="off",
    show_default=True,
    help="What becomes of points beyond bounds of validity, unless settings say otherwise.",
)
@click.option("--values", is_flag=True, help="Values alone, without derivatives.")
@click.option(
    "--parameters", is_flag=True, help="Derivatives with respect to parameters, beside inputs."
)
def header_command(
    path: Path,
    dtype: str | None,
    output: Path,
    language: str | None,
    name: str,
    bounds: str,
    values: bool,
    parameters: bool,
) -> None:
    """Write a law as one header, which programs and devices compile with their own code.

    It needs no library: update() evaluates one material point, with the library's Newton's method
    and the same bits on every machine. Made from the C sources of an artifact's kernels.
    """
    if values and parameters:
        raise click.UsageError("--values leaves derivatives out, and --parameters asks for more")
    require_writable(output, "the header")
    chosen = language or ("opencl" if output.suffix == ".cl" else "c++")
    with Model(path, dtype=describe_any(path, dtype)["dtype"]) as model:
        model.options["bounds"] = bounds
        if parameters and not model.parameter_derivatives:
            raise click.ClickException(
                "no derivatives with respect to parameters were compiled: compile the model again "
                "with -p NAME -d :NAME"
            )
        text = header(
            path,
            model,
            chosen,
            name or output.stem,
            derivatives=not values,
            parameters=parameters,
        )
    with written(output, "the header") as stream:
        stream.write(text.encode())
    click.echo(f"{output}: {len(text.splitlines())} lines")
