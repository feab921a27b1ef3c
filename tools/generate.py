"""Write what follows from the C headers of include/: cffi's declarations, regions of the Fortran
modules, the description of the ABI in tests/abi, and the version script of the library.

With --reference, write docs/reference instead, from docstrings, comments of the headers and the
commands of neml2-capi. With --check nothing is written; the exit status says whether the committed
files are what their sources ask for. Nothing is compiled, and nothing but the commands imported.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import abi, cffi_layer, fortran
from tools.header import contract
from tools.process import ROOT


def sources() -> Iterator[tuple[Path, str]]:
    """Each file that is generated from the headers, in whole or in regions, and its text."""
    parts = contract(ROOT / "include")
    yield ROOT / "neml2_capi" / "_ffi" / "raw.py", cffi_layer.module(parts)
    yield from fortran.generated(ROOT / "include", parts)
    description = ROOT / "tests" / "abi" / "declarations.txt"
    before = description.read_text(encoding="utf-8")
    described = abi.described(parts, before, release())
    yield description, described
    script = ROOT / "capi" / "abi" / "neml2_capi.map"
    yield script, abi.version_script(parts, described)


def reference() -> Iterator[tuple[Path, str]]:
    """Each page of the reference, and its text."""
    # What the pages need is not needed for the sources.
    from tools.c_reference import c_reference
    from tools.command_reference import command_reference
    from tools.python_reference import python_reference

    pages = ROOT / "docs" / "reference"
    yield pages / "python.md", python_reference(ROOT)
    yield pages / "c.md", c_reference(ROOT)
    yield pages / "command-line.md", command_reference(ROOT)


def release() -> str:
    """The release under way."""
    found = re.search(r"^  VERSION ([\d.]+)$", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert found, "CMakeLists.txt has a line '  VERSION x.y.z'"
    return found[1]


def complaints() -> Iterator[str]:
    """What no program can mend: exports and changes that nobody is told of."""
    parts = contract(ROOT / "include")
    for name in abi.undeclared(parts, sorted((ROOT / "capi" / "abi").glob("*.cpp"))):
        yield f"{name} is not in both a header of include/ and capi/abi: declare and define it"
    description = (ROOT / "tests" / "abi" / "declarations.txt").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in abi.untold(description, changelog, release()):
        yield f"{name} has changed: tell it in CHANGELOG.md, under {release()}"


def main() -> str | None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", action="store_true", help="the pages of docs/reference")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    arguments = parser.parse_args()
    generated, command = (reference, "docs") if arguments.reference else (sources, "generate")
    wrong = []
    for path, wanted in generated():
        if path.exists() and path.read_text(encoding="utf-8") == wanted:
            continue
        shown = path.relative_to(ROOT)
        if arguments.check:
            wrong.append(f"{shown} does not match its sources: python3 build.py {command} mends it")
        else:
            path.write_text(wanted, encoding="utf-8")
            print(f"{shown} is renewed")
    if arguments.check and not arguments.reference:
        wrong += complaints()
    return "\n".join(wrong) or None


if __name__ == "__main__":
    sys.exit(main())
