"""Arrays that were exchanged, which are bound again without a look at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from neml2_capi._ffi.errors import check
from neml2_capi.model.binding import Bound, Key, Place


class _Fit(NamedTuple):
    """An array that was found to fit at a place."""

    key: Key
    pair: tuple[Place, Bound]
    #: Function of the library that binds it, and what it takes after the call.
    function: Any
    arguments: tuple[Any, ...]
    #: Arrays that are shown as bound, of all places of the kind.
    values: dict[str, Any]


class Exchanges:
    """Exchanges of a call, until other arrays are bound."""

    def __init__(self) -> None:
        #: By the place and the identity of the array.
        self._fits: dict[tuple[Key, int], _Fit] = {}
        #: By the names that were given.
        self._keys: dict[tuple[str, str], tuple[Key, Key]] = {}

    def clear(self) -> None:
        """Forget all of them."""
        self._fits.clear()
        self._keys.clear()

    def repeat(
        self, call: Any, bound: dict[Key, tuple[Place, Bound]], history: str, current: str
    ) -> bool:
        """Exchange two arrays that are known to fit; False if they are not."""
        keys = self._keys.get((history, current))
        if keys is None:
            return False
        one, other = (bound[key][1].value for key in keys)
        first, second = map(self._fits.get, ((keys[0], id(other)), (keys[1], id(one))))
        if not (first and second):
            return False
        for fit in (first, second):
            check(fit.function(call, *fit.arguments))
            bound[fit.key] = fit.pair
            fit.values[fit.key[1]] = fit.pair[1].value
        return True

    def remember(
        self,
        names: tuple[str, str],
        keys: tuple[Key, Key],
        pairs: Iterable[tuple[Place, Bound]],
        values: Mapping[str, dict[str, Any]],
    ) -> None:
        """Keep arrays with the places where they fit."""
        for place, bound in pairs:
            self._fits[place.key, id(bound.value)] = _Fit(
                place.key,
                (place, bound),
                place.function,
                place.arguments(bound),
                values[place.key[0]],
            )
        self._keys[names] = keys
