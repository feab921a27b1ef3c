"""Artifacts that neml2-capi compile has made, opened for the first time."""

from __future__ import annotations

from pathlib import Path

import click

from neml2_capi import FatalError, Model
from neml2_capi._rest import slopes_at_rest
from neml2_capi.artifact.files import describe
from neml2_capi.cli.findings import examine
from neml2_capi.kernels.folder import KernelError
from neml2_capi.kernels.whole import Staging, lacks_kernel, require_opens

ADD_PACKAGES = "Compile it with --kernels auto, which adds packages"
_FLOAT64 = (
    "{0} takes and gives arrays of float64: neml2-compile writes packages of float64 for --dtype "
    "{1}, too"
)


def install(staging: Staging, folders: list[Path], output_dir: Path, dtype: str) -> None:
    """Move artifacts into place, if each can be opened. A click error says what has no kernel."""
    for folder in folders:
        root = folder.parents[1]
        try:
            require_opens(root, dtype)
        except KernelError as error:
            told = f"{root.name} cannot be opened: {error}"
            if lacks_kernel(error):
                told = f"{root.name} cannot run on kernels alone: {error}. {ADD_PACKAGES}"
            raise click.ClickException(f"{told}. Nothing was written.") from error
    for folder in folders:
        staging.install([f"cpu/{dtype}", f"kernels/{dtype}"], folder.parents[1].name)
    for stub in staging.folder.glob("*.i"):
        stub.replace(output_dir / stub.name)


def try_out(artifact: Path, dtype: str) -> None:
    """Open an artifact that is for this machine: an error says why it cannot be.

    Warns of derivatives that are not finite where jobs begin, and of another element type.
    """
    try:
        with Model(artifact, dtype=dtype) as model:
            for warning in slopes_at_rest(model):
                click.echo(f"Warning: {warning}", err=True)
            if str(model.dtype) != dtype:
                click.echo(f"Warning: {_FLOAT64.format(artifact, dtype)}", err=True)
    except FatalError as error:
        if _is_for_another_machine(artifact, dtype):
            return
        raise click.ClickException(
            f"{artifact} was compiled, and cannot be opened: {error}"
        ) from error


def _is_for_another_machine(artifact: Path, dtype: str) -> bool:
    """Tell whether its code is; not so if no machine takes its metadata."""
    try:
        describe(artifact, dtype)
    except FatalError:
        return False
    return bool(examine(artifact, dtype).findings)
