"""neml2_capi/_ffi/raw.py, the raw cffi layer, from the text of the C headers.

The layer is cffi's out-of-line ABI mode: declarations without compiled code, so that importing it
needs neither a C compiler nor a parser.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from pathlib import Path

import cffi

from tools.header import EXPERIMENTAL, STABLE

PREAMBLE = '''\
"""The raw declarations of the C headers; `python3 build.py generate` writes this file."""
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


def module(include: Path) -> str:
    """The text of raw.py."""
    header = "".join((include / name).read_text("utf-8") for name in (STABLE, EXPERIMENTAL))
    builder = cffi.FFI()
    builder.cdef(declarations(header))
    builder.set_source("neml2_capi._ffi.raw", None)
    with tempfile.TemporaryDirectory() as folder:
        emitted = Path(folder) / "raw.py"
        with contextlib.redirect_stdout(io.StringIO()):
            builder.emit_python_code(str(emitted))
        return PREAMBLE + emitted.read_text(encoding="utf-8")
