"""Operators that Inductor compiled wrongly into a package, by its source."""

from __future__ import annotations

import re
from pathlib import Path

from neml2_capi._ffi.packages import entry_of

#: What the vector code of an operator looks like, and where its results are wrong.
_WRITTEN = {
    "expm1 (of elu, selu, celu too)": (
        re.compile(r"(\w+)\.exp\(\) - decltype\(\1\)\(1\)"),
        "near 0, where it is exp(x) - 1",
    ),
    "atanh": (
        re.compile(r"\(1\) \+ (\w+)\)/\(decltype\(\1\)\(1\) - \1\)\)\.log\(\)"),
        "near 0, where it is log((1 + x) / (1 - x)) / 2",
    ),
    "remainder and floor_divide": (
        re.compile(r"div_floor_floating_vec\("),
        "of large quotients, which are rounded first",
    ),
    "erf (of gelu too)": (
        re.compile(r"\A(?!.*(?:Vectorized|convert)<double).*\.erf\(\)", re.DOTALL),
        "in float32 near 0, where it is 0",
    ),
}


def inexact_operators(package: Path) -> list[str]:
    """What a package computes wrongly, and where: "atanh near 0, ..."; none without source."""
    text = b"".join(entry_of(package, end) or b"" for end in (".kernel.cpp", ".wrapper.cpp"))
    source = text.decode(errors="replace")
    return [f"{name} {where}" for name, (form, where) in _WRITTEN.items() if form.search(source)]
