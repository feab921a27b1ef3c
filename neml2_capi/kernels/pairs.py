"""Errors of graphs of derivatives by parameters, with the outputs and parameters that they are of.

It runs in the interpreter of neml2-compile, which has NEML2 and torch.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neml2_capi.kernels.program import NoKernel, NoValueError

_NO_VALUE = (
    "torch takes the derivative from the result of an operator, and keeps no value of it in the "
    "graph (pytorch/pytorch#187907)"
)
_OTHER_WAYS = (
    "; or write the law with the operators of neml2/types/functions.py, which compute such a "
    "result again; or take this derivative in NEML2's Python, by neml2.eager"
)

Pair = tuple[str, str]


class PairError(RuntimeError):
    """Derivatives that cannot be compiled, and what to do."""


class _TracedError(Exception):
    """A graph that was traced, and is not compiled."""


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
            failed = _failed_alone(
                pairs, module, lambda: original(module, inputs, *arguments, **options)
            )
            told = _told(failed or dict.fromkeys(pairs, error), pairs, module, inputs)
            raise PairError(told) from error

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


def _failed_alone(
    pairs: list[Pair], module: Any, compiled: Callable[[], Any]
) -> dict[Pair, Exception]:
    """The pairs that cannot be traced by themselves, and why; none if that cannot be tried."""
    failed: dict[Pair, Exception] = {}
    if len(pairs) < 2 or getattr(module, "selected_pairs", None) is None:
        return failed
    import torch._inductor

    compile_and_package, selected = torch._inductor.aoti_compile_and_package, module.selected_pairs
    torch._inductor.aoti_compile_and_package = _require_values
    try:
        for pair in pairs:
            module.selected_pairs = {pair}
            try:
                compiled()
            except _TracedError:
                pass
            except Exception as error:
                failed[pair] = error
    finally:
        torch._inductor.aoti_compile_and_package = compile_and_package
        module.selected_pairs = selected
    return failed


def _require_values(program: Any, *_: Any, **__: Any) -> None:
    """NoValueError if a graph lacks a value, else _TracedError: it ends what compiles the graph."""
    from neml2_capi.kernels.trace import read

    try:
        read(program)
    except NoValueError:
        raise
    except NoKernel:
        pass
    raise _TracedError


def _told(
    failed: Mapping[Pair, Exception], pairs: list[Pair], module: Any, inputs: Sequence[Any]
) -> str:
    constant = _constant_outputs(module, inputs)
    of_reason: dict[str, list[Pair]] = {}
    for pair, error in failed.items():
        reason = _NO_VALUE if isinstance(error, NoValueError) else _reason(error)
        if pair[0] in constant:
            reason = f"{pair[0]} depends on none of the parameters"
        of_reason.setdefault(reason, []).append(pair)
    told = "; ".join(
        f"{_derivatives(some)} cannot be compiled: {why}" for why, some in of_reason.items()
    )
    others = [f"-d {output}:{name}" for output, name in pairs if (output, name) not in failed]
    names = " ".join(others) or "-d OUT:IN for each of them"
    ways = _OTHER_WAYS if _NO_VALUE in of_reason else ""
    return f"{told}. Ask for the others alone, with {names}{ways}"


def _pairs_of(module: Any) -> list[Pair]:
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


def _derivatives(pairs: list[Pair]) -> str:
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
