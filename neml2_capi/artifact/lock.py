"""Locks: one holder at a time, of all processes and of all threads of this one."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from neml2_capi._ffi import locks

if sys.platform != "win32":
    import fcntl

#: Seconds between two looks of a thread that waits for another one.
_PAUSE = 0.05


class Busy(Exception):
    """Another one has the lock: "another process", or "another thread of this process"."""


# A lock of lockf is the process's: threads do not see it, and it is gone with the first close of
# its file by any of them. So threads ask here first, and only the holder opens the file. A flock
# would be inherited by workers that are forked, and outlive a process that is killed.
_turn = locks.new()
#: By device and number of the folder, and the name in it: the process of the holder.
_holders: dict[tuple[int, int, str], int] = {}


@contextmanager
def locked(file: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock `file`, whose folder exists; it is removed at the end.

    Busy if another one holds it, unless that is waited for. A file system without locks, or a
    folder that cannot be written, locks threads only.
    """
    folder = file.parent.stat()
    key = (folder.st_dev, folder.st_ino, file.name)
    while not _is_first(key):
        if not wait:
            raise Busy("another thread of this process")
        time.sleep(_PAUSE)
    try:
        stream = _taken(file, wait)
        try:
            yield
        finally:
            if stream is not None:
                with suppress(OSError):
                    file.unlink()  # while it is held: who waits for it sees that it is gone
                stream.close()
    finally:
        with _turn:
            _holders.pop(key, None)


def _is_first(key: tuple[int, int, str]) -> bool:
    """Become the holder of this process, unless there is one."""
    with _turn:
        if _holders.get(key) == os.getpid():  # else it is of the process that forked this one
            return False
        _holders[key] = os.getpid()
        return True


def _taken(file: Path, wait: bool) -> IO[str] | None:
    """The file, locked and still of this name; None if there are no locks."""
    if sys.platform == "win32":
        return None
    while True:
        try:
            stream = file.open("a", encoding="utf-8")
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                return None
            raise
        try:
            fcntl.lockf(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if os.path.samestat(os.fstat(stream.fileno()), file.stat()):
                return stream
        except FileNotFoundError:  # its last holder has removed it
            pass
        except (BlockingIOError, PermissionError):
            stream.close()
            raise Busy("another process") from None
        except OSError:  # a file system without locks
            stream.close()
            return None
        stream.close()
