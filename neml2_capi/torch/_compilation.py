"""What torch.compile leaves as it is: its graphs end where the library is called."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch

_Function = TypeVar("_Function", bound=Callable[..., Any])


def not_compiled(function: _Function) -> _Function:
    """Let torch.compile call a function, and all that it calls, without a look into it."""
    # torch.compiler.disable() would import the compiler here; torch itself takes this.
    left_out = torch._disable_dynamo(function)

    @wraps(function)
    def called(*values: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling():
            return left_out(*values, **named)
        return function(*values, **named)

    return called  # type: ignore[return-value]
