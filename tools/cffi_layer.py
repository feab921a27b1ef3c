"""neml2_capi/_ffi/raw.py, the raw cffi layer, from the C headers.

The layer is cffi's out-of-line ABI mode: declarations without compiled code, so that importing it
needs neither a C compiler nor a parser.
"""

from __future__ import annotations

import io
from collections.abc import Iterable

import cffi

from tools.header import Part

PREAMBLE = '''\
"""The raw declarations of the C headers; `python3 build.py generate` writes this file."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

'''


def module(parts: Iterable[Part]) -> str:
    """The text of raw.py."""
    builder = cffi.FFI()
    builder.cdef("\n".join(part.code for part in parts))
    builder.set_source("neml2_capi._ffi.raw", None, compiler_verbose=0)
    emitted = io.StringIO()
    builder.emit_python_code(emitted)
    return PREAMBLE + emitted.getvalue()
