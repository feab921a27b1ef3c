"""The solver options of the engine; include/neml2_capi.h explains each under "Solver options"."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neml2_capi._ffi.options import ANY_TEXT, Options, refused
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

    def check(self, name: str, value: Any) -> None:
        """FatalError unless the option can be this text or float."""
        if self.choices == ANY_TEXT:
            wanted = "nothing here: this engine writes no capsules" if value else ""
        elif value == "required" and value in self.choices:
            wanted = "auto or off: this engine runs the packages alone"
        elif self.choices:
            wanted = "" if value in self.choices else f"one of {', '.join(self.choices)}"
        elif not self.least <= value <= self.greatest:
            wanted = f"a number between {self.least} and {self.greatest}"
        else:
            wanted = "a whole number" if self.whole and value != math.floor(value) else ""
        if wanted:
            raise refused(name, repr(value), wanted)


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


class EngineOptions(Options):
    """The options of an engine."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """`values`: what differs from the defaults."""
        super().__init__(OPTIONS)
        self._values: dict[str, Any] = {}
        for name, option in OPTIONS.items():
            self[name] = values.get(name, option.default)

    def _get(self, name: str) -> Any:
        return self._values[name]

    def _set(self, name: str, value: Any) -> None:
        OPTIONS[name].check(name, value)
        self._values[name] = value

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
