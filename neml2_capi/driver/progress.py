"""A progress bar, on a terminal."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from time import monotonic
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


class _Hint(_Hidden):
    """Replaces a bar if tqdm is not installed: says once that tqdm would show one."""

    told = False
    patience = 5.0  # seconds

    def __init__(self) -> None:
        self._start = monotonic()

    def update(self, more: int) -> None:
        if not _Hint.told and monotonic() - self._start > self.patience:
            _Hint.told = True
            hint = "neml2_capi: pip install tqdm shows a progress bar here; progress=False no hint"
            print(hint, file=sys.stderr)


def bar(total: int, done: int, unit: str, progress: bool | None) -> AbstractContextManager[Bar]:
    """A bar on stderr: True unless that is closed, None if it is a terminal and tqdm is there."""
    if sys.stderr is None or progress is False or (progress is None and not sys.stderr.isatty()):
        return nullcontext(_Hidden())
    try:
        from tqdm import tqdm
    except ImportError:
        if progress is None:
            return nullcontext(_Hint())
        raise FatalError(
            "a progress bar needs tqdm: install it with pip install 'neml2_capi[progress]', or "
            "leave out progress=True",
            lib.NEML2_ERROR_MISSING,
            "progress",
        ) from None
    shown: Any = tqdm(total=total, initial=done, unit=unit)
    bar: AbstractContextManager[Bar] = shown
    return bar
