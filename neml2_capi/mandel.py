"""Symmetric tensors as NEML2 stores them, from and to the forms that others have.

    from neml2_capi import mandel

    strain = mandel.from_voigt(strain, shear="engineering")

Mandel notation is xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy. All functions take numpy arrays,
or what becomes one, of any batch, (*B, 6) or (*B, 3, 3), and return new arrays.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["from_tensor", "from_voigt", "to_tensor", "to_voigt"]

Array = NDArray[Any]
Order = Literal["voigt", "abaqus"]
Shear = Literal["tensor", "engineering"]

_FACTORS = np.sqrt([1, 1, 1, 2, 2, 2])
_ROWS, _COLUMNS = [0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]
#: Where the components of an order are in yz, xz, xy; each is its own inverse.
_ORDERS = {"voigt": [0, 1, 2, 3, 4, 5], "abaqus": [0, 1, 2, 5, 4, 3]}
#: By what tensor components are multiplied.
_SHEARS = {"tensor": np.ones(6), "engineering": np.array([1, 1, 1, 2, 2, 2])}


def from_tensor(tensor: Any) -> Array:
    """The Mandel vector of a symmetric tensor; another one counts by its symmetric part.

    Parameters
    ----------
    tensor : array (*B, 3, 3)
        The tensor.

    Returns
    -------
    array (*B, 6)
        In Mandel notation.

    Raises
    ------
    ValueError
        The shape is another, or a value is masked.
    """
    values = _of_shape(tensor, (3, 3))
    symmetric = (values + np.swapaxes(values, -1, -2)) / 2
    return np.asarray(symmetric[..., _ROWS, _COLUMNS] * _factors(values))


def to_tensor(mandel: Any) -> Array:
    """The symmetric tensor of a Mandel vector.

    Parameters
    ----------
    mandel : array (*B, 6)
        In Mandel notation.

    Returns
    -------
    array (*B, 3, 3)
        The tensor.

    Raises
    ------
    ValueError
        The shape is another, or a value is masked.
    """
    values = _of_shape(mandel, (6,))
    components = values / _factors(values)
    tensor = np.empty((*values.shape[:-1], 3, 3), components.dtype)
    tensor[..., _ROWS, _COLUMNS] = tensor[..., _COLUMNS, _ROWS] = components
    return tensor


def from_voigt(voigt: Any, *, shear: Shear, order: Order = "voigt") -> Array:
    """The Mandel vector of six components.

    Parameters
    ----------
    voigt : array (*B, 6)
        The direct components, then the shears.
    shear
        "tensor" for components of the tensor, as of a stress; "engineering" for twice these, as of
        a strain.
    order
        "voigt" for shears yz, xz, xy; "abaqus" for xy, xz, yz, also of LS-DYNA and CalculiX.

    Returns
    -------
    array (*B, 6)
        In Mandel notation.

    Raises
    ------
    ValueError
        The shape, the order or the shear is another, or a value is masked.
    """
    places, doubled = _form(shear, order)
    values = _of_shape(voigt, (6,))[..., places]
    return np.asarray(values * (_factors(values) / doubled).astype(_factors(values).dtype))


def to_voigt(mandel: Any, *, shear: Shear, order: Order = "voigt") -> Array:
    """Six components of a Mandel vector.

    Parameters
    ----------
    mandel : array (*B, 6)
        In Mandel notation.
    shear
        As in from_voigt().
    order
        As in from_voigt().

    Returns
    -------
    array (*B, 6)
        The direct components, then the shears.

    Raises
    ------
    ValueError
        The shape, the order or the shear is another, or a value is masked.
    """
    places, doubled = _form(shear, order)
    values = _of_shape(mandel, (6,))
    return np.asarray(
        (values * (doubled / _factors(values)).astype(_factors(values).dtype))[..., places]
    )


def _factors(values: Array) -> Array:
    """In the element type of what they multiply."""
    return _FACTORS.astype(values.dtype)


def _of_shape(values: Any, point: tuple[int, ...]) -> Array:
    if np.ma.is_masked(values):
        raise ValueError("expected numbers; got a masked array: fill it first, array.filled(value)")
    array = np.asarray(values)
    if array.dtype.kind not in "fc":
        array = array.astype(np.float64)
    if array.shape[array.ndim - len(point) :] != point:
        raise ValueError(f"expected an array (*B, {', '.join(map(str, point))}); got {array.shape}")
    return array


def _form(shear: str, order: str) -> tuple[list[int], Array]:
    if shear not in _SHEARS:
        raise ValueError(f"shear is {shear!r}; expected 'tensor' or 'engineering'")
    if order not in _ORDERS:
        raise ValueError(f"order is {order!r}; expected 'voigt' or 'abaqus'")
    return _ORDERS[order], _SHEARS[shear]
