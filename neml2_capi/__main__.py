"""Say how to build a program with the library of this package, as pkg-config would.

    cc host.c $(python -m neml2_capi --cflags --libs)
    cmake -Dneml2_capi_DIR=$(python -m neml2_capi --cmakedir) ...

Several flags make one line. If the package lies in a folder with blanks in its path:

    eval "cc host.c $(python -m neml2_capi --cflags --libs)"
    cmake -Dneml2_capi_DIR="$(python -m neml2_capi --cmakedir)" ...
"""

from __future__ import annotations

import argparse
import runpy
import shlex
import sys
from pathlib import Path

from neml2_capi import __version__

_PACKAGE = Path(__file__).absolute().parent
_INCLUDE = _PACKAGE / "include"
_LIBRARIES = _PACKAGE / "lib"

# What each flag is for, and what it prints.
_ANSWERS: dict[str, tuple[str, list[str]]] = {
    "cflags": ("flags for the compiler of C or C++", [f"-I{_INCLUDE}"]),
    "libs": (
        "flags for the linker; the program finds the library when it runs",
        [f"-L{_LIBRARIES}", f"-Wl,-rpath,{_LIBRARIES}", "-lneml2_capi"],
    ),
    "includedir": ("the folder of the headers", [f"{_INCLUDE}"]),
    "libdir": ("the folder of the library", [f"{_LIBRARIES}"]),
    "fortran-module": (
        "the sources of the Fortran modules, to be compiled with the program",
        [f"{_INCLUDE / f'neml2_capi{part}.f90'}" for part in ("_c", "", "_experimental")],
    ),
    "fortran-mpi-module": (
        "the source of the module for hosts with MPI, to be compiled after the others",
        [f"{_INCLUDE / 'neml2_capi_mpi.f90'}"],
    ),
    "examples": (
        "the folder of the compiled examples: elasticity, isotropic_hardening, chaboche",
        [f"{_PACKAGE / 'examples'}"],
    ),
    "calculix": (
        "a script that builds a CalculiX which loads plug-ins, as Debian's does not",
        [f"{_PACKAGE / 'plugin' / 'calculix.sh'}"],
    ),
    "cmakedir": (
        "the folder of the CMake package, for -Dneml2_capi_DIR",
        [f"{_LIBRARIES / 'cmake' / 'neml2_capi'}"],
    ),
    "pkgconfigdir": (
        "the folder of neml2_capi.pc, for PKG_CONFIG_PATH",
        [f"{_LIBRARIES / 'pkgconfig'}"],
    ),
    "version": ("the release", [__version__]),
}


def main() -> None:
    """Print on one line what is asked for, in that order.

    Flags are quoted if a shell needs it, for eval; a path alone is not, for "$(...)".
    """
    parser = argparse.ArgumentParser(
        prog="python -m neml2_capi",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, (meaning, answer) in _ANSWERS.items():
        parser.add_argument(
            f"--{name}", action="append_const", dest="asked", const=answer, help=meaning
        )
    if sys.argv[1:] and not sys.argv[1].startswith("-"):  # a command, as neml2-capi has it
        runpy.run_module("neml2_capi.cli", run_name="__main__")
        return
    asked: list[list[str]] | None = parser.parse_args().asked
    if asked is None:
        parser.print_help()
    else:
        words = [word for answer in asked for word in answer]
        alone = len(words) == 1 and not words[0].startswith("-")
        print(words[0] if alone else shlex.join(words))


if __name__ == "__main__":
    main()
