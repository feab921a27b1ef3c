"""What the system refuses, told by the limit that it met."""

from __future__ import annotations

import errno
import os
import stat
import sys

if sys.platform != "win32":
    import resource

__all__ = ["NO_FILE", "Refusal", "is_stream", "reason_of"]

#: What the limit is of, its option of ulimit, and its unit.
_LIMITS = {
    errno.EFBIG: (
        "a file of this process may not be so large",
        "f",
        "RLIMIT_FSIZE",
        " bytes",
    ),
    errno.EMFILE: ("the process has as many files open as it may", "n", "RLIMIT_NOFILE", ""),
}


#: What a message says of a stream.
NO_FILE = "it is a device, a pipe or a socket; expected a file"


class Refusal(Exception):
    """Refusal of a tool, with what to do; the command line prints its message unchanged."""


def is_stream(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether a path leads to a device, a pipe or a socket, which may never end or never begin."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def reason_of(error: OSError) -> str:
    """Return what the system has against it: "... as it may (ulimit -n is 4)"."""
    if sys.platform == "win32" or error.errno not in _LIMITS:
        return error.strerror or str(error)
    what, option, name, unit = _LIMITS[error.errno]
    limit = resource.getrlimit(getattr(resource, name))[0]
    value = "" if limit == resource.RLIM_INFINITY else f" is {limit}{unit}"
    return f"{what} (ulimit -{option}{value})"
