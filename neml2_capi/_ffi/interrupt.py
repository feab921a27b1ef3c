"""Signals of Python are heard while the library evaluates."""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
import time
from types import FrameType
from typing import Any

from neml2_capi._ffi.errors import remember_cause
from neml2_capi._ffi.library import ffi, lib


def _raised(kind: Any, error: BaseException, traceback: Any) -> int:
    """Keep what a handler of a signal raised; the number that becomes the cause of the error."""
    caller = _module(sys._getframe().f_back)
    if caller[0] != "neml2_capi" or "jax" in caller:
        raise_later(error)  # XLA called the library, and its errors have no cause
    return remember_cause(error)


def raise_later(error: BaseException) -> None:
    """Raise an exception of this class in this thread again, once the call of jax has ended.

    Errors of XLA lose what its callbacks raise, KeyboardInterrupt too.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _module(frame.f_back)[0] in ("neml2_capi", "jax"):
        frame = frame.f_back
    arguments = frame, threading.get_ident(), type(error)
    threading.Thread(target=_raise_after, args=arguments, daemon=True).start()


def _module(frame: FrameType | None) -> list[str]:
    """The parts of the name of the module that runs."""
    return str(frame and frame.f_globals.get("__name__")).split(".")


def _raise_after(frame: FrameType, thread: int, kind: type[BaseException]) -> None:
    while _runs(frame, thread):
        time.sleep(0.001)
    put = ctypes.pythonapi.PyThreadState_SetAsyncExc
    put(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _runs(frame: FrameType, thread: int) -> bool:
    current = sys._current_frames().get(thread)
    while current is not None and current is not frame:
        current = current.f_back
    return current is not None


# Python runs the handlers of signals where it begins a function: this one needs no body.
@ffi.callback("int32_t(void *)", onerror=_raised)  # type: ignore[untyped-decorator]
def _asked(context: Any) -> int:
    return 0


def hear_signals() -> None:
    """Have the library ask Python, until the interpreter ends: no thread may call into it then."""
    lib.neml2_interrupt_set(_asked, ffi.NULL)
    atexit.register(lib.neml2_interrupt_set, ffi.NULL, ffi.NULL)
