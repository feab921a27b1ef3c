"""Errors of graphs of derivatives by parameters, with the outputs and parameters that they are of.

It runs in the interpreter of neml2-compile, which has NEML2 and torch.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from neml2_capi.kernels.program import NoValueError

_OTHERS = "Ask for the others alone, with -d OUT:IN for each of them"
_NO_VALUE = (
    "torch takes the derivative from the result of an operator, and keeps no value of it in the "
    f"graph (pytorch/pytorch#187907). {_OTHERS}; or write the law with the operators of "
    "neml2/types/functions.py, which compute such a result again; or take this derivative in "
    "NEML2's Python, by neml2.eager"
)


class PairError(RuntimeError):
    """Derivatives that cannot be compiled, and what to do."""


def name_pairs() -> None:
    """Let what neml2-compile says of such a graph begin with its pairs."""
    import neml2.cli.aoti_export as export

    original = getattr(export, "_compile_param_derivative_graph", None)
    if original is None:  # of another NEML2
        return

    @functools.wraps(original)
    def compiled(module: Any, inputs: Sequence[Any], *arguments: Any, **options: Any) -> Any:
        try:
            return original(module, inputs, *arguments, **options)
        except Exception as error:
            if not (pairs := _pairs_of(module)):
                raise
            raise PairError(_told(error, module, inputs, pairs)) from error

    export._compile_param_derivative_graph = compiled
    _take_short_names(export)


def _take_short_names(export: Any) -> None:
    """Let `-d stress:E` name the one promoted parameter that ends so."""
    original = getattr(export, "_resolve_derivative_specs", None)
    if original is None:
        return

    @functools.wraps(original)
    def resolved(specs: Any, outputs: Any, inputs: Any, param_names: Any = ()) -> Any:
        def full(spec: str) -> str:
            output, colon, name = spec.partition(":")
            found = [each for each in param_names if each.endswith(f".{name.strip()}")]
            known = name.strip() in (*inputs, *param_names) or len(found) != 1
            return spec if known else f"{output}{colon}{found[0]}"

        return original([full(spec) for spec in specs], outputs, inputs, param_names)

    export._resolve_derivative_specs = resolved


def _told(
    error: Exception, module: Any, inputs: Sequence[Any], pairs: list[tuple[str, str]]
) -> str:
    constant = _constant_outputs(module, inputs)
    if alone := [pair for pair in pairs if pair[0] in constant]:
        return (
            f"{_derivatives(alone)} cannot be compiled: {', '.join(sorted({o for o, _ in alone}))} "
            f"depends on none of the parameters. {_OTHERS}"
        )
    reason = _NO_VALUE if isinstance(error, NoValueError) else f"{_reason(error)}. {_OTHERS}"
    return f"{_derivatives(pairs)} cannot be compiled: {reason}"


def _pairs_of(module: Any) -> list[tuple[str, str]]:
    """List the outputs or unknowns that a graph derives, each with its parameter."""
    pairs = getattr(module, "selected_pairs", None)
    if pairs is None and hasattr(module, "emitted_param_pairs"):
        pairs = module.emitted_param_pairs()
    return sorted(pairs or ())


def _reason(error: Exception) -> str:
    """The error; of a trace by torch its first line, and the line of the law."""
    text = str(error)
    first, _, frames = text.partition("\n")
    _, _, frames = frames.partition("from user code:")
    found = re.findall(r'File "(.+)", line (\d+), in .*\n *(.+)', frames)
    if not found:
        return text.rstrip(". ")
    file, line, code = found[-1]
    return f"{first}, at {file}:{line}: `{code}`"


def _derivatives(pairs: list[tuple[str, str]]) -> str:
    told = ", ".join(f"{output} with respect to {name}" for output, name in pairs)
    return f"the derivative{'s' * (len(pairs) > 1)} of {told}"


def _constant_outputs(module: Any, inputs: Sequence[Any]) -> set[str]:
    """The outputs that no parameter moves; none if that cannot be found out."""
    import torch

    def tensor(value: Any) -> Any:
        return value if isinstance(value, torch.Tensor) else value.data

    given = []
    try:
        for name, kind, value in zip(module.input_names, module.in_types, inputs, strict=True):
            if name in module.param_names:
                value = tensor(value).detach().clone().requires_grad_(True)
            given.append(value if isinstance(value, (kind, torch.Tensor)) else kind(value))
        made = module.model(*given)
        made = made if isinstance(made, tuple) else (made,)
        named = zip(module.output_names, made, strict=True)
        return {name for name, value in named if not tensor(value).requires_grad}
    except Exception:  # the error that is told says more
        return set()
