"""The command neml2-capi. It needs click and rich: pip install 'neml2_capi[cli]'."""

from __future__ import annotations

import importlib.util
import sys


def main() -> None:
    """Run the command that the arguments of the process name."""
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
