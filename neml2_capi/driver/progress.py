"""A progress bar, where somebody sees it."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib


class Bar(Protocol):
    """Progress that is shown."""

    def update(self, more: int) -> object:
        """Count so many more as done."""


class _Hidden:
    def update(self, more: int) -> None:
        pass


def bar(total: int, done: int, unit: str, progress: bool | None) -> AbstractContextManager[Bar]:
    """A bar on stderr: True always, None where that is a terminal and tqdm is there."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if progress is False or (progress is None and not terminal):
        return nullcontext(_Hidden())
    try:
        from tqdm import tqdm
    except ImportError:
        if progress is None:
            return nullcontext(_Hidden())
        raise FatalError(
            "a progress bar needs tqdm: install it with pip install 'neml2_capi[progress]', or "
            "leave out progress=True",
            lib.NEML2_ERROR_MISSING,
            "progress",
        ) from None
    shown: Any = tqdm(total=total, initial=done, unit=unit)
    bar: AbstractContextManager[Bar] = shown
    return bar
