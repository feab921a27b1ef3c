"""Units of measurements, by factors to MPa, s and strains of 1."""

from __future__ import annotations

import re
import unicodedata

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.library import lib

#: By quantity: what one unit is, of those that models mostly have.
FACTORS: dict[str, dict[str, float]] = {
    "stress": {
        "MPa": 1.0,
        "N/mm2": 1.0,
        "MN/m2": 1.0,
        "kN/mm2": 1e3,
        "GPa": 1e3,
        "kPa": 1e-3,
        "Pa": 1e-6,
        "bar": 0.1,
        "kgf/mm2": 9.80665,
        "ksi": 6.894757293168361,
        "psi": 6.894757293168361e-3,
    },
    "strain": {
        "1": 1.0,
        "-": 1.0,
        "mm/mm": 1.0,
        "m/m": 1.0,
        "in/in": 1.0,
        "%": 1e-2,
        "percent": 1e-2,
        "permille": 1e-3,
        "‰": 1e-3,
        "mm/m": 1e-3,
        "microstrain": 1e-6,
        "um/m": 1e-6,
        "ue": 1e-6,
    },
    "t": {"s": 1.0, "sec": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0},
}


def _spelled(unit: str) -> str:
    """The unit as it stands above: N/mm^2 and N/mm² are N/mm2, µε is ue."""
    plain = unicodedata.normalize("NFKC", unit.strip()).replace("^", "")
    return plain.replace("\N{GREEK SMALL LETTER MU}", "u").replace(
        "\N{GREEK SMALL LETTER EPSILON}", "e"
    )


def _known(quantity: str) -> dict[str, float]:
    return FACTORS.get(quantity.partition(".")[0], {})


def factor(quantity: str, unit: str) -> float:
    """By what a number in `unit` is multiplied; UnknownNameError if it is no unit of that."""
    known = _known(quantity)
    if _spelled(unit) not in known:
        raise unknown_name(f"unit of {quantity}", unit, known)
    return known[_spelled(unit)]


def without_slash(column: str) -> tuple[str, str]:
    """The name and the unit of "strain / %", as ISO 80000 writes them; a unit of "" for others."""
    name, _, unit = column.partition("/")
    anything = any(_spelled(unit) in known for known in FACTORS.values())
    return (name.strip(), unit.strip()) if name.strip() and anything else (column, "")


def unit_of(column: str, quantity: str) -> str:
    """The unit in the name of a column, "stress [GPa]" or "stress / GPa"; "" if there is none.

    FatalError if brackets hold anything else, which might be a unit.
    """
    known = _known(quantity)
    pairs = re.findall(r"\[([^]]*)\]|\(([^)]*)\)", column.strip()[1:])
    held = [text.strip() for pair in pairs for text in pair if text]
    held = held or [unit for unit in (without_slash(column)[1],) if unit]
    units = [text for text in held if _spelled(text) in known]
    if held and not units:
        raise FatalError(
            f"the column {column!r}: {unknown_name(f'unit of {quantity}', held[-1], known)}. If it "
            f'is no unit, say units = {{{quantity} = "{next(iter(known))}"}}',
            lib.NEML2_ERROR_NAME,
            column,
        )
    return units[-1] if units else ""
