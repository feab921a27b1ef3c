"""How a law is called: with dictionaries, or by the names of its arguments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.export._lines import KeptArguments, called
from neml2_capi.export._refusals import mixes_types, refused
from neml2_capi.export._variables import Parameter, Variable

Groups = Sequence[Sequence[Variable | Parameter]]


class Law:
    """A law of one point as a function of tensors by position, group after group.

    `groups` are what it is called with: a dictionary for each. A law all of whose arguments have
    the names of variables or parameters is called by these names instead; one of a single tensor
    with this alone, whatever it is called there. FatalError if the arguments fit none of that.
    """

    def __init__(
        self, function: Callable[..., Any], groups: Groups, results: Sequence[Variable]
    ) -> None:
        self._function = function
        self._groups = [[entry.name for entry in group] for group in groups]
        self._shapes = [entry.shape for group in groups for entry in group]
        self._results = results
        names = [name for group in self._groups for name in group]
        self._call = self._caller(names)

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """The results in their order, each of its shape."""
        return self._in_order(self._call(*values), values[0].dtype)

    def try_once(self, dtype: Any) -> None:
        """FatalError if the law changes its arguments, or returns something else than declared.

        Errors that the law raises itself are reported when it is traced: here they may be right.
        """
        values = [
            torch.linspace(0.5, 1.5, math.prod(shape), dtype=dtype).reshape(shape)
            for shape in self._shapes
        ]
        try:
            with torch.no_grad(), KeptArguments(values):
                self(*values)
        except FatalError:
            raise
        except Exception as error:
            if mixes_types(error):
                raise refused(error) from error

    def _caller(self, names: list[str]) -> Callable[..., Any]:
        arguments = _arguments(self._function)
        needed = [a for a in arguments or () if a.default is inspect.Parameter.empty]
        given = [a.name for a in arguments or () if a.name in names]
        if given and {a.name for a in needed} <= set(given):
            return lambda *values: called(self._function, **_chosen(given, names, values))
        if len(names) == 1 and (arguments is None or (arguments and len(needed) <= 1)):
            return lambda value: called(self._function, value)
        if arguments is not None and not len(needed) <= len(self._groups) <= len(arguments):
            raise self._unnamed([a.name for a in arguments], names)
        return self._by_groups

    def _by_groups(self, *values: Any) -> Any:
        given = iter(values)
        groups = [{name: next(given) for name in group} for group in self._groups]
        try:
            return called(self._function, *groups)
        except (TypeError, AttributeError) as error:
            arguments = _arguments(self._function)
            if arguments is None or "dict" not in str(error):
                raise
            names = [name for group in self._groups for name in group]
            raise self._unnamed([a.name for a in arguments], names) from error

    def _unnamed(self, arguments: list[str], names: list[str]) -> FatalError:
        unknown = [argument for argument in arguments if argument not in names]
        groups = "one dictionary for each of " + (
            "inputs and parameters" if len(self._groups) == 2 else "unknowns, givens and parameters"
        )
        return FatalError(
            f"the law takes {', '.join(arguments) or 'no argument'}, of which "
            f"{', '.join(unknown) or 'all'} {'are' if len(unknown) > 1 else 'is'} not declared; "
            f"call its arguments by the names of what it takes, {', '.join(names)}, or let it take "
            f"{groups}",
            lib.NEML2_ERROR_NAME,
            next(iter(unknown), ""),
        )

    def _in_order(self, made: Any, dtype: Any) -> tuple[Any, ...]:
        if isinstance(made, torch.Tensor):
            made = (made,)
        if isinstance(made, Mapping):
            if set(made) != {result.name for result in self._results}:
                raise self._unlike(f"{sorted(made)}")
            made = [made[result.name] for result in self._results]
        if not isinstance(made, (list, tuple)):
            raise self._unlike(f"{type(made).__name__}")
        if len(made) != len(self._results):
            raise self._unlike(f"{len(made)} tensors")
        for result, value in zip(self._results, made, strict=True):
            if not isinstance(value, torch.Tensor) or value.dtype != dtype:
                kind = str(getattr(value, "dtype", type(value).__name__))
                raise FatalError(
                    f"the law returns {result.name!r} as {kind}; expected a tensor of {dtype}: "
                    "convert it, by .to(x.dtype) for example",
                    lib.NEML2_ERROR_DTYPE,
                    result.name,
                )
            if tuple(value.shape) != result.shape:
                raise FatalError(
                    f"the law returns {result.name!r} with the shape {tuple(value.shape)} for one "
                    f"point; declared was {result.shape}, {result.type}",
                    lib.NEML2_ERROR_SHAPE,
                    result.name,
                )
        return tuple(made)

    def _unlike(self, what: str) -> FatalError:
        names = [result.name for result in self._results]
        return FatalError(
            f"the law returns {what}; expected a dictionary of {names}, or tensors in this order",
            lib.NEML2_ERROR_ARGUMENT,
        )


def _chosen(wanted: list[str], names: list[str], values: Sequence[Any]) -> dict[str, Any]:
    every = dict(zip(names, values, strict=True))
    return {name: every[name] for name in wanted}


def _arguments(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Return the named arguments; None if the function takes any number, or it is not known."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):  # a function in C
        return None
    return parameters if all(p.kind in kinds for p in parameters) else None
