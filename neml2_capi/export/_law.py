"""How a law is called: with dictionaries, or by the names of its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.export._variables import Parameter, Variable

Groups = Sequence[Sequence[Variable | Parameter]]


class Law:
    """A law of one point as a function of tensors by position, group after group.

    `groups` are what it is called with: a dictionary for each. A law all of whose arguments have
    the names of variables or parameters is called by these names instead.
    """

    def __init__(
        self, function: Callable[..., Any], groups: Groups, results: Sequence[Variable]
    ) -> None:
        self._function = function
        self._groups = [[entry.name for entry in group] for group in groups]
        self._results = results
        self._by_name = _arguments(function)
        names = [name for group in self._groups for name in group]
        if not self._by_name or not set(self._by_name) <= set(names):
            self._by_name = []

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """The results in their order, each of its shape."""
        given = iter(values)
        groups = [{name: next(given) for name in group} for group in self._groups]
        if self._by_name:
            every = {name: value for group in groups for name, value in group.items()}
            return self._in_order(self._function(**{name: every[name] for name in self._by_name}))
        return self._in_order(self._function(*groups))

    def _in_order(self, made: Any) -> tuple[Any, ...]:
        if isinstance(made, torch.Tensor):
            made = (made,)
        if isinstance(made, Mapping):
            if set(made) != {result.name for result in self._results}:
                raise self._unlike(f"{sorted(made)}")
            made = [made[result.name] for result in self._results]
        if len(made) != len(self._results):
            raise self._unlike(f"{len(made)} tensors")
        for result, value in zip(self._results, made, strict=True):
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


def _arguments(function: Callable[..., Any]) -> list[str]:
    """The names of the arguments; none where it takes any number."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(called).parameters.values()
    return [p.name for p in parameters] if all(p.kind in kinds for p in parameters) else []
