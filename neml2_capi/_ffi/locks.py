"""Locks of the package, which the child of a fork finds free; the only ones there are.

The child of a fork has one thread: a lock that another one held would never be released there.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

__all__ = ["new"]

_ALL: WeakSet[Any] = WeakSet()


def new() -> Any:
    """Return a `threading.RLock`, which its thread may take again."""
    lock = threading.RLock()
    _ALL.add(lock)
    return lock


def _free_in_child() -> None:
    """Free the locks of threads that are gone; locks of the thread that forked stay its own."""
    for lock in list(_ALL):
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_in_child)
