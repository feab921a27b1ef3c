"""Units of measurements, by factors to MPa, s and strains of 1."""

from __future__ import annotations

import re

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.library import lib

#: By quantity: what one unit is, of those that models mostly have.
FACTORS: dict[str, dict[str, float]] = {
    "stress": {
        "MPa": 1.0,
        "N/mm2": 1.0,
        "N/mm^2": 1.0,
        "N/mm²": 1.0,
        "kN/mm2": 1e3,
        "kN/mm²": 1e3,
        "GPa": 1e3,
        "kPa": 1e-3,
        "Pa": 1e-6,
        "bar": 0.1,
        "ksi": 6.894757293168361,
        "psi": 6.894757293168361e-3,
    },
    "strain": {
        "1": 1.0,
        "-": 1.0,
        "mm/mm": 1.0,
        "m/m": 1.0,
        "%": 1e-2,
        "percent": 1e-2,
        "permille": 1e-3,
        "‰": 1e-3,
        "microstrain": 1e-6,
        "µm/m": 1e-6,
        "um/m": 1e-6,
    },
    "t": {"s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0},
}


def factor(quantity: str, unit: str) -> float:
    """By what a number in `unit` is multiplied; UnknownNameError if it is no unit of that."""
    known = FACTORS.get(quantity.partition(".")[0], {})
    if unit not in known:
        raise unknown_name(f"unit of {quantity}", unit, known)
    return known[unit]


def in_brackets(column: str, quantity: str) -> str:
    """The unit in the name of a column, "stress [GPa]"; "" if it has no brackets.

    FatalError if they hold anything else, which might be a unit.
    """
    known = FACTORS.get(quantity.partition(".")[0], {})
    pairs = re.findall(r"\[([^]]*)\]|\(([^)]*)\)", column.strip()[1:])
    held = [text.strip() for pair in pairs for text in pair if text]
    units = [text for text in held if text in known]
    if held and not units:
        raise FatalError(
            f"the column {column!r}: {unknown_name(f'unit of {quantity}', held[-1], known)}. If it "
            f'is no unit, say units = {{{quantity} = "{next(iter(known))}"}}',
            lib.NEML2_ERROR_NAME,
            column,
        )
    return units[-1] if units else ""
