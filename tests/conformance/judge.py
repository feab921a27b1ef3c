"""A route's results beside torch's and the exact ones: classes, and units in the last place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from table import Operator

Numbers = NDArray[Any]


@dataclass
class Verdict:
    """Of one operator on one route."""

    #: The most units in the last place that a finite result is off, and where.
    ulp: float = 0.0
    at: tuple[float, float] = (0.0, 0.0)
    #: How many results are of another class than torch's and than the exact one, and one of them.
    wrong: int = 0
    example: str = ""


class Exact:
    """The exact values of an operator at all points, in a type."""

    def __init__(
        self, operator: Operator, x: Numbers, y: Numbers, eager: Numbers, in_double: Numbers
    ) -> None:
        import mpmath

        self.eager, self.dtype = eager, eager.dtype
        #: torch's results in double, rounded: its float32 code has faults of its own.
        self.in_double = in_double.astype(eager.dtype)
        self._either_zero = operator.either_zero
        self.rounded = eager.copy()
        #: Exact values less the rounded ones, in units in the last place.
        self.rest = np.zeros(len(x))
        self.known = np.isfinite(eager)
        if operator.exact is None:
            return
        self.known = np.zeros(len(x), dtype=bool)
        for k in range(len(x)):
            if not np.isfinite(x[k]) or (operator.two and not np.isfinite(y[k])):
                continue
            a, b = float(x[k]), float(y[k])
            large = (
                abs(a) > 1e6
                or 0 < abs(a) < 1e-6
                or (operator.two and (abs(b) > 1e6 or abs(b) < 1e-6))
            )
            with mpmath.workdps(350 if large else 60):
                try:
                    value = operator.exact(mpmath, mpmath.mpf(a), mpmath.mpf(b))
                except (ZeroDivisionError, ValueError, OverflowError, NotImplementedError):
                    continue
                if value is None or mpmath.im(value) != 0:
                    continue
                self._note(mpmath, k, mpmath.re(value), a)

    def _note(self, m: Any, k: int, value: Any, x: float) -> None:
        info: Any = np.finfo(self.dtype)
        if abs(value) > float(info.max):
            self.rounded[k] = np.inf if value > 0 else -np.inf
            return
        with np.errstate(under="ignore"):
            self.rounded[k] = float(value)
        if value == 0:
            self.rounded[k] = self.eager[k] if self.eager[k] == 0 else np.copysign(0.0, x)
        unit = _unit(self.rounded[k])
        self.rest[k] = float((value - m.mpf(float(self.rounded[k]))) / m.mpf(unit))
        self.known[k] = True

    def verdict(self, result: Numbers, x: Numbers, y: Numbers) -> Verdict:
        found = Verdict()
        is_exact = self._classes(result) == self._classes(self.rounded)
        wrong = ~is_exact & (self._classes(result) != self._classes(self.eager))
        least = float(np.finfo(self.dtype).smallest_subnormal)  # it and zero are neighbours
        wrong &= self._classes(result) != self._classes(self.in_double)
        wrong &= ~((np.abs(result) <= least) & (np.abs(self.rounded) <= least) & self.known)
        found.wrong = int(wrong.sum())
        if found.wrong:
            k = int(np.flatnonzero(wrong)[0])
            found.example = f"({x[k]:.4g}, {y[k]:.4g}): {result[k]:.4g}, torch {self.eager[k]:.4g}"
        both = self.known & np.isfinite(result) & is_exact
        if both.any():
            with np.errstate(all="ignore"):
                units = np.array([_unit(value) for value in self.rounded[both]])
                apart = (result[both].astype(np.longdouble) - self.rounded[both]) / units
                off = np.abs(apart - self.rest[both])
            worst = int(np.argmax(off))
            found.ulp = float(off[worst])
            place = np.flatnonzero(both)[worst]
            found.at = float(x[place]), float(y[place])
        return found

    def _classes(self, values: Numbers) -> NDArray[np.int64]:
        """NaN, infinite, zero, finite; the last three of both signs."""
        kinds = np.where(np.isinf(values), 1, np.where(values == 0, 2, 3))
        negative = np.signbit(values) & ~((values == 0) & self._either_zero)
        found: NDArray[np.int64] = np.where(np.isnan(values), 0, np.where(negative, -kinds, kinds))
        return found


def _unit(value: Any) -> float:
    """The distance of a number to the next larger one of its binade."""
    with np.errstate(all="ignore"):
        return float(np.spacing(np.abs(value))) if np.isfinite(value) else 1.0
