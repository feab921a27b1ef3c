"""Bounds of a law as MGIS reads them: a number for each name that a plug-in exports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from neml2_capi.model import Bound, Model
from neml2_capi.umat.properties import Mapping


def numbers(model: Model, mapping: Mapping) -> dict[str, float]:
    """The bounds of a material, by the names of their symbols.

    Parameters
    ----------
    model : Model
        The law.
    mapping : Mapping
        Which variable is which argument of a host.

    Returns
    -------
    dict of str to float
        "NEML2_E_LowerPhysicalBound" for example: of properties, states, fields and the temperature.
        One for a variable whose components have the same, and one for each number of a vector.
    """
    found: dict[str, float] = {}
    for bound in model.bounds:
        kind = "PhysicalBound" if bound.physical else "Bound"
        for name in _names(bound, mapping):
            for side, values in (("Lower", bound.lower), ("Upper", bound.upper)):
                for item, number in _numbers(name, values):
                    if math.isfinite(number):
                        found[f"NEML2_{item}_{side}{kind}"] = number
    return found


def _names(bound: Bound, mapping: Mapping) -> Iterator[str]:
    """What MGIS calls the variable, if it knows it."""
    name = bound.variable.removesuffix("~1")
    if bound.variable == mapping.temperature:
        yield "Temperature"
    elif name in {slot.name for slot in (*mapping.states, *mapping.parameters, *mapping.fields)}:
        yield name


def _numbers(name: str, values: Any) -> Iterator[tuple[str, float]]:
    """A number for all components, if it is the same, and each; "x[1]" is x__1__ in a symbol."""
    flat = np.ravel(values)
    if (flat == flat[0]).all():
        yield name, float(flat[0])
    if flat.size > 1:
        yield from ((f"{name}__{i}__", float(number)) for i, number in enumerate(flat))
