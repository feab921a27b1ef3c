"""Write what follows from the C headers of include/: cffi's declarations, regions of the Fortran
module, the description of the ABI in tests/abi, and the version script of the library.

With --check nothing is written; the exit status says whether the committed files are what the
headers ask for.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import abi, cffi_layer, fortran
from tools.header import contract

ROOT = Path(__file__).resolve().parent.parent


def generated() -> Iterator[tuple[Path, str]]:
    """Each file that is generated, in whole or in regions, and its text."""
    parts = contract(ROOT / "include")
    yield ROOT / "neml2_capi" / "_ffi" / "raw.py", cffi_layer.module(ROOT / "include")
    yield from fortran.generated(ROOT / "include", parts)
    description = ROOT / "tests" / "abi" / "declarations.txt"
    before = description.read_text(encoding="utf-8")
    described = abi.described(parts, before, release())
    yield description, described
    script = ROOT / "capi" / "abi" / "neml2_capi.map"
    yield script, abi.version_script(parts, described)


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


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = arguments.parse_args().check
    stale = False
    for path, wanted in generated():
        if path.exists() and path.read_text(encoding="utf-8") == wanted:
            continue
        stale = True
        if not check:
            path.write_text(wanted, encoding="utf-8")
        verb = "does not match the headers of include/" if check else "is renewed"
        print(f"{path.relative_to(ROOT)} {verb}", file=sys.stderr)
    if check and stale:
        print("to mend it: python3 build.py generate", file=sys.stderr)
    told = list(complaints()) if check else []
    for complaint in told:
        print(complaint, file=sys.stderr)
    return int(check and (stale or bool(told)))


if __name__ == "__main__":
    sys.exit(main())
