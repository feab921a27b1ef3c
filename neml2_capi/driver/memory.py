"""Memory for records, which waits for the next ones: fresh pages take longer than a law."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from neml2_capi._ffi.labels import Array

#: The least bytes that are worth keeping, and the most that wait.
_LEAST, _MOST = 1 << 20, 1 << 26

#: Memory that nobody uses, the oldest first.
_waiting: deque[Array] = deque()


class _Loan:
    """Memory under arrays, which waits for others when the last of them is gone."""

    def __init__(self, memory: Array) -> None:
        self.__array_interface__ = memory.__array_interface__
        self._memory = memory

    def __del__(self, waiting: deque[Array] = _waiting) -> None:
        waiting.append(self._memory)
        while sum(memory.nbytes for memory in tuple(waiting)) > _MOST:
            waiting.popleft()


def new_rows(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Create an array whose values are not set."""
    size = math.prod(shape) * dtype.itemsize
    if not _LEAST <= size <= _MOST:
        return np.empty(shape, dtype)
    rows: Array = np.asarray(_Loan(_memory(size))).view(dtype).reshape(shape)
    return rows


def _memory(size: int) -> Array:
    for _ in range(len(_waiting)):
        try:
            memory = _waiting.popleft()
        except IndexError:  # other threads took all
            break
        if memory.nbytes == size:
            return memory
        _waiting.append(memory)
    return np.empty(size, np.uint8)
