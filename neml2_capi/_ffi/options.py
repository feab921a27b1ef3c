"""The solver options that a model has."""

from __future__ import annotations

from typing import Any, NamedTuple

from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib, text

#: The choices of a text that can be anything.
ANY_TEXT = ("*",)


class Option(NamedTuple):
    """What an option can be."""

    least: float
    greatest: float
    choices: tuple[str, ...]  # empty for a number; ANY_TEXT for any text


def read_options(model: Any) -> dict[str, Option]:
    """The options of a model handle by name."""
    count = ffi.new("int64_t *")
    check(lib.neml2_model_option_count(count, model))
    return dict(_read(model, index) for index in range(count[0]))


def _read(model: Any, index: int) -> tuple[str, Option]:
    name, choices = ffi.new("const char **"), ffi.new("const char **")
    bounds = ffi.new("double[2]")
    check(lib.neml2_model_option_info(name, bounds, bounds + 1, choices, model, index))
    return text(name[0]), Option(bounds[0], bounds[1], tuple(text(choices[0]).split()))
