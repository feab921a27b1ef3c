"""What torch says of a law that it cannot trace, in the words of who wrote the law."""

from __future__ import annotations

import re
from collections.abc import Sequence

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.export._lines import line_of_error

#: What torch says if all points would write into one tensor.
WRITES = (
    "inplace arithmetic",
    "in-place operation",
    "that would mutate",
    "inplace view",
    "output with shape",
)

_TYPES = r"same dtype|expected scalar type|dtype mismatch"

#: A pattern of torch's message, and the message that replaces it.
_WORDS: Sequence[tuple[str, str]] = (
    (
        r"data-dependent control flow|data-dependent expression|__bool__|Boolean value of Tensor",
        "the law decides by a value, which differs from point to point, in Python: by `if`, "
        "`while`, `and`, bool(), min() or max(). Write torch.where(condition, a, b), torch.maximum "
        "or a fixed number of steps",
    ),
    (
        r"\.item\(\)|_local_scalar_dense|aten::item",
        "the law takes a number out of a tensor, by item(), float(), int() or math functions. "
        "Keep it a tensor, and use torch's functions",
    ),
    (
        r"called random operation|randomness",
        "the law depends on chance. A law gives the same for the same: make random numbers before "
        "it, and put a module with dropout into eval() mode",
    ),
    (
        r"dynamic shape|boolean mask|data-dependent output|unbacked",
        "how many entries the law chooses depends on their values, by a mask, nonzero() or "
        "unique(). Keep all of them, and write torch.where(mask, x, 0.0)",
    ),
    (
        r"data pointer|\.numpy\(\)|numpy\(\)|no storage|doesn't have storage|as_array",
        "the law leaves torch, for numpy or compiled code. Write it with torch's functions alone",
    ),
    (
        r"setup_context|autograd\.Function|custom_function_call|autograd_function",
        "the law calls a torch.autograd.Function, whose derivative cannot be traced. Write it with "
        "torch's functions, which are differentiated by themselves",
    ),
    (
        r"leaf Variable that requires grad",
        "the law changes its argument in place. Write `x = x + 1` instead of `x += 1`, and "
        "torch.stack() or torch.cat() instead of `x[0] = ...`, or begin with `x = x.clone()`",
    ),
    (
        "|".join(map(re.escape, WRITES)) + r"|out= or view ops|out=",
        "the law writes into a tensor that is one for all points. Make its result by "
        "torch.stack() or torch.cat(), or write into a clone() of an input",
    ),
    (
        r"(aten::\S+) hit the vmap fallback|Batching rule not implemented for (aten::[\w.]+)",
        "torch has no rule by which {0} works on many points. Write it with other operators",
    ),
    (
        r"derivative for '?(?:aten::)?([\w: ]+)'? is not implemented",
        "torch has no derivative of {0}. Write it with other operators, keep what needs none out "
        "of the derivative by .detach(), or leave derivatives out: derivatives=False",
    ),
    (
        r"element 0 of tensors does not require grad|requires_grad\(\) inside|autograd\.grad",
        "the law differentiates by backward() or torch.autograd.grad(). Use torch.func.grad or "
        "torch.func.jacrev",
    ),
    (
        _TYPES,
        "the law mixes element types. Convert the module, by .double() for a model of float64, or "
        'export with dtype="float32"',
    ),
    (
        r"torch\.compile|dynamo",
        "the law is compiled by torch.compile already. Give the function itself",
    ),
)


def mixes_types(error: Exception) -> bool:
    """Whether torch refuses tensors of different element types, which no value changes."""
    return bool(re.search(_TYPES, str(error)))


def refused(error: Exception) -> FatalError:
    """The error that tells what cannot be traced, why, and at which line."""
    text = str(error).strip() or type(error).__name__
    place = line_of_error(error)
    at = f", at {place}" if place else ""
    for pattern, told in _WORDS:
        found = re.search(pattern, text)
        if found:
            words = told.format(next(filter(None, found.groups()), ""))
            first, _, rest = words.partition(". ")
            message = f"{first}{at}. {rest}.\n(torch: {text})"
            return FatalError(f"torch cannot trace the law: {message}", lib.NEML2_ERROR_UNSUPPORTED)
    kind = "" if isinstance(error, RuntimeError) else f"{type(error).__name__}: "
    return FatalError(
        f"torch cannot trace the function for one point{at}: {kind}{text}\nIt must be made of "
        "torch operations on tensors of one point, and choose by torch.where() instead of `if`",
        lib.NEML2_ERROR_UNSUPPORTED,
    )
