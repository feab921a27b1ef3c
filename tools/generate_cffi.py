"""Write neml2_capi/_ffi/raw.py, the raw cffi layer, from include/neml2_capi.h.

The layer is cffi's out-of-line ABI mode: declarations without compiled code, so that importing it
needs neither a C compiler nor a parser. With --check nothing is written; the exit status says
whether the committed file is what the header asks for.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

import cffi

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "include" / "neml2_capi.h"
TARGET = ROOT / "neml2_capi" / "_ffi" / "raw.py"

PREAMBLE = '''\
"""The raw declarations of include/neml2_capi.h; `python3 build.py generate` writes this file."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

'''


def declarations(header: str) -> str:
    """What a C parser needs of the header: types, enumerators, integer constants and functions."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    text = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [
        line
        for line in text.splitlines()
        if not line.startswith("#") or re.fullmatch(r"#define \w+ -?\d+\s*", line)
    ]
    text = re.sub(r"^NEML2_CAPI ", "", "\n".join(lines), flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def generate(header: Path = HEADER) -> str:
    """The text of raw.py."""
    builder = cffi.FFI()
    builder.cdef(declarations(header.read_text(encoding="utf-8")))
    builder.set_source("neml2_capi._ffi.raw", None)
    with tempfile.TemporaryDirectory() as folder:
        emitted = Path(folder) / "raw.py"
        with contextlib.redirect_stdout(io.StringIO()):
            builder.emit_python_code(str(emitted))
        return PREAMBLE + emitted.read_text(encoding="utf-8")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = arguments.parse_args().check

    wanted = generate()
    present = TARGET.read_text(encoding="utf-8") if TARGET.exists() else None
    if wanted == present:
        return 0
    if check:
        print(
            f"{TARGET.relative_to(ROOT)} does not match {HEADER.relative_to(ROOT)}; "
            "to mend it: python3 build.py generate",
            file=sys.stderr,
        )
        return 1
    TARGET.write_text(wanted, encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
