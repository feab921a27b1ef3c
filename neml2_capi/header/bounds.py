"""Bounds of a law at one point, as statements; as capi/model/bounds.h."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from neml2_capi._ffi.bounds import Bound
from neml2_capi.header.definitions import Definition
from neml2_capi.header.statements import Place
from neml2_capi.kernels.emit import number

#: The setting that makes points beyond bounds of validity fail.
SETTING = "fail_beyond_bounds"


def check_of(
    bounds: Sequence[Bound], values: Mapping[str, Place], single: bool
) -> Definition | None:
    """The function that tells whether a point is beyond; None if nothing is bounded.

    It returns 0 if the point is within, 1 if a smaller step may mend what is beyond, else 2.
    """
    lines = [line for bound in bounds for line in _lines(bound, values[bound.variable], single)]
    if not lines:
        return None
    used = "\n".join(lines)
    words = re.findall(r"\w+", used)
    unused = "".join(f"  (void){name};\n" for name in ("x", "p", "fail") if name not in words)
    return Definition(
        "beyond_bounds",
        "FUNCTION int beyond_bounds(const lanes *x, const lanes *p, int fail) {\n"
        f"{unused}  int found = 0;\n{used}\n  return found;\n}}",
    )


def fails_by_setting(bounds: Sequence[Bound]) -> bool:
    """Whether a setting decides about bounds: those that are not physical."""
    return any(not bound.physical for bound in bounds)


def _lines(bound: Bound, at: Place, single: bool) -> Iterator[str]:
    """A statement for each component that has a bound. NaN is within."""
    condition = "" if bound.physical else "fail && "
    mends = at.array == "x" and "~" not in bound.variable
    then = "found = found > 1 ? 2 : 1;" if mends else "found = 2;"
    for component, (lower, upper) in enumerate(
        zip(np.ravel(bound.lower), np.ravel(bound.upper), strict=True)
    ):
        value, beyond = at.element(component), []
        if np.isfinite(lower):
            beyond.append(f"{value} < {number(lower, single).text}")
        if np.isfinite(upper):
            beyond.append(f"{value} > {number(upper, single).text}")
        if beyond:
            tests = " | ".join(f"({test})" for test in beyond)
            yield f"  if ({condition}({tests})) {then}"
