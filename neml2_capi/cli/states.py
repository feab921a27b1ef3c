"""Inputs made up where the user gives none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Model
from neml2_capi.umat import TEMPERATURES, TIMES

_STRAIN = 1e-3  # of which most materials have left, or are about to leave, elasticity
_ROOM_TEMPERATURE = 300.0
# The identity, where zeros are no rotation and no deformation gradient.
_IDENTITY = {"R2": np.eye(3), "Rot": np.zeros(3)}


def plausible(model: Model, points: int, seed: int = 1) -> dict[str, NDArray[np.float64]]:
    """A step from rest: small strains of random direction, a unit of time, history zero."""
    random = np.random.default_rng(seed)
    inputs: dict[str, NDArray[np.float64]] = {}
    for variable in model.inputs:
        name = variable.name.split("~")[0]
        sizes = (points, *variable.sub_batch_shape, *variable.base_shape)
        value = np.zeros(sizes)
        if name in TEMPERATURES:
            value += _ROOM_TEMPERATURE
        elif variable.type in _IDENTITY:
            value += _IDENTITY[variable.type]
        elif "~" in variable.name:
            pass
        elif name in TIMES:
            value += 1.0
        elif np.issubdtype(variable.dtype, np.floating):
            value += _STRAIN * random.standard_normal(sizes)
        inputs[variable.name] = value.astype(variable.dtype)
    return inputs
