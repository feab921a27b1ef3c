"""The solver options that a model has."""

from __future__ import annotations

from typing import Any, NamedTuple

from neml2_capi._ffi.inspection import counted, inspected
from neml2_capi._ffi.library import lib, text

#: The choices of a text that can be anything.
ANY_TEXT = ("*",)


class Option(NamedTuple):
    """What an option can be."""

    least: float
    greatest: float
    choices: tuple[str, ...]  # empty for a number; ANY_TEXT for any text


def read_options(model: Any) -> dict[str, Option]:
    """The options of a model handle by name."""
    return dict(_read(model, index) for index in counted(lib.neml2_model_option_count, model))


def _read(model: Any, index: int) -> tuple[str, Option]:
    info = inspected("neml2_option_info", lib.neml2_model_option_inspect, model, index)
    return text(info.name), Option(info.least, info.greatest, tuple(text(info.choices).split()))
