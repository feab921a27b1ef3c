"""neml2-capi build-kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from neml2_capi.artifact.targets import SYSTEM
from neml2_capi.cli import options
from neml2_capi.cli.screen import console, table
from neml2_capi.header.beside import TARGETS as DEVICES
from neml2_capi.header.beside import write_beside
from neml2_capi.kernels.build import NATIVE, TARGETS, build
from neml2_capi.kernels.folder import folders, read_metadata


@click.command("build-kernels")
@options.artifact
@click.option("--cc", default="", metavar="CC", help="The C compiler: gcc or clang. $CC, else cc.")
@click.option(
    "--target",
    "targets",
    type=click.Choice([*TARGETS, NATIVE, *DEVICES]),
    multiple=True,
    help="A processor to build for; several may be given, native is this machine's. All of this "
    "machine's kind by default. opencl and cuda write the text that such a device compiles.",
)
@options.systems("this one by default; several may be given, or all.")
@click.option("-j", "--jobs", default=0, help="Compilers at a time; one per processor by default.")
def build_kernels_command(
    path: Path, cc: str, targets: tuple[str, ...], systems: tuple[str, ...], jobs: int
) -> None:
    """Compile the kernels of an artifact again, from their C sources.

    Needs a C compiler, and neither NEML2 nor torch: for another processor or system, an older C
    library, or if the objects were deleted. The text for a device needs no compiler.
    """
    processors = [target for target in targets if target not in DEVICES]
    for folder in folders(path):
        if processors or not targets:
            for system in systems or [SYSTEM]:
                build(folder, processors, cc, jobs=jobs, system=system)
            show(folder)
        for device in DEVICES.keys() & targets:
            text, reason = write_beside(folder, device)
            console().print(f"{text}" + (f": values alone, since {reason}" if reason else ""))


def show(folder: Path) -> None:
    """Print what a folder of kernels holds."""
    document = read_metadata(folder)
    kernels = document["kernels"]
    rows = [(k["name"], str(k["graph_nodes"]), str(k["operations"])) for k in kernels]
    columns = ("kernel", "nodes of the graph", "operations a point")
    console().print(table(str(folder), columns, rows, columns[1:]))
    missing = [(Path(m["package"]).name, m["reason"]) for m in document["missing"]]
    if missing:
        console().print(table("Without a kernel", ("package", "because"), missing))
    objects = [_object(entry) for entry in document["objects"]]
    head = ("object", "points in a block", "bytes", "compiler")
    console().print(table("Objects", head, objects, head[1:3]))


def _object(entry: dict[str, Any]) -> tuple[str, ...]:
    return entry["file"], str(entry["lanes"]), str(entry["size"]), entry["compiler"]
