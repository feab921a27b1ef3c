"""Columns of numbers and labels as a user gives them: checked, with NaN for what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi.driver.arguments import is_number, wrong

Array = NDArray[np.float64]

#: The test is pulled along x, if components are not named.
_ALONG = "xx"
#: What a row takes of the mean step if a rate is given and the prescribed value has not changed.
_REST = 1e-3


def components(name: str, kind: str, given: Any) -> dict[str, Array]:
    """Columns of a test by component; of xx if they are not named."""
    if given is None:
        return {}
    parts = given if isinstance(given, Mapping) else {_ALONG: given}
    for part in parts:
        if not isinstance(part, str):
            raise wrong(kind, f"of {name!r} has the component {part!r}; expected a name, 'xx'")
    return {part: column(kind, f"{part} of {name!r}", value) for part, value in parts.items()}


def column(kind: str, whose: str, given: Any) -> Array:
    """One number for each row."""
    found = numbers(kind, whose, given)
    if found.ndim != 1:
        raise wrong(kind, f"{whose} has the shape {found.shape}; expected (n,)")
    return found


def numbers(kind: str, whose: str, given: Any) -> Array:
    """A copy of real numbers; NaN is one that was not seen, as what is masked."""
    if np.iscomplexobj(given):
        raise wrong(kind, f"{whose} has complex numbers; expected real ones")
    if getattr(getattr(given, "dtype", None), "kind", "") in ("m", "M"):
        raise wrong(
            kind,
            f"{whose} has the element type {given.dtype}; expected numbers. Of times, seconds: "
            "(times - times[0]) / numpy.timedelta64(1, 's')",
        )
    try:
        found: Array = np.ma.filled(np.ma.array(given, float), np.nan)
    except (TypeError, ValueError) as error:
        raise wrong(kind, f"{whose} has what is no number: {error}") from None
    if np.asarray(given).dtype.kind == "b":
        raise wrong(kind, f"{whose} has True or False; expected numbers")
    if np.isinf(found).any():
        row = f" in row {int(np.isinf(found).argmax())}" if found.ndim == 1 else ""
        raise wrong(kind, f"{whose} is infinite{row}; expected numbers, or NaN if it was not seen")
    return found


def keyed(kind: str, parts: Mapping[str, Array]) -> dict[str, Array]:
    """Components by the names that curves have, "strain.xx"."""
    return {f"{kind}.{part}": value for part, value in parts.items()}


def times(name: str, given: Any, rate: float | None, first: Array) -> Array:
    """Times as given, or at the rate of what is prescribed; else a row takes 1 s."""
    if given is not None:
        if rate is not None:
            raise wrong("rate", f"of {name!r} is given beside times; expected one of them")
        return column("t", f"of {name!r}", given)
    if rate is None:
        return np.arange(float(len(first)))
    if not is_number(rate) or not 0 < rate < np.inf:
        raise wrong("rate", f"of {name!r} must be above 0; got {rate!r}")
    known = np.isfinite(first)
    steps = np.abs(np.diff(first[known], prepend=0.0))
    moved = steps > 0
    if moved.any():
        steps[1:][~moved[1:]] = _REST * steps[moved].mean()
    found = np.full(first.shape, np.nan)
    found[known] = np.cumsum(steps) / rate
    return found


def rowwise(kind: str, whose: str, given: Any, rows: NDArray[np.bool_]) -> Any:
    """Return one finite number, or a finite number for each row that counts."""
    array = numbers(kind, whose, given)
    if array.shape not in ((), rows.shape):
        raise wrong(
            kind, f"{whose} has the shape {array.shape}; expected one number, or {rows.shape}"
        )
    found = array[rows] if array.ndim else float(array)
    if not np.isfinite(found).all():
        raise wrong(kind, f"{whose} has NaN in a row that counts; expected numbers")
    return found


def check_labels(name: str, labels: Mapping[Any, Any]) -> None:
    """FatalError unless labels have names, and values that are told apart by == and by name."""
    for label, value in labels.items():
        if not isinstance(label, str):
            raise wrong("labels", f"of {name!r} have the name {label!r}; expected a text")
        finite = is_number(value) and -np.inf < value < np.inf
        if not finite and not isinstance(value, str | bool | np.bool_):
            raise wrong(
                "labels",
                f"of {name!r} have {label} = {value!r}; expected a text, a finite number, or True "
                "or False",
            )
