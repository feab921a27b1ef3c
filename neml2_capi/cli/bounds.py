"""neml2-capi bounds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from neml2_capi._ffi.errors import FatalError
from neml2_capi.artifact import bounds as files
from neml2_capi.artifact.bounds import Interval
from neml2_capi.artifact.files import describe_any, metadata_file
from neml2_capi.cli import options


def given(words: Iterable[str], physical: Iterable[str]) -> list[Interval]:
    """What the options of a command say: files of TOML, and NAME=LOWER:UPPER."""
    found: list[Interval] = []
    for word in words:
        is_file = word.endswith(".toml") and "=" not in word
        found += files.from_toml(word) if is_file else [files.parsed(word)]
    return found + [files.parsed(word, "physical") for word in physical]


def write(artifact: Path, wanted: list[Interval]) -> None:
    """Write the bounds of an artifact, if they are of its variables."""
    if wanted:
        files.require_fit(wanted, files.sizes_of(describe_any(artifact, None)))
    files.write(artifact, wanted)


@click.command("bounds")
@options.artifact
@click.argument("words", metavar="[FILE.toml | NAME=LOWER:UPPER]...", nargs=-1)
@click.option(
    "--physical",
    metavar="NAME=LOWER:UPPER",
    multiple=True,
    help="Physical bounds, beyond which a value has no meaning.",
)
@click.option("--remove", is_flag=True, help="Remove all bounds.")
def bounds_command(
    path: Path, words: tuple[str, ...], physical: tuple[str, ...], remove: bool
) -> None:
    """Show, write or remove the bounds of an artifact: where its law is valid.

    They are of inputs and parameters, temperature=20:600 for example; either side may be left out:
    E=0:. A file of TOML has a table for each variable, with lower and upper, a number or one for
    each component, and a table physical with the same. What is given replaces the bounds that the
    artifact has; without anything they are shown.
    """
    metadata = metadata_file(path)
    if metadata is None:
        raise FatalError(f"{path} is no folder of an artifact")
    if remove and (words or physical):
        raise click.UsageError("--remove removes all bounds: give no others")
    if remove or words or physical:
        write(metadata.parent, given(words, physical))
    for each in files.read(metadata.parent):
        lower, upper = (_shown(side) for side in (each.lower, each.upper))
        click.echo(f"{each.variable}: {lower} to {upper} ({each.kind})")


def _shown(side: list[float]) -> str:
    numbers = [f"{number:g}" for number in side]
    return numbers[0] if len(numbers) == 1 else f"[{', '.join(numbers)}]"
