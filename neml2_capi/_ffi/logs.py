"""The log of the library, handed to the module `logging`; neml2_capi/logs.py tells users of it."""

from __future__ import annotations

import logging
import os

from neml2_capi._ffi import locks
from neml2_capi._ffi.library import ffi, lib, text

__all__ = ["CHANNELS", "UNASKED", "drain", "follow", "listening"]

#: The loggers of the library, by the names of its channels.
CHANNELS = {
    name: logging.getLogger(f"neml2_capi.{name}")
    for name in ("newton", "linear", "substep", "model", "tensor", "driver", "bounds")
}
#: The channels from which records may come although a call went well: those at INFO or DEBUG, and
#: "bounds" if a model with bounds was opened.
listening: set[str] = set()
#: Those of them that nobody asked for by a level.
UNASKED = frozenset({"bounds"})

_ROOT = logging.getLogger("neml2_capi")
_LEVELS = {
    lib.NEML2_LOG_DEBUG: logging.DEBUG,
    lib.NEML2_LOG_INFO: logging.INFO,
    lib.NEML2_LOG_WARNING: logging.WARNING,
    lib.NEML2_LOG_SILENT: logging.CRITICAL + 1,
}
#: Names of levels, as in NEML2.
_NAMES = {
    **dict.fromkeys(("silent", "off", "none", "0"), lib.NEML2_LOG_SILENT),
    **dict.fromkeys(("warning", "warn", "1"), lib.NEML2_LOG_WARNING),
    **dict.fromkeys(("info", "2"), lib.NEML2_LOG_INFO),
    **dict.fromkeys(("debug", "3"), lib.NEML2_LOG_DEBUG),
}

# Memory that a record is copied to, by one thread at a time.
_turn = locks.new()
_level, _channel = ffi.new("int32_t *"), ffi.new("const char **")
_message = ffi.new("char[]", lib.NEML2_LOG_LENGTH)


def follow() -> None:
    """Give the channels of the library the levels of their loggers. It happens by itself."""
    for name, logger in CHANNELS.items():
        least = max(logger.getEffectiveLevel(), logger.manager.disable + 1)
        enabled = (ours for ours, theirs in _LEVELS.items() if theirs >= least)
        level = max(enabled, default=lib.NEML2_LOG_SILENT)
        lib.neml2_log_level_set(name.encode(), level)
        if name in UNASKED:
            continue  # told by a call that went well: listened to once a model has bounds
        if level > lib.NEML2_LOG_WARNING and name != "driver":
            listening.add(name)
        else:
            listening.discard(name)


def drain(but: str | None = None, bounds: str = "") -> None:
    """Hand the records that wait to their loggers.

    `but` is the text of a warning of Newton's method that is left out: the call will be repeated.
    `bounds` is added to warnings of bounds.
    """
    with _turn:
        taken = (_level, _channel, _message, len(_message), ffi.NULL)
        while lib.neml2_log_next(*taken) == lib.NEML2_OK:
            if _level[0] == lib.NEML2_LOG_SILENT:  # there is none
                return
            level = _LEVELS[_level[0]]
            logger, message = CHANNELS[text(_channel[0])], text(_message)
            if message == but and logger is CHANNELS["newton"]:
                but = None
                continue
            if logger is CHANNELS["bounds"]:
                message += bounds
            if logger.isEnabledFor(level):
                where = ("libneml2_capi", 0)
                logger.handle(logger.makeRecord(logger.name, level, *where, message, (), None))


class _Unheard(logging.Handler):
    """Hands a record to the last resort of `logging`, the standard error, if nobody handles it."""

    def emit(self, record: logging.LogRecord) -> None:
        others = [*CHANNELS["bounds"].handlers, *_ROOT.handlers, *logging.getLogger().handlers]
        silent = (logging.NullHandler, _Unheard)
        if logging.lastResort and all(isinstance(handler, silent) for handler in others):
            logging.lastResort.handle(record)


class _Cache(dict[int, bool]):
    """Cache of a logger's levels, which is cleared whenever one in `logging` changes."""

    def clear(self) -> None:
        super().clear()
        follow()


def _read_environment() -> None:
    """Set what NEML2_LOGS names; the library warns of what nobody understands."""
    loggers = {"all": _ROOT, **CHANNELS}
    for entry in os.environ.get("NEML2_LOGS", "").lower().split(","):
        name, _, level = (part.strip() for part in entry.partition("="))
        if name in loggers and level in _NAMES:
            loggers[name].setLevel(_LEVELS[_NAMES[level]])


_ROOT.addHandler(logging.NullHandler())  # else `logging` would print warnings by itself
CHANNELS["bounds"].addHandler(_Unheard())  # a law that is not valid is not kept quiet
_read_environment()
setattr(_ROOT, "_cache", _Cache())  # noqa: B010  (typeshed does not have it)
follow()
