"""The solver options of a model as a live mapping."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from neml2_capi._ffi.errors import FatalError, check, unknown_name
from neml2_capi._ffi.handle import Handle
from neml2_capi._ffi.library import c_string, ffi, lib, text
from neml2_capi._ffi.options import ANY_TEXT, Option


class Options(Mapping[str, Any]):
    """The solver options of a model: `model.options["atol"] = 1e-12`.

    Numbers are floats, choices are text; include/neml2_capi.h explains each under "Options".
    A value out of bounds is a FatalError and changes nothing.
    """

    def __init__(self, model: Handle, known: Mapping[str, Option]) -> None:
        self._model = model
        self._known = known

    def __getitem__(self, name: str) -> Any:
        handle, option = self._model._open(), self._find(name)
        if option.choices:
            word = ffi.new("const char **")
            check(lib.neml2_model_option_get_text(word, handle[0], c_string(name)))
            return text(word[0])
        number = ffi.new("double *")
        check(lib.neml2_model_option_get_number(number, handle[0], c_string(name)))
        return float(number[0])

    def __setitem__(self, name: str, value: float | str | os.PathLike[str]) -> None:
        handle, option = self._model._open(), self._find(name)
        if option.choices:
            if isinstance(value, os.PathLike):
                value = os.fspath(value)
            if not isinstance(value, str):
                any_text = option.choices == ANY_TEXT
                wanted = "a text" if any_text else f"one of {', '.join(option.choices)}"
                raise _refused(name, repr(value), wanted)
            check(lib.neml2_model_option_set_text(handle[0], c_string(name), c_string(value)))
            return
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise _refused(name, repr(value), "a number") from None
        except OverflowError:
            raise _refused(name, "a larger one", "a number that a float can hold") from None
        check(lib.neml2_model_option_set_number(handle[0], c_string(name), number))

    def update(self, values: Mapping[str, float | str | os.PathLike[str]]) -> None:
        """Set several options; when one is refused, none is changed."""
        before = {name: self[name] for name in values}
        try:
            for name, value in values.items():
                self[name] = value
        except BaseException:
            for name, value in before.items():
                self[name] = value
            raise

    def bounds(self, name: str) -> tuple[float, float]:
        """The least and the greatest value of a number."""
        option = self._find(name)
        if option.choices:
            raise FatalError(
                f"option {name!r} is a text and has no bounds: see choices()",
                lib.NEML2_ERROR_ARGUMENT,
                name,
            )
        return option.least, option.greatest

    def choices(self, name: str) -> tuple[str, ...]:
        """What a text can be, ("*",) for any text; empty for a number."""
        return self._find(name).choices

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return "<Options of a closed model>" if self._model.closed else repr(dict(self))

    def _find(self, name: str) -> Option:
        try:
            return self._known[name]
        except KeyError:
            raise unknown_name("option", name, self._known) from None


def _refused(name: str, given: str, wanted: str) -> FatalError:
    return FatalError(
        f"option {name!r} takes {wanted}, not {given}", lib.NEML2_ERROR_ARGUMENT, name
    )
