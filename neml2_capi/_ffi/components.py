"""The components of a variable by name: xx, yy and xy of a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import sqrt
from typing import NamedTuple

from neml2_capi._ffi.variables import Variable

_AXES = "xyz"
#: The names of the components of a type in row-major order, and by what NEML2 stores each times.
_NAMED: dict[str, dict[str, float]] = {
    # Mandel notation: the shear components of a symmetric tensor are stored times sqrt(2).
    "SR2": {"xx": 1, "yy": 1, "zz": 1, "yz": sqrt(2), "xz": sqrt(2), "xy": sqrt(2)},
    "R2": {f"{i}{j}": 1 for i, j in product(_AXES, _AXES)},
    "Vec": dict.fromkeys(_AXES, 1),
}


class Component(NamedTuple):
    """One number of a variable at one point."""

    #: Its name: "xy"; "3.xy" at the site 3 of a sub-batch; "" for a scalar.
    name: str
    #: Where it stands in the array of a point.
    place: tuple[int, ...]
    #: By what the component is stored times.
    factor: float


def components(variable: Variable) -> list[Component]:
    """In row-major order. Types without names for their components count them from 0."""
    return list(_components(variable))


def _components(variable: Variable) -> Iterator[Component]:
    named = _named(variable.type)
    places = list(product(*map(range, variable.base_shape)))
    names = list(named) if len(named) == len(places) else [".".join(map(str, p)) for p in places]
    for site in product(*map(range, variable.sub_batch_shape)):
        for name, place in zip(names, places, strict=True):
            label = ".".join([*map(str, site), *([name] if name else [])])
            yield Component(label, (*site, *place), named.get(name, 1.0))


def _named(kind: str) -> dict[str, float]:
    """The components of a type; of one under a hypothesis, "SR2(xx, yy, xy)", those that it has."""
    whole, has_some, some = kind.partition("(")
    named = _NAMED.get(whole, {})
    return {name: named[name] for name in some.rstrip(")").split(", ")} if has_some else named


def column(variable: str, component: Component) -> str:
    """Return the name of a component beside other variables' components: stress.xy."""
    return f"{variable}.{component.name}" if component.name else variable
