"""The solver options that a model has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.inspection import counted, inspected
from neml2_capi._ffi.library import lib, text

#: The choices of a text that can be anything.
ANY_TEXT = ("*",)


class Option(NamedTuple):
    """Values that an option can have."""

    least: float
    greatest: float
    choices: tuple[str, ...]  # empty for a number; ANY_TEXT for any text


class Options(Mapping[str, Any]):
    """The solver options of a model: `model.options["atol"] = 1e-12`.

    Numbers are floats, choices are text; include/neml2_capi.h explains each under "Options".
    A value out of bounds is a FatalError and changes nothing.
    """

    def __init__(self, model: Any, known: Mapping[str, Option]) -> None:
        """`model` has `option(name)` and `set_option(name, value)`; `known` has its options."""
        self._model, self._known = model, known

    def __getitem__(self, name: str) -> Any:
        self._find(name)
        return self._model.option(name)

    def __setitem__(self, name: str, value: float | str | os.PathLike[str]) -> None:
        option = self._find(name)
        choices = option.choices
        if choices:
            given: Any = os.fspath(value) if isinstance(value, os.PathLike) else value
            if not isinstance(given, str):
                wanted = "a text" if choices == ANY_TEXT else f"one of {', '.join(choices)}"
                raise refused(name, repr(given), wanted)
        else:
            if isinstance(value, bool | np.bool_) and option.greatest != 1:
                raise refused(name, repr(value), "a number")
            try:
                given = float(value)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                raise refused(name, repr(value), "a number") from None
            except OverflowError:
                raise refused(name, "a larger one", "a number that a float can hold") from None
        self._model.set_option(name, given)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            "the options of a model cannot be copied or pickled: take dict(model.options), or copy "
            "the Model"
        )

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def update(
        self, values: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), /, **named: Any
    ) -> None:
        """Set several options, as `dict.update` does; if one is refused, none is changed.

        Parameters
        ----------
        values
            The new values by name, or pairs of both: a number, or a choice.
        **named
            Further values.

        Raises
        ------
        FatalError
            There is no such option, or a value is out of its bounds or choices.
        """
        given = dict(values, **named)
        before = {name: self[name] for name in given}
        try:
            for name, value in given.items():
                self[name] = value
        except BaseException:
            for name, value in before.items():
                self[name] = value
            raise

    def bounds(self, name: str) -> tuple[float, float]:
        """Tell between which values a number is.

        Parameters
        ----------
        name
            The option.

        Returns
        -------
        least : float
            The least value.
        greatest : float
            The greatest value; the greatest float if there is no bound.

        Raises
        ------
        FatalError
            There is no such option, or it is a text.
        """
        option = self._find(name)
        if option.choices:
            raise FatalError(
                f"option {name!r} is a text and has no bounds: see choices()",
                lib.NEML2_ERROR_ARGUMENT,
                name,
            )
        return option.least, option.greatest

    def choices(self, name: str) -> tuple[str, ...]:
        """Tell what a text can be.

        Parameters
        ----------
        name
            The option.

        Returns
        -------
        tuple of str
            The choices, ("*",) for any text; empty for a number.

        Raises
        ------
        FatalError
            There is no such option.
        """
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


def refused(name: str, given: str, wanted: str) -> FatalError:
    """The error for a value that an option cannot have."""
    return FatalError(
        f"option {name!r} takes {wanted}, not {given}", lib.NEML2_ERROR_ARGUMENT, name
    )


def read_options(model: Any) -> dict[str, Option]:
    """The options of a model handle by name."""
    return dict(_read(model, index) for index in counted(lib.neml2_model_option_count, model))


def _read(model: Any, index: int) -> tuple[str, Option]:
    info = inspected("neml2_option_info", lib.neml2_model_option_inspect, model, index)
    return text(info.name), Option(info.least, info.greatest, tuple(text(info.choices).split()))
