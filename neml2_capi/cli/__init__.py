"""The command neml2-capi. It needs click and rich: pip install 'neml2_capi[cli]'."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def main() -> None:
    """Run the command that the arguments of the process name."""
    _open_closed_streams()
    missing = [name for name in ("click", "rich") if not importlib.util.find_spec(name)]
    if missing:
        print(
            f"neml2-capi needs {' and '.join(missing)}; install with: "
            "pip install 'neml2_capi[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    try:
        from neml2_capi.cli.commands import neml2_capi
    except ImportError as error:  # the library is missing, or is not the package's
        sys.exit(f"Error: {error}")
    neml2_capi(prog_name="neml2-capi")


def _open_closed_streams() -> None:
    """A stream that is closed, by >&- in a shell, takes all, as /dev/null does.

    Its number then stands for no file that is opened later, and an error is not told on the other.
    """
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
