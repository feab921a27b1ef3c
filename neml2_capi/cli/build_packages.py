"""neml2-capi build-packages."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from neml2_capi._ffi.outside import require_outside
from neml2_capi.artifact.lock import locked
from neml2_capi.artifact.rebuild import RebuildError, System, rebuild, torch_headers
from neml2_capi.cli import options
from neml2_capi.kernels.folder import directory_checksum, read_metadata, write_metadata


@click.command("build-packages")
@options.artifact
@click.option(
    "--target",
    required=True,
    metavar="MACHINE-linux-gnu[.GLIBC]",
    help="x86_64-linux-gnu.2.17, aarch64-linux-gnu.2.28, ...",
)
@click.option(
    "--output-dir",
    required=True,
    metavar="DIR",
    type=options.FilePath(),
    help="For DIR/NAME; the artifact itself stays as it is.",
)
@click.option("--cxx", default="", metavar="CXX", help="The C++ compiler; zig, else MACHINE's g++.")
def build_packages_command(path: Path, target: str, output_dir: Path, cxx: str) -> None:
    """Compile the packages of an artifact again, for another machine or an older system.

    From the C++ that they hold, by zig (pip install ziglang) or another C++ compiler for that
    machine, with the headers of the torch of their compilation: from this Python, or from the one
    that the environment variable NEML2_CAPI_COMPILER names. NEML2 is not needed.
    """
    for package in copy_for(path, output_dir, System(target), cxx):
        click.echo(f"wrote {package}")


def copy_for(artifact: Path, into: Path, system: System, cxx: str = "") -> list[Path]:
    """Copy an artifact, and compile its packages again; its kernels go along."""
    root = (artifact if artifact.is_dir() else artifact.parent).resolve()
    copy = into / root.name
    require_outside(copy)
    headers = torch_headers(os.environ.get("NEML2_CAPI_COMPILER") or sys.executable)
    if root in (into.resolve(), *into.resolve().parents):
        raise RebuildError(f"{into} is in the artifact; name a folder outside of it")
    for path in root.rglob("*"):
        if not (path.is_file() or path.is_dir()):  # a pipe or a device has no end
            raise RebuildError(f"{path} is no file that can be copied; delete it")
    packages = sorted(path.relative_to(root) for path in root.rglob("*.pt2"))
    if not packages:
        raise RebuildError(f"{root} has no packages; neml2-capi build-kernels builds its kernels")
    into.mkdir(parents=True, exist_ok=True)
    with locked(into / f".{root.name}.lock", wait=True):
        if copy.exists():
            raise RebuildError(f"{copy} exists; name another folder, or delete it")
        # An artifact with packages of two machines is never visible.
        with tempfile.TemporaryDirectory(prefix=f".{root.name}-", dir=into) as scratch:
            made = Path(scratch) / root.name
            shutil.copytree(root, made)
            for package in packages:
                rebuild(made / package, system, headers, cxx)
            for file in made.glob("kernels/*/kernels.json"):
                _keep_kernels(file, root, made, packages)
            made.rename(copy)
    return [copy / package for package in packages]


def _keep_kernels(file: Path, root: Path, copy: Path, packages: Sequence[Path]) -> None:
    """Let kernels that fitted the packages of the artifact fit the packages of the copy."""
    document = read_metadata(file.parent)
    for entry in document["kernels"]:
        package = Path(entry["package"])
        if package not in packages:
            continue
        if entry["package_checksum"] == directory_checksum(root / package):
            entry["package_checksum"] = directory_checksum(copy / package)
    write_metadata(file.parent, document)
