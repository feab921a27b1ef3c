"""The solver options of the engine; include/neml2_capi.h explains each under "Solver options"."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.options import ANY_TEXT
from neml2_capi.engine import newton

_UNBOUNDED = sys.float_info.max


@dataclass(frozen=True)
class Option:
    """What an option can be."""

    default: Any
    least: float = 0.0
    greatest: float = _UNBOUNDED
    whole: bool = False
    choices: tuple[str, ...] = ()  # of a text

    def check(self, name: str, value: Any) -> float | str:
        """`value` as the option keeps it. FatalError where it cannot be that."""
        if self.choices == ANY_TEXT:
            if value != "":
                raise _refused(name, value, "nothing here: this engine writes no capsules")
            return ""
        if value == "required" and value in self.choices:
            raise _refused(name, value, "auto or off: this engine runs the packages alone")
        if self.choices:
            if value not in self.choices:
                raise _refused(name, value, f"one of {', '.join(self.choices)}")
            return str(value)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise _refused(name, value, "a number") from None
        except OverflowError:
            raise _refused(name, "a larger one", "a number that a float can hold") from None
        if not self.least <= number <= self.greatest:
            raise _refused(name, value, f"a number between {self.least} and {self.greatest}")
        if self.whole and number != math.floor(number):
            raise _refused(name, value, "a whole number")
        return number


OPTIONS = {
    "atol": Option(1e-10),
    "rtol": Option(1e-8),
    "miters": Option(25, 1, 1e6, whole=True),
    "ls_type": Option("BACKTRACKING", choices=("BACKTRACKING", "STRONG_WOLFE")),
    "ls_max_iters": Option(1, 1, 1e6, whole=True),
    "ls_cutback": Option(2.0, 1),
    "ls_c": Option(1e-3, 0, 1),
    "substep_del_tol": Option(1e-6),
    "convergence": Option("point", choices=("point", "batch")),
    "collect_history": Option(0, 0, 1, whole=True),
    "chunk": Option(0, 0, 1 << 20, whole=True),  # without effect here
    "threads": Option(0, 0, 1024, whole=True),  # without effect here
    "kernels": Option("auto", choices=("auto", "off", "required")),
    "capsule": Option("", choices=ANY_TEXT),
}


class Options(MutableMapping[str, Any]):
    """The options by name; numbers are floats. FatalError where a value is refused."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """`values`: what differs from the defaults."""
        self._values = {
            name: option.check(name, values.get(name, option.default))
            for name, option in OPTIONS.items()
        }

    def __getitem__(self, name: str) -> Any:
        _known(name)
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = _known(name).check(name, value)

    def __delitem__(self, name: str) -> None:
        raise FatalError(f"the option {name!r} cannot be removed", lib.NEML2_ERROR_ARGUMENT, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def update(self, values: Mapping[str, Any]) -> None:  # type: ignore[override]
        """Set several options; when one is refused, none is changed."""
        self._values.update(
            {name: _known(name).check(name, value) for name, value in values.items()}
        )

    def bounds(self, name: str) -> tuple[float, float]:
        """The least and the greatest value of a number."""
        option = _known(name)
        if option.choices:
            raise _refused(name, "a request for bounds", "a text: see choices()")
        return option.least, option.greatest

    def choices(self, name: str) -> tuple[str, ...]:
        """What a text can be, ("*",) for any text; empty for a number."""
        return _known(name).choices

    def settings(self) -> newton.Settings:
        """What Newton's method is told."""
        return newton.Settings(
            atol=self["atol"],
            rtol=self["rtol"],
            miters=int(self["miters"]),
            strong_wolfe=self["ls_type"] == "STRONG_WOLFE",
            ls_max_iters=int(self["ls_max_iters"]),
            ls_cutback=self["ls_cutback"],
            ls_c=self["ls_c"],
            whole_batch=self["convergence"] == "batch",
        )


def _known(name: str) -> Option:
    try:
        return OPTIONS[name]
    except KeyError:
        raise unknown_name("option", name, OPTIONS) from None


def _refused(name: str, given: Any, wanted: str) -> FatalError:
    return FatalError(
        f"option {name!r} takes {wanted}, not {given!r}", lib.NEML2_ERROR_ARGUMENT, name
    )
