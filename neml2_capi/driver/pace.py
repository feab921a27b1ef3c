"""Sizes of the increments of time that are tried."""

from __future__ import annotations

#: Number of increments that must succeed until a larger one is tried.
_SUCCESSES = 2


class Pace:
    """The increments of a step, as fractions of it; the next step goes on with what was learnt."""

    def __init__(self, least: float) -> None:
        self.least = least
        self._size = 1.0
        self._successes = 0

    @property
    def state(self) -> tuple[float, int]:
        """Step size and count of successes, on which the next increments depend."""
        return self._size, self._successes

    @state.setter
    def state(self, value: tuple[float, int]) -> None:
        self._size, self._successes = value

    @property
    def whole(self) -> bool:
        """Whether whole steps are tried."""
        return self._size == 1.0

    def end(self, begin: float) -> float:
        """Return where the increment ends that is tried from `begin` on."""
        end = begin + self._size
        return 1.0 if 1.0 - end < self.least else end  # what is left is no smaller than the least

    def succeeded(self) -> None:
        """The increment is accepted."""
        self._successes += 1
        if self._successes == _SUCCESSES:
            self._size, self._successes = min(2.0 * self._size, 1.0), 0

    def cut(self, length: float, factor: float) -> bool:
        """The increment of this length failed; False if it was the least already."""
        # A length has round-off, and may hold what else would have been left.
        tried = min(length, self._size)
        self._size, self._successes = max(factor * tried, self.least), 0
        return tried > self.least
