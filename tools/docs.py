"""Write docs/reference from docstrings, comments of the headers, and the commands of neml2-capi.

With --check nothing is written; the exit status says whether the committed pages are what the
sources ask for. Nothing is compiled, and nothing but the commands imported.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.c_reference import c_reference
from tools.command_reference import command_reference
from tools.python_reference import python_reference

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"python.md": python_reference, "c.md": c_reference, "command-line.md": command_reference}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = arguments.parse_args().check

    differing = 0
    for name, write in PAGES.items():
        path, wanted = ROOT / "docs" / "reference" / name, write(ROOT)
        if path.exists() and path.read_text(encoding="utf-8") == wanted:
            continue
        differing += 1
        shown = path.relative_to(ROOT)
        if check:
            print(f"{shown} is not what its sources say; to mend it: python3 build.py docs")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
            print(f"wrote {shown}")
    return int(check and differing > 0)


if __name__ == "__main__":
    sys.exit(main())
