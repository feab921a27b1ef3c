"""Tensors that a law makes, and then writes into."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from neml2_capi.export._lines import arguments_at_work

#: What makes a tensor out of nothing.
_MAKERS = frozenset({torch.zeros, torch.ones, torch.full, torch.empty, torch.eye, torch.tensor})


class FreshTensors(TorchFunctionMode):  # type: ignore[misc]
    """Gives each point its own copy of what a law makes out of nothing, which it may write into.

    Under vmap one tensor is made for all points, and no point may write into it.
    """

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        made = function(*arguments, **(options or {}))
        given = arguments_at_work()
        if function not in _MAKERS or not made.is_floating_point() or not given:
            return made
        return given[0].new_zeros(made.shape, dtype=made.dtype).copy_(made)
