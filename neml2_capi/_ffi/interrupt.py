"""Signals of Python are heard while the library evaluates."""

from __future__ import annotations

import atexit
from typing import Any

from neml2_capi._ffi.errors import remember_cause
from neml2_capi._ffi.library import ffi, lib


def _raised(kind: Any, error: BaseException, traceback: Any) -> int:
    """Keep what a handler of a signal raised; the number that becomes the cause of the error."""
    return remember_cause(error)


# Python runs the handlers of signals where it begins a function: this one needs no body.
@ffi.callback("int32_t(void *)", onerror=_raised)  # type: ignore[untyped-decorator]
def _asked(context: Any) -> int:
    return 0


def hear_signals() -> None:
    """Have the library ask Python, until the interpreter ends: no thread may call into it then."""
    lib.neml2_interrupt_set(_asked, ffi.NULL)
    atexit.register(lib.neml2_interrupt_set, ffi.NULL, ffi.NULL)
