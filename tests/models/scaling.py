"""A custom operator of torch, neml2_capi_test::scale: what a user's library registers."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

NAMESPACE = "neml2_capi_test"
SCHEMA = (
    "(Tensor x, float factor, int? axis=None, Tensor? bias=None, SymInt[] dims=[], "
    "bool flip=False, str mode='none', ScalarType? dtype=None, float? shift=None, SymInt n=3, "
    "float[] weights=[], Device? device=None, MemoryFormat? format=None, bool? really=None, "
    "str? name=None, *, Tensor[]? more=None) -> (Tensor, Tensor)"
)


def scale(x: torch.Tensor, factor: float, *rest: Any, more: Any = None) -> tuple[torch.Tensor, ...]:
    """`x` scaled, and a sum to which all that is there contributes."""
    total = x.new_tensor(0.0)
    for position, value in enumerate(rest, start=1):
        total = total + position * _number(value)
    return factor * x, x + total + sum(_number(value) for value in more or ())


def _number(value: Any) -> Any:
    if value is None:
        return 0.0
    if isinstance(value, torch.Tensor):
        return value.sum()
    if isinstance(value, (list, tuple)):
        return float(sum(value))
    if isinstance(value, (str, torch.dtype, torch.device)):
        return float(len(str(value)))
    return float(value)


@cache
def define() -> None:
    """Register it, once."""
    name = f"{NAMESPACE}::scale"
    torch.library.define(name, SCHEMA)
    torch.library.impl(name, "cpu")(scale)
    torch.library.register_fake(name)(
        lambda x, *arguments, **named: (torch.empty_like(x), torch.empty_like(x))
    )
