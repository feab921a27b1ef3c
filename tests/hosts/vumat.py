"""Call vumat_ as Abaqus/Explicit does: LIBRARY POINTS DEPVAR SCALE STRAINS RESULT DT."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

library, strains, result = sys.argv[1], np.load(sys.argv[5]), sys.argv[6]
points, depvar, scale = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
dt = np.array(float(sys.argv[7]))
vumat = ctypes.CDLL(library).vumat_


def integer(number: int) -> Any:
    return ctypes.byref(ctypes.c_int(number))


def at(array: Array) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


def block(components: int) -> Array:
    """Components behind each other, each of all points."""
    return np.zeros((max(points, 0), components), order="F")


none, props = at(block(20)), np.array([200e3, 150.0])
count = strains.shape[2]
stress, state = block(count), block(depvar)
state[:, 19:] = 5.0  # what a user keeps behind the states of the law
for step, increment in enumerate(np.diff(strains, axis=0, prepend=0)):
    given = np.asfortranarray(scale * increment)
    new_stress, new_state, time = block(count), block(depvar) + np.nan, np.array(step + 1.0)
    vumat(
        *map(integer, (points, 3, count - 3, depvar, 0, 2, 0)),
        *(at(time), at(time), at(dt), b" " * 80, none, none),
        *(at(props), none, at(given), none, none, none, none, none),
        *(at(stress), at(state), none, none, none, none, none, none),
        *(at(new_stress), at(new_state), none, none),
    )
    stress, state = new_stress, new_state
np.save(result, np.hstack([stress, state]))
