"""Units of measurements, by factors to MPa, s and strains of 1."""

from __future__ import annotations

from neml2_capi._ffi.errors import unknown_name

#: By quantity: what one unit is, of those that models mostly have.
FACTORS: dict[str, dict[str, float]] = {
    "stress": {
        "MPa": 1.0,
        "N/mm2": 1.0,
        "N/mm^2": 1.0,
        "GPa": 1e3,
        "kPa": 1e-3,
        "Pa": 1e-6,
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
        "microstrain": 1e-6,
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
    """The unit in the name of a column, "stress [GPa]"; "" if there is none that is known."""
    known = FACTORS.get(quantity.partition(".")[0], {})
    for opening, closing in ("[]", "()"):
        before, _, rest = column.partition(opening)
        unit, closed, _ = rest.partition(closing)
        if closed and before.strip() and unit.strip() in known:
            return unit.strip()
    return ""
