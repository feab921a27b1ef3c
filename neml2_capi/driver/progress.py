"""A progress bar, where somebody sees it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from neml2_capi._library import lib
from neml2_capi.errors import FatalError


def shown(steps: range, progress: bool | None) -> Iterable[int]:
    """`steps`, with a bar on stderr: True always, None where it is a terminal and tqdm is there."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if progress is False or (progress is None and not terminal):
        return steps
    try:
        from tqdm import tqdm
    except ImportError:
        if progress is None:
            return steps
        raise FatalError(
            "a progress bar needs tqdm: install it with pip install 'neml2_capi[progress]', or "
            "leave out progress=True",
            lib.NEML2_ERROR_MISSING,
            "progress",
        ) from None
    bar: Iterable[int] = tqdm(steps, unit="step")
    return bar
