"""The lines of a law: which one is at work, and which one each operation of a graph comes from."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.kernels.places import LINE, belongs_to_a_law, written

#: The laws that are being called, the innermost last: how deep the frame of the call is, and its
#: arguments. Frames outside of it are of who exports the law.
_AT_WORK: ContextVar[tuple[tuple[FrameType, Sequence[Any]], ...]] = ContextVar("laws", default=())

#: What an error of tracing has: the last line of each operator of torch, by its name.
_LINES = "lines_of_operators"


def called(law: Callable[..., Any], *arguments: Any, **by_name: Any) -> Any:
    """Call a law whose lines shall be known, and whose arguments the modes of this room ask for."""
    values = [v for v in tree_leaves((arguments, by_name)) if isinstance(v, torch.Tensor)]
    token = _AT_WORK.set((*_AT_WORK.get(), (sys._getframe(), values)))
    try:
        return law(*arguments, **by_name)
    finally:
        _AT_WORK.reset(token)


def arguments_at_work() -> Sequence[Any]:
    """The tensors that the innermost law was called with; none outside of a law."""
    return _AT_WORK.get()[-1][1] if _AT_WORK.get() else ()


def line_at_work() -> str:
    """The innermost line of the law that is being called; empty if none is."""
    if not _AT_WORK.get():
        return ""
    border, frame = _AT_WORK.get()[-1][0], sys._getframe(1)
    while frame is not border:
        if belongs_to_a_law(frame.f_code.co_filename):
            return _written(frame.f_code.co_filename, frame.f_lineno)
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return ""


def line_of_error(error: BaseException) -> str:
    """The innermost line of a law that raised an error; empty if there is none.

    An error of a backward pass has the line of the operator that it names.
    """
    frames = traceback.extract_tb(error.__traceback__)
    calls = [i for i, f in enumerate(frames) if (f.filename, f.name) == (__file__, called.__name__)]
    own = [f for f in frames[calls[-1] :] if belongs_to_a_law(f.filename)] if calls else []
    if own:
        return _written(own[-1].filename, own[-1].lineno or 0)
    named = re.search(r"(?:aten::|derivative for ')(\w+)", str(error))
    known: Mapping[str, str] = getattr(error, _LINES, {})
    return known.get(named[1].removesuffix("_backward"), "") if named else ""


def _written(file: str, line: int) -> str:
    return written(file, line, linecache.getline(file, line))


class NotedLines(TorchDispatchMode):  # type: ignore[misc]
    """While a graph is traced: each node keeps the line of the law that it comes from.

    What the backward pass adds has the line whose derivative it is.
    """

    def __init__(self) -> None:
        super().__init__()
        self._of_gradients: dict[int, str] = {}
        self._of_operators: dict[str, str] = {}

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        if error is not None:
            setattr(error, _LINES, self._of_operators)

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        backward = torch._C._current_autograd_node()
        if backward is None:
            line = line_at_work()
            self._of_gradients.setdefault(torch.autograd._get_sequence_nr() - 1, line)
            self._of_operators[function.name().removeprefix("aten::").partition(".")[0]] = line
        else:
            # An operator of several steps has no number of its own: the last one before it.
            earlier = [n for n in self._of_gradients if n <= backward._sequence_nr()]
            line = self._of_gradients[max(earlier)] if earlier else ""
        torch.fx.traceback.current_meta["custom"] = {LINE: line} if line else {}
        return function(*arguments, **(options or {}))


class KeptArguments(TorchFunctionMode):  # type: ignore[misc]
    """FatalError, which names the line, if a law changes one of its arguments."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        super().__init__()
        self._versions = [(value, value._version) for value in arguments]

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        made = function(*arguments, **(options or {}))
        if any(value._version != version for value, version in self._versions):
            line = line_at_work()
            raise FatalError(
                f"the law changes its argument in place{', at ' if line else ''}{line}. Inputs "
                "belong to the caller: write `x = x + 1` instead of `x += 1`, torch.stack() or "
                "torch.cat() instead of `x[0] = ...`, or begin with `x = x.clone()`",
                lib.NEML2_ERROR_UNSUPPORTED,
            )
        return made


def without_lines(program: Any) -> None:
    """Forget the lines in an exported graph: what is compiled of it shall not depend on them."""
    for node in program.graph.nodes:
        node.meta.pop("custom", None)
