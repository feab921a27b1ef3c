"""Whether two functions give the same results, except for rounding errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

# How much more another order of operations may change than a rounding of the inputs does.
_ROUNDINGS = 1e3


def some_values(shapes: Sequence[Sequence[int]], dtype: Any) -> list[Any]:
    """Arguments between 0.5 and 1.5, always the same; the state of torch's generator stays."""
    chosen = torch.Generator().manual_seed(0)
    return [torch.rand((*s,), dtype=dtype, generator=chosen) + 0.5 for s in shapes]


def beside(values: Sequence[Any]) -> list[Any]:
    """The numbers next to these, so that everything rounds otherwise."""
    return [v * (1 + 2 * torch.finfo(v.dtype).eps) if v.is_floating_point() else v for v in values]


def agree(ours: Any, theirs: Any, rounding: float = 0.0) -> bool:
    """Whether results of two functions agree; `rounding` is what rounding errors make of them."""
    if not theirs.is_floating_point():
        return bool(torch.equal(ours, theirs))
    eps = torch.finfo(theirs.dtype).eps
    close = eps**0.4
    most = close * _largest(theirs) + _ROUNDINGS * max(rounding, eps)
    pair = ours.double(), theirs.double()  # programs of single precision are evaluated in double
    return bool(torch.allclose(*pair, rtol=close, atol=most, equal_nan=True))


def rounding_of(results: Any, results_beside: Any) -> float:
    """What rounding errors make of results: how much they change from one number to the next.

    A result that vanishes except for them, such as the trace of a deviator, has no other scale.
    """
    return _largest(results_beside.double() - results.double())


def _largest(values: Any) -> float:
    finite = torch.nan_to_num(values.double(), 0.0, 0.0, 0.0).abs()
    return finite.amax().item() if finite.numel() else 0.0
