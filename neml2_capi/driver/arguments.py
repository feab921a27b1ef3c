"""Checks of arguments that are no arrays: errors name the argument and what was expected."""

from __future__ import annotations

import os
from numbers import Real
from typing import Any, TypeGuard

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.model.model import Model


def wrong(name: str, problem: str) -> FatalError:
    """The error of an argument: `strain must be ...`."""
    return FatalError(f"{name} {problem}", lib.NEML2_ERROR_ARGUMENT, name)


def check_is_model(model: object) -> None:
    """FatalError unless it is an open model."""
    if not isinstance(model, Model):
        raise wrong(
            "model", f"must be a Model; got a {type(model).__name__}: open it first, Model(path)"
        )


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether it is a real number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_whole(name: str, value: object, least: int, what: str = "a whole number") -> int:
    """Return it as an int; FatalError unless it is a whole number, `least` at least."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise wrong(name, f"must be {what}, {least} at least; got {value!r}")
    return int(value)  # type: ignore[call-overload,no-any-return]


def check_fraction(name: str, value: Any) -> None:
    """FatalError unless it is above 0 and at most 1."""
    if not is_number(value) or not 0 < value <= 1:
        raise wrong(f"{name}, a fraction of a step,", f"must be above 0 and at most 1; got {value}")


def check_switch(name: str, value: object, *, also_none: bool = False) -> None:
    """FatalError unless it is True or False, or None if that is a choice."""
    if not isinstance(value, bool | np.bool_) and not (value is None and also_none):
        choices = "True, False or None" if also_none else "True or False"
        raise wrong(name, f"must be {choices}; got {value!r}")


def check_text(name: str, value: object) -> None:
    """FatalError unless it is a text."""
    if not isinstance(value, str):
        raise wrong(name, f"must be the name of a variable; got {value!r}")


def names_of(name: str, value: Any) -> set[str]:
    """Names, or a single one, as a set; FatalError if they are anything else."""
    if isinstance(value, str):
        return {value}
    try:
        names = list(value)
    except TypeError:  # numpy calls an array of one number iterable
        names = [None]
    if not all(isinstance(each, str) for each in names):
        raise wrong(name, f"must be a name, or a list of names; got {value!r}")
    return set(names)


def file_name(name: str, value: Any, what: str = "file") -> str:
    """Return the path of a file or folder as a text; FatalError if it is not a path."""
    try:
        text = os.fsdecode(value)
    except TypeError:
        raise wrong(name, f"must be the path of a {what}; got {value!r}") from None
    if not text or "\0" in text:
        raise wrong(name, f"must be the path of a {what}; got {text!r}")
    return text
