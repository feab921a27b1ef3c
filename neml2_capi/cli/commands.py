"""The command neml2-capi and its subcommands, which are imported when they are called."""

from __future__ import annotations

import importlib
import sys
from io import TextIOWrapper
from typing import Any

import click

from neml2_capi import Error, __version__
from neml2_capi._ffi.refusals import Refusal, reason_of

_COMMANDS = {
    "inspect": "What an artifact takes, gives and was compiled for.",
    "doctor": "Whether an artifact will run on this machine, and what to do if not.",
    "compile": "Compile a NEML2 input file to an artifact that runs on other machines, too.",
    "bounds": "Show or write where the law of an artifact is valid.",
    "build-kernels": "Compile the C sources of an artifact's kernels again, for any processor.",
    "header": "Write a law as one header, for programs and devices that compile it themselves.",
    "build-packages": "Compile the packages of an artifact again, for another machine or system.",
    "run": "Drive a model through time, as a small file says.",
    "verify": "Compare what a law gives with what is expected, as a small file says.",
    "fit": "Fit constants of an artifact to measurements, as a small file says.",
    "bench": "How long an artifact takes per material point on this machine.",
    "replay": "Make a failed call again, and show Newton's method at the points that failed.",
    "plugin": "Make one shared object for the programs that load a user material.",
    "page": "Write a law as one page for a browser, with sliders and curves.",
    "static": "Write a law as one C file, which a program is linked with, also a static one.",
    "umat": "Draft the mapping file by which a plug-in drives an artifact as a UMAT.",
}


class Commands(click.Group):
    """A group that loads a command by its name, and says an error in one line."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        stem = name.replace("-", "_")
        module = importlib.import_module(f"neml2_capi.cli.{stem}")
        command: click.Command = getattr(module, f"{stem}_command")
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, context: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # a path or a file may hold what is no text
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(context)
        except BrokenPipeError:  # the reader of a pipe has seen enough
            raise
        except Error as error:
            raise click.ClickException("; ".join(str(error).splitlines())) from error
        except Refusal as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            where = f"{error.filename}: " if error.filename is not None else ""
            raise click.ClickException(f"{where}{reason_of(error)}") from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="neml2-capi")
def neml2_capi() -> None:
    """Look at, check, compile, run and time material models compiled by NEML2.

    An ARTIFACT is the folder that neml2-compile wrote, with metadata.json in it; or that file, a
    device folder, or the stub <model>_aoti.i beside it.
    """
